package yamldoc

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"
)

// sections has the fields of each type of section that was read, so that the many entries of a long list share them.
var sections sync.Map

// fieldsOf lists a section's keys in the order of the schema.
func fieldsOf(t reflect.Type) []field {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if known, ok := sections.Load(t); ok {
		return known.([]field)
	}
	var fields []field
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		key, ok := tag.Lookup("key")
		if !ok || t.Field(i).Name == "_" {
			continue
		}
		get := tag.Get
		rl := rule{form: get("form"), required: get("required"), def: get("default"), min: get("min"), max: get("max"), unique: get("unique"), expects: get("expects"),
			with: get("with"), without: get("without"), mode: get("mode"), off: get("absent") == "off",
			needs: Needs{Reload(max(slices.Index(reloadNames, get("reload")), 0)), get("because")}}
		if words := get("one"); words != "" {
			rl.one = strings.Split(words, "|")
		}
		rl.items, _ = strconv.Atoi(get("items"))
		rl.most, _ = strconv.Atoi(get("most"))
		fields = append(fields, field{key, i, t.Field(i).Type, &rl})
	}
	sections.Store(t, fields)
	return fields
}

// removed is what to do about a key that a section had in an earlier version, "" if it had no such key.
func removed(section reflect.Type, key string) string {
	for i := range section.NumField() {
		if f := section.Field(i); f.Name == "_" && f.Tag.Get("key") == key {
			return f.Tag.Get("removed")
		}
	}
	return ""
}

const aliasRefused = "anchors and aliases are not supported; write the value out"

// value reads a node of YAML.
func (d *Document) value(n *Node, y *yaml.Node) {
	n.Line, n.Column, n.Given = y.Line, y.Column, true
	if !d.plain(n, y) {
		d.blank(n)
		return
	}
	shape := shapeOf(n.target.Type())
	kind := [...]yaml.Kind{section: yaml.MappingNode, scalar: yaml.ScalarNode, list: yaml.SequenceNode, table: yaml.MappingNode, embedded: yaml.MappingNode}
	if y.Kind != kind[shape] || y.Tag == "!!null" {
		d.mismatch(n, y)
		d.blank(n)
		return
	}
	switch shape {
	case scalar:
		d.scalar(n, y.Value)
	case list:
		d.list(n, y)
	case table:
		d.table(n, y)
	case embedded:
		n.target.Set(reflect.ValueOf(Embedded{y}))
		n.Valid = true
	default:
		d.section(n, y)
	}
}

// blank makes the nodes of a section with a mistake, so that others can be compared with its keys: none is given, or valid.
func (d *Document) blank(n *Node) {
	if shapeOf(n.target.Type()) != section {
		return
	}
	for _, f := range fieldsOf(n.target.Type()) {
		d.blank(d.part(n, f.key, child(n.Path, f.key), n.target.Field(f.index), f.rule))
	}
}

// plain refuses YAML features that make text stand for more than it shows: anchors, aliases and tags.
func (d *Document) plain(n *Node, y *yaml.Node) bool {
	switch {
	case y.Kind == yaml.AliasNode, y.Anchor != "":
		d.problem(n, aliasRefused)
	case y.Style&yaml.TaggedStyle != 0:
		d.problem(n, "YAML tags (%s) are not supported; write the value alone", Quote(y.Tag))
	default:
		return true
	}
	return false
}

// mismatch reports a node of the wrong kind.
func (d *Document) mismatch(n *Node, y *yaml.Node) {
	expected := "keys with values"
	if shapeOf(n.target.Type()) != section {
		expected = d.expects(n)
	}
	switch {
	case y.Kind == yaml.MappingNode:
		d.problem(n, "expected %s, found keys with values", expected)
	case y.Kind == yaml.SequenceNode:
		d.problem(n, "expected %s, found a list", expected)
	case y.Tag == "!!null" && n.rule.required == "yes":
		d.problem(n, "has no value; expected %s", expected)
	case y.Tag == "!!null":
		d.problem(n, "has no value; expected %s, or remove the key", expected)
	default:
		d.problem(n, "expected %s, found %s", expected, Quote(y.Value))
	}
}

// expects is the form of a valid value.
func (d *Document) expects(n *Node) string { return d.forms.expects(n.target.Type(), n.rule) }

func (f Forms) expects(t reflect.Type, rl *rule) string {
	switch shapeOf(t) {
	case scalar:
		return f.of(t, rl).Expected
	case list:
		if t = t.Elem(); shapeOf(t) == section {
			return "a list of sections with " + mainKeys(t)
		}
		return "a list, each entry " + f.expects(t, rl)
	case table:
		return "names, each with a section of its own"
	case embedded:
		return "keys with values"
	}
	return "a section with " + mainKeys(t)
}

// scalar reads a value from its text.
func (d *Document) scalar(n *Node, text string) {
	v, err := d.forms.of(n.target.Type(), n.rule).Parse(text)
	if err != nil {
		d.problem(n, "%s", err)
		return
	}
	n.value, n.Written, n.Valid = v, text, true
	store(n.target, v, n.rule.one)
	if n.Given {
		d.noteExample(n)
	}
}

// section reads a mapping into the fields of a struct; y is nil if the file has none.
func (d *Document) section(n *Node, y *yaml.Node) {
	n.Valid = true
	fields := fieldsOf(n.target.Type())
	nodes := map[string]*yaml.Node{}
	if y != nil {
		nodes = d.entries(n, y, fields)
	}
	for _, f := range fields {
		part := d.part(n, f.key, child(n.Path, f.key), n.target.Field(f.index), f.rule)
		if value := nodes[f.key]; value != nil {
			d.value(part, value)
		} else {
			d.missing(part, y != nil)
		}
		if to := n.target.Field(f.index); to.Kind() == reflect.Pointer && part.Given {
			to.Set(part.target.Addr())
		}
	}
	for _, part := range n.Parts {
		if other := n.sibling(part.rule.with); other != nil && part.Given && !other.Given {
			d.problem(part, "%s is not given; expected both, or neither", part.rule.with)
		}
		if other := n.sibling(part.rule.without); other != nil && part.Given && other.Given {
			d.problem(part, "%s is given too (%s); expected one of them", part.rule.without, d.position(other))
		}
	}
}

// sibling is the part of a section with a key, nil without the key.
func (n *Node) sibling(key string) *Node {
	for _, p := range n.Parts {
		if p.key == key && key != "" {
			return p
		}
	}
	return nil
}

// missing handles a key that is not in the file: it takes the default. given: its section is.
func (d *Document) missing(n *Node, given bool) {
	shape := shapeOf(n.target.Type())
	switch {
	case n.rule.required == "yes", n.rule.required == "given" && given:
		expected := n.rule.expects
		if expected == "" {
			expected = d.expects(n)
		}
		d.problem(n, "missing; expected %s", expected)
		d.blank(n)
	case shape == section:
		d.section(n, nil)
	case shape == table:
		n.Valid = true
	case n.rule.def == "":
	case shape == scalar:
		d.scalar(n, n.rule.def)
	default:
		var doc yaml.Node
		if yaml.Unmarshal([]byte(n.rule.def), &doc) == nil {
			d.list(n, doc.Content[0])
		}
	}
}

// entries returns a mapping's values by key, and reports keys that are unknown or given twice.
func (d *Document) entries(n *Node, y *yaml.Node, fields []field) map[string]*yaml.Node {
	known := keysOf(fields, false)
	nodes := map[string]*yaml.Node{}
	d.eachEntry(n, y, func(key string, at *Node, value *yaml.Node) {
		if slices.Contains(known, key) {
			nodes[key] = value
			return
		}
		if why := removed(n.target.Type(), key); why != "" {
			d.problem(at, "%s", why)
			return
		}
		meant := Nearest(key, known)
		before, behind, colon := strings.Cut(key, ":")
		switch {
		case colon && slices.Contains(known, before): // {name:gw1}
			d.problem(at, "unknown key; a space is missing after the colon of %s: %s", before, Quote(behind))
		case y.Style&yaml.FlowStyle != 0 && value.Tag == "!!null" && value.Value == "": // {device: net_tap0,iface=tap0}
			d.problem(at, "unknown key without a value; if this is part of the value before it, quote that value. Known here: %s", strings.Join(known, ", "))
		case meant != "":
			d.problem(at, "unknown key; did you mean %s? Known here: %s", meant, strings.Join(known, ", "))
		default:
			d.problem(at, "unknown key; known here: %s", strings.Join(known, ", "))
		}
	})
	return nodes
}

// eachEntry visits a mapping's entries in the order of the file; it reports a key's second value and skips it.
func (d *Document) eachEntry(n *Node, y *yaml.Node, visit func(key string, at *Node, value *yaml.Node)) {
	seen := map[string]*Node{}
	for i := 0; i+1 < len(y.Content); i += 2 {
		key := y.Content[i]
		if key.Kind != yaml.ScalarNode {
			d.problem(&Node{Path: n.Path, Line: key.Line, Column: key.Column}, "a key must be a word")
			continue
		}
		name := key.Value
		if !isName(name) {
			name = Quote(name)
		}
		at := &Node{Path: child(n.Path, name), Line: key.Line, Column: key.Column}
		if !d.plain(at, key) {
			continue
		}
		if key.Tag == "!!merge" {
			d.problem(at, "merge keys are not supported; write the keys out")
			continue
		}
		if first := seen[key.Value]; first != nil {
			d.problem(at, "given twice; the first is at %s", d.position(first))
			continue
		}
		seen[key.Value] = at
		visit(key.Value, at, y.Content[i+1])
	}
}

// list reads a sequence, of the file or of a default.
func (d *Document) list(n *Node, y *yaml.Node) {
	if rl := n.rule; len(y.Content) < rl.items {
		d.problem(n, "expected a list of at least %d, found %d", rl.items, len(y.Content))
		return
	} else if rl.most > 0 && len(y.Content) > rl.most {
		d.problem(n, "expected a list of at most %d, found %d", rl.most, len(y.Content))
		return
	}
	n.Valid = true
	n.target.Set(reflect.MakeSlice(n.target.Type(), len(y.Content), len(y.Content)))
	for i, value := range y.Content {
		part := d.part(n, "", item(n.Path, i), n.target.Index(i), n.rule)
		if n.Given {
			d.value(part, value)
		} else {
			d.scalar(part, value.Value)
		}
	}
	d.CheckUnique(n, n.rule.unique)
}

// CheckUnique reports values that no two entries of a list may have: the entries, which an error calls what, or keys of theirs by their tags.
func (d *Document) CheckUnique(address any, what string) {
	n := d.At(address)
	seen := map[any]map[any]*Node{}
	check := func(key string, v *Node, what string) {
		if what == "" || !v.Valid || v.value == nil {
			return
		}
		if seen[key] == nil {
			seen[key] = map[any]*Node{}
		}
		v.Twice = !Unique(d, seen[key], v.value, v, strings.ReplaceAll(what, "%", v.text()))
	}
	for _, entry := range n.Parts {
		check("", entry, what)
		for _, part := range entry.Parts {
			check(part.key, part, part.rule.unique)
		}
	}
}

// table reads a mapping with keys that the operator chooses.
func (d *Document) table(n *Node, y *yaml.Node) {
	n.Valid = true
	var names []string
	var nodes []*yaml.Node
	d.eachEntry(n, y, func(key string, at *Node, value *yaml.Node) {
		if !isName(key) {
			d.problem(at, "not a name; expected %s", d.forms.named("name", &rule{}).Expected)
			return
		}
		names, nodes = append(names, key), append(nodes, value)
	})
	entries := n.target.Field(1)
	n.target.Field(0).Set(reflect.ValueOf(names))
	entries.Set(reflect.MakeSlice(entries.Type(), len(nodes), len(nodes)))
	for i, value := range nodes {
		d.value(d.part(n, names[i], child(n.Path, names[i]), entries.Index(i), &rule{}), value)
	}
}

// mainKeys names a section's required keys, or all of them if none is required.
func mainKeys(t reflect.Type) string {
	fields := fieldsOf(t)
	if keys := keysOf(fields, true); len(keys) > 0 {
		return strings.Join(keys, ", ")
	}
	return Either(keysOf(fields, false))
}

// keysOf names the fields' keys: all, or those that are required.
func keysOf(fields []field, required bool) []string {
	var keys []string
	for _, f := range fields {
		if f.rule.required == "yes" || !required {
			keys = append(keys, f.key)
		}
	}
	return keys
}
