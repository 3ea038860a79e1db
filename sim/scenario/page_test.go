package scenario

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/sim/scenarios"
)

// key is one key of the schema: path with [] for a list's entries and NAME for those of a table.
type key struct {
	path string
	tag  reflect.StructTag
	leaf bool
}

// keys walks the schema.
func keys(t reflect.Type, path string) (all []key) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, ok := f.Tag.Lookup("key")
		if !ok {
			continue
		}
		child, below := strings.TrimPrefix(path+"."+name, "."), f.Type
		suffix := ""
		if items, ok := below.FieldByName("Items"); ok {
			below, suffix = items.Type.Elem(), "[]"
		} else if entries, ok := below.FieldByName("Entries"); ok {
			below, suffix = entries.Type.Elem(), ".NAME"
		}
		var nested []key
		if _, isSection := below.FieldByName("Section"); isSection {
			nested = keys(below, child+suffix)
		}
		all = append(all, key{child, f.Tag, len(nested) == 0})
		all = append(all, nested...)
	}
	return all
}

var keyRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\| ([^|]+) \\| ([^|]+) \\|$")

// TestPage: docs/simulator.md has a row for each key with a value, with its default and bounds, and for nothing else; and it names every scenario
// and response.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	_, section, _ := strings.Cut(string(page), "\n## Keys\n")
	for _, m := range keyRow.FindAllStringSubmatch(section, -1) {
		if rows[m[1]] != nil {
			t.Errorf("the page has two rows for %s", m[1])
		}
		rows[m[1]] = m[2:]
	}
	for _, k := range keys(reflect.TypeFor[document](), "") {
		if !k.leaf {
			continue
		}
		row := rows[k.path]
		if row == nil {
			t.Errorf("the page has no row for %s", k.path)
			continue
		}
		delete(rows, k.path)
		checkRow(t, &k, row)
	}
	for path := range rows {
		t.Errorf("the page has a row for %s, which is not in the schema", path)
	}
	for _, name := range append(scenarios.Names(), responseNames[:]...) {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("the page doesn't name %s", name)
		}
	}
}

func checkRow(t *testing.T, k *key, row []string) {
	def := strings.TrimSpace(row[1])
	want := k.tag.Get("default")
	switch {
	case k.tag.Get("required") != "" && def != "required":
		t.Errorf("%s: default is %q, want required", k.path, def)
	case want != "" && def != "`"+want+"`":
		t.Errorf("%s: default is %q on the page and %q in the schema", k.path, def, want)
	case want == "" && strings.HasPrefix(def, "`"):
		t.Errorf("%s: default is %q on the page, there is none in the schema", k.path, def)
	}
	for _, said := range append([]string{k.tag.Get("min"), k.tag.Get("max")}, strings.Split(k.tag.Get("one"), "|")...) {
		if !strings.Contains(row[0], said) {
			t.Errorf("%s: %q is not in the page's type, %q", k.path, said, row[0])
		}
	}
}
