package main

import (
	"encoding/json"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnpgate/cnpgate/control/config"
)

// TestFew: commands, flags and keys don't become more. Who adds one merges or removes another, or gives a reason for a higher limit here.
func TestFew(t *testing.T) {
	commands, flags := 0, 0
	var count func(c *cobra.Command)
	count = func(c *cobra.Command) {
		commands++
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" {
				flags++
			}
		})
		for _, below := range c.Commands() {
			count(below)
		}
	}
	count(root())
	var schema schemaNode
	if err := json.Unmarshal(config.JSONSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what       string
		have, most int
	}{{"commands", commands, 42}, {"flags", flags, 242}, {"keys that aren't sections", countKeys(t, &schema), 191}} {
		if c.have > c.most {
			t.Errorf("%d %s, expected at most %d", c.have, c.what, c.most)
		}
	}
}

// countKeys counts the keys below a node that have a value of their own.
func countKeys(t *testing.T, n *schemaNode) (keys int) {
	for _, below := range n.Properties {
		if below.Properties == nil {
			keys++
		}
		if below.Items != nil {
			keys += countKeys(t, below.Items)
		}
		if names := below.AdditionalProperties; len(names) > 0 && names[0] == '{' {
			var inner schemaNode
			if err := json.Unmarshal(names, &inner); err != nil {
				t.Fatal(err)
			}
			keys += countKeys(t, &inner)
		}
		keys += countKeys(t, &below)
	}
	return keys
}
