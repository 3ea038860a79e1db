package config

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"gopkg.in/yaml.v3"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/yamldoc"
)

func allKeys() []yamldoc.Key { return yamldoc.Keys(document{}) }

// Every default and bound in the tags is one that the key itself would take.
func TestSchemaTags(t *testing.T) {
	for _, k := range allKeys() {
		if k.Expects(forms) == "" {
			t.Errorf("%s: nothing to expect", k.Path)
		}
		for _, text := range []string{k.Default, k.Min, k.Max} {
			if text == "" || k.List && text != k.Default {
				continue
			}
			var doc yaml.Node
			if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
				t.Fatal(err)
			}
			d := yamldoc.New("", forms)
			if k.Read(d, doc.Content[0]); d.Err() != nil {
				t.Errorf("%s: %q in the tags is not valid: %v", k.Path, text, d.Err())
			}
		}
	}
}

// The words in the tags are those of the constants.
func TestSchemaWords(t *testing.T) {
	names := map[string][]string{"management.log_level": LogLevels, "ports[].role": {dataplane.Fabric.String(), dataplane.WAN.String(), "tap"}, "ports[].mirrors": {dataplane.Fabric.String(), dataplane.WAN.String(), "both"}}
	for _, k := range allKeys() {
		if want, ok := names[k.Path]; ok && !slices.Equal(k.Words, want) {
			t.Errorf("%s: %v, but the constants are %v", k.Path, k.Words, want)
		}
		if k.Path == "dpdk.burst" && k.Max != strconv.Itoa(burst.MaxSize) {
			t.Errorf("%s: at most %s, but a burst is at most %d", k.Path, k.Max, burst.MaxSize)
		}
	}
	if dataplane.WAN.String() != "wan" || dataplane.Role(99).String() != "unknown" {
		t.Error("constants and names differ")
	}
}

// Every key has a value in testdata/good, and refuses values of another form and outside its bounds or words. Files in testdata/bad have the texts.
func TestEveryKeyHasCases(t *testing.T) {
	good := string(read(t, "testdata/good/every_key.yaml")) + string(read(t, "testdata/good/tap.yaml")) + string(read(t, "testdata/good/tap_both.yaml")) + // a tap excludes other keys
		string(read(t, "testdata/good/fleet_servers.yaml")) // servers exclude embedded
	for _, k := range allKeys() {
		if key := k.Path[strings.LastIndex(k.Path, ".")+1:]; !regexp.MustCompile(`\b` + key + `:`).MatchString(good) {
			t.Errorf("%s: not in every_key.yaml", k.Path)
		}
		word := func(text string) yaml.Node { return yaml.Node{Kind: yaml.ScalarNode, Value: text} }
		wrong := []yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!null"}, {Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: "no key"}, {}}}}
		isList := k.List
		if k.Leaf && !isList {
			wrong = append(wrong, word("\t"))
		}
		for bound, beyond := range map[string]float64{k.Min: -1, k.Max: 1} {
			digits := strings.TrimRightFunc(bound, func(c rune) bool { return unicode.IsLetter(c) || c == '/' })
			if v, err := strconv.ParseFloat(digits, 64); err == nil && !isList {
				wrong = append(wrong, word(strconv.FormatFloat(v+beyond, 'f', -1, 64)+bound[len(digits):]))
			}
		}
		for i := range wrong {
			d := yamldoc.New("f", forms)
			k.Read(d, &wrong[i])
			if err := d.Err(); err == nil || !strings.HasPrefix(err.Error(), "f:1:1: "+k.Path) {
				t.Errorf("%s: %q is not refused: %v", k.Path, wrong[i].Value, err)
			}
		}
	}
}

// keyRow is a row of the reference. In a table of live keys only, the column of reload is left out.
var keyRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\| ([^|]+) \\|(?: (live|resize|restart) \\|)? ([^|]+) \\|$")

// docs/configuration.md has a row for each key but sections, which need none, with its default and its bounds, and for nothing else. -update writes the
// rows anew: their meaning stays, and so does a type that names all bounds and words. A new row has "?" as its meaning.
func TestReferencePage(t *testing.T) {
	const path = "../../docs/configuration.md"
	page := string(read(t, path))
	rows := map[string][]string{}
	for _, m := range keyRow.FindAllStringSubmatch(page, -1) {
		if rows[m[1]] != nil {
			t.Errorf("the page has two rows for %s", m[1])
		}
		rows[m[1]] = m
	}
	want, last := page, ""
	for _, k := range allKeys() {
		row := rows[k.Path]
		delete(rows, k.Path)
		if row == nil && !k.Leaf {
			continue
		}
		line := referenceRow(&k, row, strings.Count(last, " | ") > 3)
		if row != nil {
			want = strings.Replace(want, row[0], line, 1)
		} else {
			want = strings.Replace(want, last, last+"\n"+line, 1)
		}
		if last = line; strings.HasSuffix(line, " ? |") {
			t.Errorf("%s: no meaning; write it in place of the question mark", k.Path)
		}
	}
	for _, row := range rows { // of keys that are no more
		want = strings.Replace(want, row[0]+"\n", "", 1)
	}
	if *update && want != page {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(page, "\n")
	for n, line := range strings.Split(want, "\n") {
		if n >= len(lines) || lines[n] != line {
			t.Fatalf("line %d of the page isn't what the schema says; write it again with -update:\n%s", n+1, line)
		}
	}
}

// named has the names of the forms with a unit, whose bounds show the unit.
var named = strings.NewReplacer("a number with unit, such as 10ms, 500us or 60s", "duration", "a number with unit, such as 64KB, 1.5GiB or 1500B", "size",
	"a number with unit, such as 100Gbps, 10Mbps or 100kbps", "rate")

// TestNewRow: the row of a key that the page doesn't have yet.
func TestNewRow(t *testing.T) {
	for _, k := range allKeys() {
		row := map[string]string{"ports[].rtt": "duration, 0s to 10s", "ports[].rate": "rate, 100kbps to 10Tbps", "flows.capacity": "a whole number, perhaps with Ki (1024) or Mi (1048576)"}[k.Path]
		if got := referenceRow(&k, nil, true); row != "" && !strings.HasPrefix(got, "| `"+k.Path+"` | "+row) {
			t.Errorf("%s, want %s", got, row)
		}
	}
}

// referenceRow is the row of a key, given the page's, nil if that has none. In a table of live keys only, the column of reload is left out.
func referenceRow(k *yamldoc.Key, row []string, reload bool) string {
	form, def, meaning := named.Replace(strings.TrimSuffix(k.Expects(forms), ", ")), "none", "?"
	if bounds := k.Min + " to " + k.Max; k.Min != "" && k.Max != "" && !strings.Contains(form, bounds) {
		form += ", " + bounds
	}
	if row != nil {
		missing := func(said string) bool { return !strings.Contains(row[2], said) }
		if !slices.ContainsFunc(append([]string{k.Min, k.Max}, k.Words...), missing) {
			form = row[2]
		}
		reload, meaning = row[4] != "", row[5]
		if def = row[3]; strings.HasPrefix(def, "`") || def == "required" {
			def = "none"
		}
	}
	switch {
	case k.Required:
		def = "required"
	case k.Default != "":
		def = "`" + k.Default + "`"
	}
	columns := []string{"`" + k.Path + "`", form, def, k.Needs.Reload.String(), meaning}
	if !reload && k.Needs.Reload == yamldoc.Live {
		columns = slices.Delete(columns, 3, 4)
	}
	return "| " + strings.Join(columns, " | ") + " |"
}

// docs/configuration.md lists the reasons for which keys need a restart, each with its keys, as the schema has them.
func TestRestartReasons(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	said := map[string]bool{}
	for _, k := range allKeys() {
		if k.Needs.Reload != yamldoc.Restart {
			continue
		}
		if k.Needs.Because == "" {
			t.Errorf("%s needs a restart, and the schema doesn't say why", k.Path)
		}
		if k.Because != "" && !said[k.Path] {
			said[k.Path] = true
			fmt.Fprintf(&table, "| `%s` | %s |\n", k.Path, k.Because)
		}
	}
	if !strings.Contains(string(page), table.String()) {
		t.Errorf("the page doesn't have the rows\n%s", &table)
	}
}

// The examples on the page are configurations that load.
func TestReferencePageExamples(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	if len(examples) < 2 {
		t.Fatalf("found %d examples", len(examples))
	}
	for i, m := range examples {
		if _, err := Parse("example "+strconv.Itoa(i+1), m[1]); err != nil {
			t.Error(err)
		}
	}
}
