package yamldoc

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"
)

// Key is a key of a schema.
type Key struct {
	Path     string // such as ports[].rate, or profiles.NAME.mode
	Required bool
	Default  string
	Min, Max string
	Words    []string // of a choice
	Needs    Needs    // of a change
	Because  string   // why a change needs a restart, if that isn't the reason of the section
	Leaf     bool     // it has no keys of its own
	List     bool
	Type     reflect.Type
	rule     *rule
}

// Keys are the keys of a schema, each before those below it.
func Keys(section any) []Key { return keysIn(reflect.TypeOf(section), "", Needs{Reload: Live}) }

func keysIn(t reflect.Type, path string, around Needs) (keys []Key) {
	for _, f := range fieldsOf(t) {
		at, rl := child(path, f.key), f.rule
		k := Key{Path: at, Required: rl.required == "yes", Default: rl.def, Min: rl.min, Max: rl.max, Words: rl.one, Needs: rl.needs.in(around), Because: rl.needs.Because,
			Type: f.of, rule: rl}
		below := k.Type
		switch shapeOf(below) {
		case list:
			below, at, k.List = below.Elem(), at+"[]", true
		case table:
			below, at = below.Field(1).Type.Elem(), at+".NAME"
		}
		var nested []Key
		if shapeOf(below) == section {
			nested = keysIn(below, at, k.Needs)
		}
		k.Leaf = len(nested) == 0
		keys = append(append(keys, k), nested...)
	}
	return keys
}

// Read reads a value of the key, as if the file had it.
func (k *Key) Read(d *Document, y *yaml.Node) {
	d.value(d.part(&Node{}, "", k.Path, reflect.New(k.Type).Elem(), k.rule), y)
}

// Expects is the form of a valid value.
func (k *Key) Expects(forms Forms) string { return forms.expects(k.Type, k.rule) }

// JSONSchema is a JSON Schema (draft-07, which editors support best) of a section, made from the schema. It describes the form of each value. Only
// Decode checks the bounds of values with units.
func JSONSchema(of any, forms Forms, title, description string) []byte {
	s := forms.sectionSchema(reflect.TypeOf(of), Needs{Reload: Live})
	s["$schema"], s["title"], s["description"] = "http://json-schema.org/draft-07/schema#", title, description
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err) // can't fail: maps of strings and numbers
	}
	return append(text, '\n')
}

func (f Forms) sectionSchema(t reflect.Type, around Needs) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, key := range fieldsOf(t) {
		rl := key.rule
		properties[key.key] = f.keySchema(key.of, rl, rl.needs.in(around))
		if rl.required != "" {
			required = append(required, key.key)
		}
	}
	s := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// keySchema is the schema of one key.
func (f Forms) keySchema(t reflect.Type, rl *rule, needs Needs) map[string]any {
	s := f.valueSchema(t, rl, needs)
	if shapeOf(t) == section {
		return s
	}
	s["description"] = strings.TrimSuffix(f.expects(t, rl), ", ") + ". Reload: " + needs.Reload.String() + "."
	if rl.def != "" {
		var value any
		if yaml.Unmarshal([]byte(rl.def), &value) == nil {
			s["default"] = value
		}
	}
	return s
}

func (f Forms) valueSchema(t reflect.Type, rl *rule, needs Needs) map[string]any {
	switch shapeOf(t) {
	case list:
		s := map[string]any{"type": "array", "items": f.valueSchema(t.Elem(), rl, needs)}
		if rl.items > 0 {
			s["minItems"] = rl.items
		}
		if rl.most > 0 {
			s["maxItems"] = rl.most
		}
		return s
	case table:
		return map[string]any{
			"type": "object", "propertyNames": map[string]any{"pattern": namePattern},
			"additionalProperties": f.valueSchema(t.Field(1).Type.Elem(), &rule{}, needs),
		}
	case scalar:
		return maps.Clone(f.of(t, rl).JSON)
	}
	return f.sectionSchema(t, needs)
}
