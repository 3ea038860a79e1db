package api

import (
	"os"
	"strings"
	"testing"
)

// TestTables: the page has each form of the columns that it gets, and each column of text has a description for the help.
func TestTables(t *testing.T) {
	text, err := os.ReadFile("../../web/src/live/columns.js")
	if err != nil {
		t.Fatal(err)
	}
	for name, all := range PageTables() {
		if len(all) == 0 {
			t.Errorf("%s has no columns on the page", name)
		}
		for _, c := range all {
			if c.As != "" && !strings.Contains(string(text), "\n  "+string(c.As)) {
				t.Errorf("%s: the page has no form %q, which the column %q has", name, c.As, c.Title)
			}
		}
	}
	for _, c := range append(Flows.Text(), Senders.Text()...) {
		if c.Doc == "" {
			t.Errorf("column %s has no description", c.Name)
		}
	}
}
