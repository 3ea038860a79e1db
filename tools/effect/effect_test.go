package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestPut(t *testing.T) {
	page := filepath.Join(t.TempDir(), "effect.md")
	before := "a\n\n<!-- scripts/effect one -->\n\n| x |\n|---|\n| 1 |\n\n| y |\n\nb\n\n<!-- scripts/effect two -->\n\n| z |\n\nc\n"
	if err := os.WriteFile(page, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := put(page, "one", []string{"| x |", "|---|", "| 2 |"}); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(page)
	if expected := "a\n\n<!-- scripts/effect one -->\n\n| x |\n|---|\n| 2 |\n\nb\n\n<!-- scripts/effect two -->\n\n| z |\n\nc\n"; err != nil || string(after) != expected {
		t.Errorf("%v: %q, expected %q", err, after, expected)
	}
	if err := put(page, "three", nil); err == nil {
		t.Error("a table without a place is put")
	}
}

func TestParse(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "topology.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line, failure string
		expected      request
	}{
		{"root", "", request{root: "root", tables: []string{"draws", "scenarios", "networks"}}},
		{"root --docs networks themis " + dir, "", request{root: "root", docs: true, tables: []string{"networks", "themis"}, lists: dir}},
		{"root themis", "needs a folder", request{}},
		{"root themis " + dir + "/none", "topology.txt", request{}},
		{"root --fast", "--fast is no table", request{}},
	} {
		got, err := parse(strings.Fields(c.line))
		if c.failure == "" && (err != nil || !reflect.DeepEqual(got, c.expected)) || c.failure != "" && (err == nil || !strings.Contains(err.Error(), c.failure)) {
			t.Errorf("%s: %+v, %v; expected %+v, %s", c.line, got, err, c.expected, c.failure)
		}
	}
}

func TestWorse(t *testing.T) {
	var before, after tried
	for i := range before {
		before[i].All.Goodput, after[i].All.Goodput = 100, 100
	}
	after[7].All.Goodput, after[7].Scenario = 50, "draw-4-8"
	before[3].Lost, after[5].Dropped = 10, 25
	if w := worse(before, after); w.part != 0.5 || w.where != "draw-4-8" || w.lost != 15 {
		t.Errorf("%+v", w)
	}
}
