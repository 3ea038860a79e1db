package main

import (
	"strings"
	"testing"
)

// TestFilled: words move to the next line of a narrow terminal; tables and paragraphs stay apart.
func TestFilled(t *testing.T) {
	const text = "One two three four five\nsix.\n\n  A  a table that is long\n  B  b\n\nSeven eight nine ten."
	const want = "One two three\nfour five six.\n\n  A  a table that is long\n  B  b\n\nSeven eight\nnine ten."
	if got := filled(text, 14); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestHelpOnTerminal: at 80 columns no line of the help is broken by the terminal, but those of tables.
func TestHelpOnTerminal(t *testing.T) {
	for _, name := range []string{"capture", "top", "show flows", "init"} {
		c, _, err := root().Find(strings.Fields(name))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(filled(c.Long, 80), "\n") {
			if len([]rune(line)) > 80 && !strings.HasPrefix(line, " ") {
				t.Errorf("%s: %d columns: %s", name, len([]rune(line)), line)
			}
		}
	}
}
