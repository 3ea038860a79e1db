package config

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestJSONSchemaIsCurrent: the file in deploy is the schema of what loads. -update writes it.
func TestJSONSchemaIsCurrent(t *testing.T) {
	const path = "../../deploy/cnpgate.schema.json"
	if *update {
		if err := os.WriteFile(path, JSONSchema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(have, JSONSchema()) {
		t.Errorf("%s is not the schema of what loads (%v): write it again with -update", path, err)
	}
}

// TestJSONSchemaIsComplete: no key is without a type, or a text without a form.
func TestJSONSchemaIsComplete(t *testing.T) {
	var s map[string]any
	if err := json.Unmarshal(JSONSchema(), &s); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	walkSchema(s, "", func(path string, s map[string]any) {
		found[path] = true
		if s["type"] == nil && s["enum"] == nil && s["anyOf"] == nil {
			t.Errorf("%s: no type in %v", path, s)
		}
		if s["type"] == "string" && s["pattern"] == "" {
			t.Errorf("%s: any text would do", path)
		}
	})
	for _, k := range allKeys() {
		if !found[k.Path] {
			t.Errorf("%s: not in the JSON Schema", k.Path)
		}
	}
}

// walkSchema visits the schemas of all keys, with the paths that schemaKeys gives them.
func walkSchema(s map[string]any, path string, visit func(string, map[string]any)) {
	if properties, ok := s["properties"].(map[string]any); ok {
		for key, below := range properties {
			child := strings.TrimPrefix(path+"."+key, ".")
			visit(child, below.(map[string]any))
			walkSchema(below.(map[string]any), child, visit)
		}
	}
	if items, ok := s["items"].(map[string]any); ok {
		walkSchema(items, path+"[]", visit)
	}
	if entries, ok := s["additionalProperties"].(map[string]any); ok {
		walkSchema(entries, path+".NAME", visit)
	}
}
