package docs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/telemetry"
)

// oldNames are those that were used before for what has one name now.
var oldNames = []string{"source", "destination", "state"}

// usage is where each name is used: report, API, log, metrics (labels) and YAML.
type usage map[string][]string

func (u usage) add(name, where string) {
	if !slices.Contains(u[name], where) {
		u[name] = append(u[name], where)
	}
}

// TestNames: each name that the report, the log and the labels of metrics use has a description in openapi.json, or a row in the table of names of
// api.md with where it is used, and the table has no other. So whoever adds a name sees those that there are. Metrics have a table of their own.
func TestNames(t *testing.T) {
	used, described := allNames(t)
	listed := map[string]string{}
	for line := range strings.Lines(below(t, readPage(t, "api.md"), "## Names")) {
		if row := cells(strings.TrimSpace(line)); len(row) == 3 && strings.HasPrefix(row[0], "`") {
			listed[strings.Trim(row[0], "`")] = row[1]
		}
	}
	for name, where := range used {
		if slices.Contains(oldNames, name) {
			t.Errorf("%s is not a name any more, but %v use it", name, where)
		}
		if described[name] {
			continue
		}
		if want := strings.Join(where, ", "); listed[name] != want {
			t.Errorf("api.md, Names: the row of %s is %q; expected | `%s` | %s | what it is |, unless openapi.json describes it "+
				"(go test ./control/api -run Current -update writes it)", name, listed[name], name, want)
		}
		delete(listed, name)
	}
	if len(listed) > 0 {
		t.Errorf("api.md, Names: nothing but the API uses %v", listed)
	}
}

// allNames gathers the names. The keys of the configuration count only where something else uses them, as configuration.md describes them.
// The second result are those that the OpenAPI document describes.
func allNames(t *testing.T) (used usage, described map[string]bool) {
	t.Helper()
	used = usage{}
	jsonNames(reflect.TypeFor[report.Report](), used)
	described = apiNames(t, used)
	logNames(t, used)
	for _, m := range telemetry.All() {
		for _, label := range m.Labels() {
			used.add(label, "metrics")
		}
		delete(used, m.Name)
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(readPage(t, "configuration.md"), -1) {
		if key := m[1][strings.LastIndex(m[1], ".")+1:]; used[key] != nil {
			used.add(key, "YAML")
		}
	}
	return used, described
}

// jsonNames adds the members of a type of the report.
func jsonNames(typ reflect.Type, used usage) {
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice:
		jsonNames(typ.Elem(), used)
	case reflect.Struct:
		for i := range typ.NumField() {
			f := typ.Field(i)
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				used.add(name, "report")
			}
			if f.IsExported() && strings.Contains(f.Type.String(), "report.") {
				jsonNames(f.Type, used)
			}
		}
	}
}

// apiNames adds the members and parameters of the OpenAPI document that are not deprecated, and returns those that it describes: all must be, but
// for members that refer to a schema of their own.
func apiNames(t *testing.T, used usage) map[string]bool {
	t.Helper()
	described := map[string]bool{}
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct {
					Deprecated  bool
					Description string
					Ref         string `json:"$ref"`
				}
			}
		}
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name, Description string
				Deprecated        bool
			}
		}
	}
	if err := json.Unmarshal([]byte(readPage(t, "openapi.json")), &doc); err != nil {
		t.Fatal(err)
	}
	for name, s := range doc.Components.Schemas {
		for property, p := range s.Properties {
			if !p.Deprecated && name != "Values" {
				used.add(property, "API")
				described[property] = true
				if p.Description == "" && p.Ref == "" {
					t.Errorf("openapi.json does not describe %s.%s", name, property)
				}
			}
		}
	}
	for _, methods := range doc.Paths {
		for _, o := range methods {
			for _, p := range o.Parameters {
				if !p.Deprecated {
					used.add(p.Name, "API")
					if described[p.Name] = true; p.Description == "" {
						t.Errorf("openapi.json does not describe the parameter %s", p.Name)
					}
				}
			}
		}
	}
	return described
}

var logCall = regexp.MustCompile(`\.(?:Any|Bool|Dict|Dur|Float64|Hex|Int|Ints|Int64|Str|Stringer|Strs|Time|Uint64|Uint32|Uint)\("([^"]+)",`)

// logs finds the files that write to the log.
var logs = regexp.MustCompile(`rs/zerolog|\b[Ll]og\.(?:Debug|Info|Warn|Error)\(`)

// logNames adds the keys of log events.
func logNames(t *testing.T, used usage) {
	t.Helper()
	for _, pattern := range []string{"../control/*.go", "../control/*/*.go", "../control/*/*/*.go", "../cmd/cnpgate/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, "_test.go") || !logs.Match(text) {
				continue
			}
			for _, m := range logCall.FindAllStringSubmatch(string(text), -1) {
				used.add(m[1], "log")
			}
		}
	}
	for _, name := range []string{zerolog.TimestampFieldName, zerolog.LevelFieldName, zerolog.MessageFieldName, zerolog.ErrorFieldName} {
		used.add(name, "log")
	}
}

// TestLogSentences: messages of the log are sentences: they begin with a capital letter and end with a full stop.
func TestLogSentences(t *testing.T) {
	message, n := regexp.MustCompile(`\bMsg\(("(?:[^"\\]|\\.)*")?(.*)\)`), 0
	for _, pattern := range []string{"../control/*.go", "../control/*/*.go", "../cmd/cnpgate/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, m := range message.FindAllStringSubmatch(readPage(t, file), -1) {
				text := strings.Trim(m[1], `"`)
				if text == "" {
					continue // a variable
				}
				n++
				if text[0] < 'A' || text[0] > 'Z' || m[2] == "" && !strings.HasSuffix(text, ".") || m[2] != "" && !strings.HasSuffix(m[2], `"."`) {
					t.Errorf("%s: the message %s%s is not a sentence", file, m[1], m[2])
				}
			}
		}
	}
	if n < 20 {
		t.Errorf("%d messages found, expected more", n)
	}
}

// below is the part of a page below a heading.
func below(t *testing.T, page, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, "\n"+heading+"\n")
	if !ok {
		t.Fatalf("the page has no %q", heading)
	}
	before, _, _ := strings.Cut(rest, "\n## ")
	return before
}
