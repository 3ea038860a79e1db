package config

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// place is the position of a key's value. Every part of a decoded document embeds one.
type place struct {
	path         string // such as ports[1].rate
	line, column int    // of the value; of the section around it if the value is not given
	given        bool   // written in the file
	valid        bool   // usable: given and valid, or a default
	twice        bool   // an earlier entry of the list has the same value
}

func (p *place) where() *place { return p }

func (p place) child(key string) place {
	if p.path != "" {
		key = p.path + "." + key
	}
	return place{path: key, line: p.line, column: p.column}
}

func (p place) item(i int) place {
	return place{path: p.path + "[" + strconv.Itoa(i) + "]", line: p.line, column: p.column}
}

// on moves a place to a node.
func (p place) on(n *yaml.Node) place {
	p.line, p.column, p.given = n.Line, n.Column, true
	return p
}

// reader is a value that reads itself from a node: a scalar, a list or a table. Structs without it are sections, whose keys are
// their fields.
type reader interface {
	read(r *decoder, n *yaml.Node, at place, rl rule)
	absent(r *decoder, at place, rl rule) // the key is not in the file: takes the default
	expects(rl rule) string               // for errors: the form of a valid value
}

// scalarValue is a reader with one value.
type scalarValue interface {
	reader
	value() any
	asWritten() string // in the file, or the default
}

// part is what a value consists of: a key of a section, an item of a list, an entry of a table.
type part struct {
	key  string // "" of an item
	v    reflect.Value
	rule rule // of a key
}

// partsOf are the parts of a section, a list or a table, in the order of the schema or the file. A scalar has none.
func partsOf(v reflect.Value) (parts []part) {
	switch items, entries := v.FieldByName("Items"), v.FieldByName("Entries"); {
	case items.IsValid():
		for i := range items.Len() {
			parts = append(parts, part{v: items.Index(i)})
		}
	case entries.IsValid():
		for i := range entries.Len() {
			parts = append(parts, part{key: v.FieldByName("Names").Index(i).String(), v: entries.Index(i)})
		}
	default:
		for _, f := range fieldsOf(v.Type()) {
			parts = append(parts, part{f.key, v.Field(f.index), f.rule})
		}
	}
	return parts
}

// placeOf is where a value is.
func placeOf(v reflect.Value) *place {
	return v.Addr().Interface().(interface{ where() *place }).where()
}

// rule has the rules for a value in its field's tags.
type rule struct {
	required bool
	def      string   // default, as it would be written in the file
	min, max string   // bounds of a scalar, or of each scalar in a list
	one      []string // the words that a choice takes
	items    int      // least number of items in a list
	most     int      // greatest number of items; 0: no bound
	reload   Reload   // what a change of it needs; 0: as for the section
	because  string   // why a change needs a restart; "": as for the section
	unique   string   // what to call a value that no two entries of a list may have; "": they may
	to       string   // the field that fill writes the value to
	optional bool     // a section without which none of its defaults applies

	thresholds bool // the control law makes it needless
}

// field is one key of a section.
type field struct {
	key   string
	index int
	rule  rule
}

// fieldsOf lists a section's keys in the order of the schema.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		key, ok := tag.Lookup("key")
		if !ok {
			continue
		}
		rl := rule{required: tag.Get("required") != "", def: tag.Get("default"), min: tag.Get("min"), max: tag.Get("max")}
		if words := tag.Get("one"); words != "" {
			rl.one = strings.Split(words, "|")
		}
		rl.items, _ = strconv.Atoi(tag.Get("items"))
		rl.most, _ = strconv.Atoi(tag.Get("most"))
		rl.thresholds, rl.optional = tag.Get("mode") == "thresholds", tag.Get("absent") == "off"
		rl.because, rl.unique, rl.to = tag.Get("because"), tag.Get("unique"), tag.Get("to")
		rl.reload = Reload(max(slices.Index(reloadNames, tag.Get("reload")), 0))
		fields = append(fields, field{key, i, rl})
	}
	return fields
}

const aliasRefused = "anchors and aliases are not supported; write the value out"

// decoder reads values from YAML by the rules of a schema.
type decoder struct{ *report }

// value reads a node into v, a section or a reader.
func (r *decoder) value(v reflect.Value, n *yaml.Node, at place, rl rule) {
	at = at.on(n)
	*placeOf(v) = at
	if !r.plain(n, at) {
		return
	}
	if x, ok := v.Addr().Interface().(reader); ok {
		x.read(r, n, at, rl)
		return
	}
	if n.Kind != yaml.MappingNode {
		r.mismatch(n, at, rl, "keys with values")
		return
	}
	r.section(v, n, at)
}

// plain refuses YAML features that make text stand for more than it shows: anchors, aliases and tags.
func (r *decoder) plain(n *yaml.Node, at place) bool {
	switch {
	case n.Kind == yaml.AliasNode, n.Anchor != "":
		r.problem(at, aliasRefused)
	case n.Style&yaml.TaggedStyle != 0:
		r.problem(at, "YAML tags (%s) are not supported; write the value alone", quote(n.Tag))
	default:
		return true
	}
	return false
}

// mismatch reports a node of the wrong kind.
func (r *decoder) mismatch(n *yaml.Node, at place, rl rule, expected string) {
	switch {
	case n.Kind == yaml.MappingNode:
		r.problem(at, "expected %s, found keys with values", expected)
	case n.Kind == yaml.SequenceNode:
		r.problem(at, "expected %s, found a list", expected)
	case n.Tag == "!!null" && rl.required:
		r.problem(at, "has no value; expected %s", expected)
	case n.Tag == "!!null":
		r.problem(at, "has no value; expected %s, or remove the key", expected)
	default:
		r.problem(at, "expected %s, found %s", expected, quote(n.Value))
	}
}

// section reads a mapping into the fields of a struct; n is nil if the file has none.
func (r *decoder) section(v reflect.Value, n *yaml.Node, at place) {
	at.valid = true
	*placeOf(v) = at
	fields := fieldsOf(v.Type())
	nodes := map[string]*yaml.Node{}
	if n != nil {
		nodes = r.entries(n, at, fields)
	}
	for _, f := range fields {
		child := at.child(f.key)
		if node := nodes[f.key]; node != nil {
			r.value(v.Field(f.index), node, child, f.rule)
			continue
		}
		r.missing(v.Field(f.index), child, f.rule)
	}
}

// missing handles a key that is not in the file.
func (r *decoder) missing(v reflect.Value, at place, rl rule) {
	x, isReader := v.Addr().Interface().(reader)
	switch {
	case rl.required && isReader:
		r.problem(at, "missing; expected %s", x.expects(rl))
	case rl.required:
		r.problem(at, "missing; expected a section with %s", mainKeys(v.Type()))
	case isReader:
		x.absent(r, at, rl)
	default:
		r.section(v, nil, at)
	}
}

// entries returns a mapping's values by key, and reports keys that are unknown or given twice.
func (r *decoder) entries(n *yaml.Node, at place, fields []field) map[string]*yaml.Node {
	known := keysOf(fields, false)
	nodes := map[string]*yaml.Node{}
	r.eachEntry(n, at, func(key string, keyAt place, value *yaml.Node) {
		if slices.Contains(known, key) {
			nodes[key] = value
			return
		}
		meant := nearest(key, known)
		before, behind, colon := strings.Cut(key, ":")
		switch {
		case colon && slices.Contains(known, before): // {name:gw1}
			r.problem(keyAt, "unknown key; a space is missing after the colon of %s: %s", before, quote(behind))
		case n.Style&yaml.FlowStyle != 0 && value.Tag == "!!null" && value.Value == "": // {device: net_tap0,iface=tap0}
			r.problem(keyAt, "unknown key without a value; if this is part of the value before it, quote that value. Known here: %s",
				strings.Join(known, ", "))
		case meant != "":
			r.problem(keyAt, "unknown key; did you mean %s? Known here: %s", meant, strings.Join(known, ", "))
		default:
			r.problem(keyAt, "unknown key; known here: %s", strings.Join(known, ", "))
		}
	})
	return nodes
}

// eachEntry visits a mapping's entries in the order of the file; it reports a key's second value and skips it.
func (r *decoder) eachEntry(n *yaml.Node, at place, visit func(key string, keyAt place, value *yaml.Node)) {
	seen := map[string]place{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode {
			r.problem(at.on(key), "a key must be a word")
			continue
		}
		keyAt := at.child(shortKey(key.Value)).on(key)
		if !r.plain(key, keyAt) {
			continue
		}
		if key.Tag == "!!merge" {
			r.problem(keyAt, "merge keys are not supported; write the keys out")
			continue
		}
		if first, twice := seen[key.Value]; twice {
			r.problem(keyAt, "given twice; the first is at %s", r.position(first))
			continue
		}
		seen[key.Value] = keyAt
		visit(key.Value, keyAt, n.Content[i+1])
	}
}

// shortKey is a key fit for a path in an error.
func shortKey(key string) string {
	if isName(key) {
		return key
	}
	return quote(key)
}

// mainKeys names a section's required keys, or all of them if none is required.
func mainKeys(t reflect.Type) string {
	fields := fieldsOf(t)
	if keys := keysOf(fields, true); len(keys) > 0 {
		return strings.Join(keys, ", ")
	}
	return either(keysOf(fields, false))
}

// keysOf names the fields' keys: all, or those that are required.
func keysOf(fields []field, required bool) []string {
	var keys []string
	for _, f := range fields {
		if f.rule.required || !required {
			keys = append(keys, f.key)
		}
	}
	return keys
}
