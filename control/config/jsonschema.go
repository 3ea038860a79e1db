package config

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/cnpgate/cnpgate/internal/units"
)

// JSONSchema is a JSON Schema (draft-07, which editors support best) of a configuration file, made from the schema. It describes the form of each
// value. Only Parse checks rules between values and the bounds of values with units.
func JSONSchema() []byte {
	s := sectionSchema(reflect.TypeFor[document](), needs{Live, ""})
	s["$schema"] = "http://json-schema.org/draft-07/schema#"
	s["title"] = "cnpgate configuration"
	s["description"] = "docs/configuration.md describes each key. cnpgate check also checks rules between values and the bounds of values with units."
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err) // can't fail: maps of strings and numbers
	}
	return append(text, '\n')
}

// jsonSchema is a schema or a part of one.
type jsonSchema map[string]any

func sectionSchema(t reflect.Type, n needs) jsonSchema {
	properties, required := jsonSchema{}, []string{}
	for _, f := range fieldsOf(t) {
		properties[f.key] = keySchema(reflect.New(t.Field(f.index).Type), f.rule, f.rule.needsIn(n))
		if f.rule.required {
			required = append(required, f.key)
		}
	}
	s := jsonSchema{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// keySchema is the schema of one key; v points to its value.
func keySchema(v reflect.Value, rl rule, n needs) jsonSchema {
	s := valueSchema(v, rl, n)
	x, ok := v.Interface().(reader)
	if !ok {
		return s
	}
	s["description"] = strings.TrimSuffix(x.expects(rl), ", ") + ". Reload: " + n.reload.String() + "."
	if rl.def != "" {
		var value any
		if yaml.Unmarshal([]byte(rl.def), &value) == nil {
			s["default"] = value
		}
	}
	return s
}

func valueSchema(v reflect.Value, rl rule, n needs) jsonSchema {
	if items := v.Elem().FieldByName("Items"); items.IsValid() {
		s := jsonSchema{"type": "array", "items": valueSchema(reflect.New(items.Type().Elem()), rl, n)}
		if rl.items > 0 {
			s["minItems"] = rl.items
		}
		if rl.most > 0 {
			s["maxItems"] = rl.most
		}
		return s
	}
	if entries := v.Elem().FieldByName("Entries"); entries.IsValid() {
		return jsonSchema{
			"type": "object", "propertyNames": jsonSchema{"pattern": namePattern},
			"additionalProperties": valueSchema(reflect.New(entries.Type().Elem()), rule{}, n),
		}
	}
	if _, ok := v.Interface().(reader); !ok {
		return sectionSchema(v.Elem().Type(), n)
	}
	return scalarSchema(v.Interface(), rl)
}

// namePattern is the pattern of isName.
var namePattern = "^[A-Za-z0-9._-]{1," + strconv.Itoa(maxName) + "}$"

// patterns are the forms of values that YAML has no type for.
var patterns = map[reflect.Type]string{
	reflect.TypeFor[*text]():     `\S`,
	reflect.TypeFor[*name]():     namePattern,
	reflect.TypeFor[*device]():   `^[^-\s]\S*$`,
	reflect.TypeFor[*size]():     unitPattern(units.Sizes),
	reflect.TypeFor[*rate]():     unitPattern(units.Rates),
	reflect.TypeFor[*length]():   unitPattern(units.Lengths),
	reflect.TypeFor[*duration](): `^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`,
	reflect.TypeFor[*address]():  `^[0-9A-Fa-f:.]+$`,
	reflect.TypeFor[*routed]():   `^[0-9A-Fa-f:.]+$`,
	reflect.TypeFor[*address4](): `^[0-9.]+$`,
	reflect.TypeFor[*address6](): `^[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*$`,
	reflect.TypeFor[*cidr]():     `^[0-9A-Fa-f:.]+/[0-9]{1,3}$`,
	reflect.TypeFor[*socket]():   `^.+:[0-9]{1,5}$`,
	reflect.TypeFor[*listener](): "^" + unixPrefix + "/",

	reflect.TypeFor[*tags]():   `^(none|(0x[0-9a-fA-F]{4}:)?[0-9]{1,4}(/(0x[0-9a-fA-F]{4}:)?[0-9]{1,4})?)$`,
	reflect.TypeFor[*tunnel](): `^(vxlan|gre|ip-in-ip|mpls|srv6)(:[0-9]+)?$`,

	reflect.TypeFor[*perSecond](): `^[0-9]+/s$`,
	reflect.TypeFor[*count]():     `^[0-9]+(\.[0-9]+)?(Ki|Mi)$`,
}

func unitPattern(of []units.Unit) string {
	var names []string
	for _, u := range of {
		names = append(names, regexp.QuoteMeta(u.Name))
	}
	return `^[0-9]+(\.[0-9]+)?(` + strings.Join(names, "|") + `)$`
}

// scalarSchema is the schema of a scalar; v points to it.
func scalarSchema(v any, rl rule) jsonSchema {
	text := jsonSchema{"type": "string", "pattern": patterns[reflect.TypeOf(v)]}
	switch v.(type) {
	case *toggle:
		return jsonSchema{"type": "boolean"}
	case *integer:
		return bounds(jsonSchema{"type": "integer"}, rl)
	case *decimal:
		return bounds(jsonSchema{"type": "number"}, rl)
	case *choice, *accepted:
		return jsonSchema{"enum": rl.one}
	case *count:
		return jsonSchema{"anyOf": []jsonSchema{bounds(jsonSchema{"type": "integer"}, rl), text}}
	case *tags:
		return jsonSchema{"anyOf": []jsonSchema{text, {"type": "integer", "minimum": 0, "maximum": 4094}}}
	case *duration, *perSecond: // 0 needs no unit
		return jsonSchema{"anyOf": []jsonSchema{text, {"const": 0}}}
	}
	return text
}

// bounds adds those of a number.
func bounds(s jsonSchema, rl rule) jsonSchema {
	number := func(text string) jsonSchema {
		key := map[bool]string{true: "minimum", false: "maximum"}[text == rl.min]
		if n, err := parseInteger(text); err == nil {
			return jsonSchema{key: n}
		}
		if n, err := parseCount(text); err == nil {
			return jsonSchema{key: n}
		}
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return jsonSchema{key: n}
		}
		return nil
	}
	maps.Copy(s, number(rl.min))
	maps.Copy(s, number(rl.max))
	return s
}
