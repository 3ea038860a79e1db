//go:build secondopinion

package config

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// validate reads a schema and values, one JSON document a line, and prints for each value "" or what is wrong with it.
const validate = `
import json, sys, jsonschema
lines = sys.stdin.read().splitlines()
schema = json.loads(lines[0])
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)
for line in lines[1:]:
    print("; ".join("%s: %s" % (e.json_path, e.message.replace("\n", " ")) for e in validator.iter_errors(json.loads(line))))
`

// opinions are what python3-jsonschema says of configurations: "" for one that fits the schema.
func opinions(t *testing.T, files []string, texts [][]byte) []string {
	t.Helper()
	var input strings.Builder
	input.WriteString(strings.ReplaceAll(string(JSONSchema()), "\n", " ") + "\n")
	for i, text := range texts {
		var value any
		if err := yaml.Unmarshal(text, &value); err != nil {
			t.Fatalf("%s: %v", files[i], err)
		}
		line, err := json.Marshal(value)
		if err != nil {
			t.Fatalf("%s: %v", files[i], err)
		}
		input.Write(append(line, '\n'))
	}
	cmd := exec.Command("/usr/bin/python3", "-c", validate)
	cmd.Stdin = strings.NewReader(input.String())
	out, err := cmd.Output()
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if err != nil || len(lines) != len(files) {
		t.Fatalf("%v: %d files, %d answers (Debian's python3-jsonschema is needed)", err, len(files), len(lines))
	}
	return lines
}

// TestJSONSchemaTakesWhatLoads: every example, and every good case, fits the schema.
func TestJSONSchemaTakesWhatLoads(t *testing.T) {
	good := append(files(t, "testdata/good/*.yaml"), files(t, "../../deploy/*.yaml")...)
	var texts [][]byte
	for _, name := range good {
		texts = append(texts, read(t, name))
	}
	for i, opinion := range opinions(t, good, texts) {
		if opinion != "" {
			t.Errorf("%s: %s", good[i], opinion)
		}
	}
}

// wrongForm is in the error about a value whose form is wrong, as opposed to what it means or, with a unit, how large it is.
var wrongForm = regexp.MustCompile(`unknown key|: missing; expected (a|an|letters|what|either|[a-z-]+ or) |is not known|found a list|found keys with values|has no value|` +
	`is not (a (whole number|number|number with unit|size|rate|duration|switch|length|count|name|prefix)|an address with port)[;,]|expected at (least|most) \d+, found`)

// beyond is in the errors that a schema for YAML's values can't have: it sees true for False, and requires no key only where another one is.
var beyond = regexp.MustCompile(`octal|"False"|or no domain section|which may be empty|proxy\.bgp\.as: missing`)

// TestJSONSchemaRefusesBadForms: what Parse refuses for the form of a value, or for a key, the schema refuses too.
func TestJSONSchemaRefusesBadForms(t *testing.T) {
	var bad []string
	var texts [][]byte
	for _, name := range files(t, "testdata/bad/*.yaml") {
		var value any
		text := read(t, name)
		if yaml.Unmarshal(text, &value) != nil || strings.HasPrefix(filepath.Base(name), "yaml_") {
			continue
		}
		for _, line := range wanted(text) {
			if wrongForm.MatchString(line) && !beyond.MatchString(line) {
				bad, texts = append(bad, name), append(texts, text)
				break
			}
		}
	}
	if len(bad) < 60 {
		t.Fatalf("only %d cases", len(bad))
	}
	for i, opinion := range opinions(t, bad, texts) {
		if opinion == "" {
			t.Errorf("%s fits the schema", bad[i])
		}
	}
	t.Logf("%d cases", len(bad))
}
