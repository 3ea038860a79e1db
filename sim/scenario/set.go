package scenario

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Setting replaces a value of a scenario, such as topology.dumbbell.spans[0].delay=5ms.
type Setting struct{ Key, Value string }

// ParseSetting reads KEY=VALUE.
func ParseSetting(text string) (Setting, error) {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" || value == "" {
		return Setting{}, fmt.Errorf("%q sets nothing; expected KEY=VALUE, such as hosts.mtu=1024", text)
	}
	return Setting{key, value}, nil
}

// apply sets the value in the tree of a document. It adds missing sections, but no list entries.
func (o *Setting) apply(root *yaml.Node) error {
	at := root
	for _, part := range strings.Split(o.Key, ".") {
		name, indexes, _ := strings.Cut(part, "[")
		if at.Kind != yaml.MappingNode {
			return fmt.Errorf("%s: there are no keys where %s should be; expected the path of a key in the scenario", o.Key, name)
		}
		at = entry(at, name)
		for indexes != "" {
			index, rest, _ := strings.Cut(indexes, "]")
			n, err := strconv.Atoi(index)
			if err != nil || at.Kind != yaml.SequenceNode || n < 0 || n >= len(at.Content) {
				return fmt.Errorf("%s: %s has no entry %q; expected the number of one, counted from 0", o.Key, name, index)
			}
			at, indexes = at.Content[n], strings.TrimPrefix(rest, "[")
		}
	}
	var value yaml.Node
	if err := yaml.Unmarshal([]byte(o.Value), &value); err != nil || len(value.Content) != 1 {
		return fmt.Errorf("%s: %q is not a YAML value; expected one that the key allows", o.Key, o.Value)
	}
	line, column := at.Line, at.Column
	*at = *value.Content[0]
	at.Line, at.Column = line, column
	return nil
}

// entry returns the value of a key, and adds the key if it is missing.
func entry(mapping *yaml.Node, key string) *yaml.Node {
	if value := find(mapping, key); value != nil {
		return value
	}
	value := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: mapping.Line, Column: mapping.Column}
	mapping.Content = append(mapping.Content, scalar(mapping, key), value)
	return value
}

// find returns the value of a key, nil if the key is missing.
func find(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// scalar makes a plain value at the position of another node.
func scalar(where *yaml.Node, text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Line: where.Line, Column: where.Column}
}

// setDefault adds a key if it is missing.
func setDefault(mapping *yaml.Node, key, value string) {
	if mapping.Kind != yaml.MappingNode {
		return
	}
	n := len(mapping.Content)
	if e := entry(mapping, key); len(mapping.Content) > n {
		*e = *scalar(mapping, value)
	}
}

// setPrefix adds a key with a list of one prefix.
func setPrefix(mapping *yaml.Node, key string, p netip.Prefix) {
	list := entry(mapping, key)
	list.Kind, list.Tag, list.Content = yaml.SequenceNode, "!!seq", []*yaml.Node{scalar(mapping, p.String())}
}

func clone(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for i := range n.Content {
		c.Content[i] = clone(n.Content[i])
	}
	return &c
}
