package config

import (
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"
)

// list is a sequence of sections or scalars.
type list[T any] struct {
	place
	Items []T
}

func (l *list[T]) read(r *decoder, n *yaml.Node, at place, rl rule) {
	l.place = at
	if n.Kind != yaml.SequenceNode {
		r.mismatch(n, at, rl, l.expects(rl))
		return
	}
	if len(n.Content) < rl.items {
		r.problem(at, "expected at least %d, found %d", rl.items, len(n.Content))
		return
	}
	if rl.most > 0 && len(n.Content) > rl.most {
		r.problem(at, "expected at most %d, found %d", rl.most, len(n.Content))
		return
	}
	l.valid = true
	l.Items = make([]T, len(n.Content))
	for i, node := range n.Content {
		r.value(reflect.ValueOf(&l.Items[i]).Elem(), node, at.item(i), rl)
	}
	r.checkUnique(reflect.ValueOf(l.Items), rl)
}

// checkUnique reports values that no two entries of a list may have: the entries, or keys of theirs.
func (r *decoder) checkUnique(items reflect.Value, rl rule) {
	for _, f := range append(fieldsOf(items.Type().Elem()), field{index: -1, rule: rl}) {
		seen := map[any]place{}
		for i := 0; i < items.Len() && f.rule.unique != ""; i++ {
			v := items.Index(i)
			if f.index >= 0 {
				v = v.Field(f.index)
			}
			if x, ok := v.Addr().Interface().(interface {
				checkUnique(*report, map[any]place, rule)
			}); ok {
				x.checkUnique(r.report, seen, f.rule)
			}
		}
	}
}

func (s *scalar[T, K]) checkUnique(r *report, seen map[any]place, rl rule) {
	if s.valid {
		s.twice = !unique(r, seen, any(s.V), s.place, strings.ReplaceAll(rl.unique, "%", s.text(rl)))
	}
}

// absent takes the default, which a tag gives as YAML.
func (l *list[T]) absent(r *decoder, at place, rl rule) {
	var doc yaml.Node
	if rl.def == "" || yaml.Unmarshal([]byte(rl.def), &doc) != nil {
		l.place = at
		return
	}
	l.read(r, doc.Content[0], at, rl)
	l.place = at
	l.valid = true
}

func (l *list[T]) expects(rl rule) string {
	if x, ok := any(new(T)).(reader); ok {
		return "a list, each entry " + x.expects(rl)
	}
	return "a list of sections with " + mainKeys(reflect.TypeFor[T]())
}

// table is a mapping with keys that the operator chooses.
type table[T any] struct {
	place
	Names   []string
	Entries []T
}

func (t *table[T]) read(r *decoder, n *yaml.Node, at place, rl rule) {
	t.place = at
	if n.Kind != yaml.MappingNode {
		r.mismatch(n, at, rl, t.expects(rl))
		return
	}
	t.valid = true
	var nodes []*yaml.Node
	r.eachEntry(n, at, func(key string, keyAt place, value *yaml.Node) {
		if !isName(key) {
			r.problem(keyAt, "not a name; expected %s", nameKind{}.Form(rule{}).expected)
			return
		}
		t.Names = append(t.Names, key)
		nodes = append(nodes, value)
	})
	t.Entries = make([]T, len(nodes))
	for i, node := range nodes {
		r.value(reflect.ValueOf(&t.Entries[i]).Elem(), node, at.child(t.Names[i]), rule{})
	}
}

func (t *table[T]) absent(_ *decoder, at place, _ rule) { t.place = at }

func (t *table[T]) expects(rule) string { return "names, each with a section of its own" }
