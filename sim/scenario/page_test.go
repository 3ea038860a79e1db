package scenario

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/yamldoc"
)

var keyRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\| ([^|]+) \\| ([^|]+) \\|$")

// TestPage: docs/simulator.md has a row for each key with a value, with its default and bounds, and for nothing else; and it names every response and NIC.
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
	for _, k := range yamldoc.Keys(document{}) {
		if !k.Leaf {
			continue
		}
		row := rows[k.Path]
		if row == nil {
			t.Errorf("the page has no row for %s", k.Path)
			continue
		}
		delete(rows, k.Path)
		checkRow(t, &k, row)
	}
	for path := range rows {
		t.Errorf("the page has a row for %s, which is not in the schema", path)
	}
	for _, name := range slices.Concat(responseNames[:], NICs()) {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("the page doesn't name %s", name)
		}
	}
}

func checkRow(t *testing.T, k *yamldoc.Key, row []string) {
	def := strings.TrimSpace(row[1])
	want := k.Default
	switch {
	case k.Required && def != "required":
		t.Errorf("%s: default is %q, want required", k.Path, def)
	case want != "" && def != "`"+want+"`":
		t.Errorf("%s: default is %q on the page and %q in the schema", k.Path, def, want)
	case want == "" && strings.HasPrefix(def, "`"):
		t.Errorf("%s: default is %q on the page, there is none in the schema", k.Path, def)
	}
	for _, said := range append([]string{k.Min, k.Max}, k.Words...) {
		if !strings.Contains(row[0], said) {
			t.Errorf("%s: %q is not in the page's type, %q", k.Path, said, row[0])
		}
	}
}

// TestObeys: the words of obeys are the formats, and these are all kinds that go to a sender, one for each section of the configuration.
func TestObeys(t *testing.T) {
	var names, sections []string
	for _, k := range nicFormats {
		names, sections = append(names, k.String()), append(sections, k.Section())
	}
	for _, of := range []reflect.Type{reflect.TypeFor[hostsSection](), reflect.TypeFor[nicDocument]()} {
		f, _ := of.FieldByName("Obeys")
		if got, want := f.Tag.Get("one"), strings.Join(names, "|"); got != want {
			t.Errorf("schema.go: the words of obeys in %s are %q, expected those of nicFormats, %q", of.Name(), got, want)
		}
	}
	for k := range packet.Notification(packet.SenderNotifications) {
		if !slices.Contains(sections, k.Section()) {
			t.Errorf("hosts.go: nicFormats has no %v", k)
		}
	}
}
