package config

import (
	"cmp"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"gopkg.in/yaml.v3"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// schemaKey is one key of the schema: path with [] for a list's entries and NAME for those of a table.
type schemaKey struct {
	path  string
	rule  rule
	needs needs
	leaf  bool // without keys of its own
	v     reflect.Value
}

// schemaKeys walks the schema.
func schemaKeys(t reflect.Type, path string, section needs) []schemaKey {
	var keys []schemaKey
	for _, f := range fieldsOf(t) {
		v := reflect.New(t.Field(f.index).Type).Elem()
		child := strings.TrimPrefix(path+"."+f.key, ".")
		below := v.Type()
		suffix := ""
		if items := v.FieldByName("Items"); items.IsValid() {
			below, suffix = items.Type().Elem(), "[]"
		} else if entries := v.FieldByName("Entries"); entries.IsValid() {
			below, suffix = entries.Type().Elem(), ".NAME"
		}
		takes := f.rule.needsIn(section)
		var nested []schemaKey
		if below.Kind() == reflect.Struct {
			nested = schemaKeys(below, child+suffix, takes)
		}
		keys = append(keys, schemaKey{child, f.rule, takes, len(nested) == 0, v})
		keys = append(keys, nested...)
	}
	return keys
}

func allKeys() []schemaKey { return schemaKeys(reflect.TypeFor[document](), "", needs{Live, ""}) }

// Every default and bound in the tags is one that the key itself would take.
func TestSchemaTags(t *testing.T) {
	for _, k := range allKeys() {
		x, ok := k.v.Addr().Interface().(reader)
		if !ok {
			continue
		}
		if s := x.expects(k.rule); s == "" {
			t.Errorf("%s: nothing to expect", k.path)
		}
		r := &report{}
		bare := rule{one: k.rule.one, min: k.rule.min, max: k.rule.max}
		for _, text := range []string{k.rule.def, k.rule.min, k.rule.max} {
			if bare.def = text; text == "" || k.v.FieldByName("Items").IsValid() && text != k.rule.def {
				continue
			}
			x.absent(&decoder{r}, place{path: k.path}, bare)
			if valid := k.v.Addr().Interface().(interface{ where() *place }).where().valid; !valid || len(r.problems) > 0 {
				t.Errorf("%s: %q in the tags is not valid: %v", k.path, text, r.problems)
			}
		}
	}
}

// The words in the tags are those of the constants.
func TestSchemaWords(t *testing.T) {
	formats := make([]string, packet.SenderNotifications)
	for f := range formats {
		formats[f] = Format(f).String()
	}
	names := map[string][]string{"management.log_level": LogLevels, "ports[].role": {dataplane.Fabric.String(), dataplane.WAN.String(), "tap"}, "ports[].mirrors": {dataplane.Fabric.String(), dataplane.WAN.String(), "both"}, "endpoints[].accepts": formats}
	for _, k := range allKeys() {
		if want, ok := names[k.path]; ok && !slices.Equal(k.rule.one, want) {
			t.Errorf("%s: %v, but the constants are %v", k.path, k.rule.one, want)
		}
		if k.path == "dpdk.burst" && k.rule.max != strconv.Itoa(burst.MaxSize) {
			t.Errorf("%s: at most %s, but a burst is at most %d", k.path, k.rule.max, burst.MaxSize)
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
		if key := k.path[strings.LastIndex(k.path, ".")+1:]; !regexp.MustCompile(`\b` + key + `:`).MatchString(good) {
			t.Errorf("%s: not in every_key.yaml", k.path)
		}
		word := func(text string) yaml.Node { return yaml.Node{Kind: yaml.ScalarNode, Value: text} }
		wrong := []yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!null"}, {Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: "no key"}, {}}}}
		isList := k.v.FieldByName("Items").IsValid()
		if k.leaf && !isList {
			wrong = append(wrong, word("\t"))
		}
		for bound, beyond := range map[string]float64{k.rule.min: -1, k.rule.max: 1} {
			digits := strings.TrimRightFunc(bound, func(c rune) bool { return unicode.IsLetter(c) || c == '/' })
			if v, err := strconv.ParseFloat(digits, 64); err == nil && !isList {
				wrong = append(wrong, word(strconv.FormatFloat(v+beyond, 'f', -1, 64)+bound[len(digits):]))
			}
		}
		for i := range wrong {
			r := &report{}
			(&decoder{r}).value(reflect.New(k.v.Type()).Elem(), &wrong[i], place{path: k.path}, k.rule)
			if len(r.problems) == 0 || !strings.HasPrefix(r.problems[0].Text, k.path) {
				t.Errorf("%s: %q is not refused: %v", k.path, wrong[i].Value, r.problems)
			}
		}
	}
}

// keyRow is a row of the reference. In a table of live keys only, the column of reload is left out.
var keyRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\| ([^|]+) \\|(?: (live|resize|restart) \\|)? ([^|]+) \\|$")

// docs/configuration.md has a row for each key but sections, which need none, with its default and its bounds, and for nothing else.
func TestReferencePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for _, m := range keyRow.FindAllStringSubmatch(string(page), -1) {
		if rows[m[1]] != nil {
			t.Errorf("the page has two rows for %s", m[1])
		}
		rows[m[1]] = m[2:]
	}
	for _, k := range allKeys() {
		row := rows[k.path]
		if row == nil {
			if k.leaf {
				t.Errorf("the page has no row for %s", k.path)
			}
			continue
		}
		delete(rows, k.path)
		switch def := strings.TrimSpace(row[1]); {
		case k.rule.required != (def == "required"):
			t.Errorf("%s: default is %q, required is %t", k.path, def, k.rule.required)
		case k.rule.def != "" && def != "`"+k.rule.def+"`":
			t.Errorf("%s: default is %q on the page and %q in the schema", k.path, def, k.rule.def)
		case k.rule.def == "" && strings.HasPrefix(def, "`"):
			t.Errorf("%s: default is %q on the page, there is none in the schema", k.path, def)
		}
		if column := cmp.Or(row[2], Live.String()); column != k.needs.reload.String() {
			t.Errorf("%s: reload is %q on the page, %q in the schema", k.path, column, k.needs.reload)
		}
		for _, said := range append([]string{k.rule.min, k.rule.max}, k.rule.one...) {
			if !strings.Contains(row[0], said) {
				t.Errorf("%s: %q is not in the page's type, %q", k.path, said, row[0])
			}
		}
	}
	for path := range rows {
		t.Errorf("the page has a row for %s, which is not in the schema", path)
	}
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
		if k.needs.reload != Restart {
			continue
		}
		if k.needs.because == "" {
			t.Errorf("%s needs a restart, and the schema doesn't say why", k.path)
		}
		if k.rule.because != "" && !said[k.path] {
			said[k.path] = true
			fmt.Fprintf(&table, "| `%s` | %s |\n", k.path, k.rule.because)
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
