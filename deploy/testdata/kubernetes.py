"""Validates Kubernetes manifests against Kubernetes' own OpenAPI documents: kubernetes.py FOLDER, with the manifests, as JSON, on standard input.

FOLDER is api/openapi-spec/v3 of Kubernetes' source. Prints a line for each mistake. Fields that the documents don't have are mistakes.
"""
import glob
import json
import sys

import jsonschema


def strict(schema):
    """Refuses fields that aren't declared, as the API server does with fieldValidation=Strict."""
    if isinstance(schema, dict):
        if "properties" in schema and "additionalProperties" not in schema:
            schema["additionalProperties"] = False
        schema.pop("default", None)
        for below in schema.values():
            strict(below)
    elif isinstance(schema, list):
        for below in schema:
            strict(below)


kinds = {}
for name in glob.glob(sys.argv[1] + "/api*_openapi.json"):
    document = json.load(open(name))
    for key, schema in document["components"]["schemas"].items():
        for kind in schema.get("x-kubernetes-group-version-kind", []):
            # "DeleteOptions" and the like are in every document.
            kinds.setdefault((kind["group"], kind["version"], kind["kind"]), (document, key))

checked = set()
for manifest in json.load(sys.stdin):
    group, _, version = manifest["apiVersion"].rpartition("/")
    if (group, version, manifest["kind"]) not in kinds:
        print("%s %s: not a kind of this Kubernetes" % (manifest["apiVersion"], manifest["kind"]))
        continue
    document, key = kinds[group, version, manifest["kind"]]
    if id(document) not in checked:
        strict(document["components"]["schemas"])
        checked.add(id(document))
    schema = {"$ref": "#/components/schemas/" + key, "components": document["components"]}
    for e in jsonschema.Draft4Validator(schema).iter_errors(manifest):
        print("%s %s: %s: %s" % (manifest["kind"], manifest["metadata"]["name"], e.json_path, e.message))
