package config

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/yamldoc"
)

var update = flag.Bool("update", false, "write the golden files of testdata/good and the expected errors of testdata/bad anew")

func files(t testing.TB, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// wanted is the error text that the comments at the head of a bad configuration give, a line each.
func wanted(data []byte) []string {
	var want []string
	for line := range strings.Lines(string(data)) {
		text, ok := strings.CutPrefix(line, "# want: ")
		if !ok {
			break
		}
		want = append(want, strings.TrimSuffix(text, "\n"))
	}
	return want
}

func TestBadConfigurations(t *testing.T) {
	names := files(t, "testdata/bad/*.yaml")
	if len(names) < 60 {
		t.Fatalf("found %d cases", len(names))
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			data := read(t, name)
			cfg, err := Parse(filepath.Base(name), data)
			if err == nil || cfg != nil {
				t.Fatalf("accepted: %+v, %v", cfg, err)
			}
			want := strings.Join(wanted(data), "\n")
			if *update && want != "" { // as many lines, so that the positions stay
				text := bytes.TrimPrefix(data, []byte("# want: "+strings.ReplaceAll(want, "\n", "\n# want: ")))
				if err := os.WriteFile(name, append([]byte("# want: "+strings.ReplaceAll(err.Error(), "\n", "\n# want: ")), text...), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got := err.Error(); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func TestGoodConfigurations(t *testing.T) {
	for _, name := range files(t, "testdata/good/*.yaml") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			cfg, err := Parse(filepath.Base(name), read(t, name))
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			if string(cfg.File.Text) != string(read(t, name)) || cfg.File.Name != filepath.Base(name) {
				t.Errorf("the snapshot is of the file %s with %d octets", cfg.File.Name, len(cfg.File.Text))
			}
			flatten(&b, "", reflect.ValueOf(*cfg))
			golden := strings.TrimSuffix(name, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want := string(read(t, golden)); b.String() != want {
				t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
			}
		})
	}
}

// flatten writes a snapshot as one line a value, also of tables without exported fields.
func flatten(b *strings.Builder, path string, v reflect.Value) {
	isText := false
	if v.CanInterface() {
		_, isText = v.Interface().(fmt.Stringer)
	}
	switch {
	case v.Kind() == reflect.Struct && !isText:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.Type != reflect.TypeFor[File]() && f.Name != "doc" && f.Name != "root" && f.Name != "file" {
				flatten(b, strings.TrimPrefix(path+"."+f.Name, "."), v.Field(i))
			}
		}
	case v.Kind() == reflect.Slice && v.Len() > 0:
		for i := range v.Len() {
			flatten(b, fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
	case v.Kind() == reflect.Pointer && !v.IsNil():
		flatten(b, path, v.Elem())
	case v.Kind() != reflect.Func:
		fmt.Fprintf(b, "%s = %v\n", path, v)
	}
}

// What other parts of the program rely on, checked without a golden file.
func TestDraftExample(t *testing.T) {
	cfg, err := Load("testdata/good/draft_example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	wan := cfg.Ports[1]
	if wan.Policy.KMax != 125_000_000 || wan.Policy.KMin != 62_500_000 || wan.Capacity != 250_000_000 || wan.Frames != 244140 {
		t.Errorf("wan0: %+v", wan)
	}
	if wan.Peer != 0 || cfg.Ports[0].Peer != 1 || cfg.Ports[0].Role != dataplane.Fabric || wan.Role != dataplane.WAN {
		t.Errorf("pairing: %+v", cfg.Ports)
	}
	want := []QPPair{{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.4"), 100, 200, "", ""}}
	if !reflect.DeepEqual(cfg.QPMap, want) {
		t.Errorf("qp_map: %v", cfg.QPMap)
	}
}

// Files that can't hold their own expectation in a comment.
func TestBadText(t *testing.T) {
	long := append([]byte("# "), make([]byte, yamldoc.MaxFile)...)
	for _, c := range []struct {
		name, data, want string
	}{
		{"empty", "", "f:1:1: the file is empty; expected at least the sections gateway and ports"},
		{"comments only", "# nothing\n\n", "f:1:1: the file is empty; expected at least the sections gateway and ports"},
		{"null", "---\n~\n", "f:1:1: the file is empty; expected at least the sections gateway and ports"},
		{"Latin-1", "gateway:\n  näme: caf\xe9\n", "f:2:12: byte 0xe9 is not UTF-8; expected a text file in UTF-8"},
		{"UTF-16", "\xff\xfea\x00", "f:1:1: byte 0xff is not UTF-8; expected a text file in UTF-8"},
		{"NUL", "gateway: \x00\n", "f:1:10: character U+0000 is not allowed in a configuration; remove it"},
		{"byte order mark inside", "a: 1\n\uFEFFb: 2\n", "f:2:1: character U+FEFF is not allowed in a configuration; remove it"},
		{"too long", string(long), "f:1:1: the file is too long; expected at most 4MiB"},
		{"UTF-16 without a mark", "g\x00", "f:1:2: character U+0000 is not allowed in a configuration; remove it"},
		{"byte order mark and a mistake", "\uFEFFgateway: x\nports: []\n", "f:1:10: gateway: expected keys with values, found \"x\"\n" +
			"f:2:8: ports: expected a list of at least 2, found 0"},
		{"CRLF and a mistake", "gateway: x\r\nports: []\r\n", "f:1:10: gateway: expected keys with values, found \"x\"\n" +
			"f:2:8: ports: expected a list of at least 2, found 0"},
		{"CRLF and a tab", "gateway:\r\n\tname: x\r\n", "f:2:1: a tab indents this line; expected spaces"},
		{"no space behind a colon", "gateway:\n  name: a\n  ipv4:x\n  ipv6: y\n", "f:3:3: not valid YAML: could not find expected ':'; " +
			"put a colon and a space between a key and its value, here or in the line above"},
		{"quote not closed", "gateway:\n  name: 'x\n", "f:2:3: not valid YAML: found unexpected end of stream; look for a quote that is not closed, here or above"},
		{"colon in a value", "gateway:\n  name: a: b\n", "f:2:3: not valid YAML: mapping values are not allowed in this context; " +
			"look for a colon within a value, which needs quotes, a colon without a space after it, a value before a section's keys, a wrong indent, or a quote that is not closed, here or above"},
		{"percent sign", "gateway:\n  name: %x\n", "f:2:3: not valid YAML: found character that cannot start any token; put quotes around a value that begins with %, @ or `"},
		{"escape", "gateway:\n  name: \"\\q\"\n", "f:2:3: not valid YAML: found unknown escape character; write a backslash within double quotes twice, or use single quotes"},
		{"list behind its key", "ports: - a\n", "f:1:1: not valid YAML: block sequence entries are not allowed in this context; begin a list on a new line below its key"},
		{"prefix without quotes", "endpoints: [{prefix: ::/0}]\n", "f:1:1: not valid YAML in or below this line: did not find expected node content; " +
			"look for a value that is missing, or that begins with a colon or a bracket and needs quotes, such as \"::/0\""},
		{"scalar", "gateway\n", `f:1:1: expected keys with values, found "gateway"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, err := Parse("f", []byte(c.data))
			if err == nil || err.Error() != c.want || cfg != nil {
				t.Errorf("got %v, %v\nwant %s", cfg, err, c.want)
			}
		})
	}
}

func TestByteOrderMarkInFront(t *testing.T) {
	data := append([]byte("\uFEFF"), read(t, "testdata/good/minimal.yaml")...)
	if _, err := Parse("f", data); err != nil {
		t.Error(err)
	}
}

// A file with a byte order mark or with the line ends of Windows is the same configuration.
func TestOtherEditors(t *testing.T) {
	text := string(read(t, "testdata/good/every_key.yaml"))
	want, err := Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse("f", []byte("\uFEFF"+strings.ReplaceAll(text, "\n", "\r\n")))
	if err != nil {
		t.Fatal(err)
	}
	got.File, want.File = File{}, File{}
	got.doc, got.root, got.file, want.doc, want.root, want.file = nil, nil, nil, nil, nil, nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestLoadUnreadable(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		path, want string
		is         error
	}{
		{filepath.Join(dir, "none.yaml"), "none.yaml: there is no such configuration file; check the path", fs.ErrNotExist},
		{dir, ": can't read the configuration file: is a directory; give the YAML file in this directory", nil},
	} {
		cfg, err := Load(c.path)
		if err == nil || cfg != nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: got %v, %v", c.path, cfg, err)
		}
	}
}

func TestErrorIsAList(t *testing.T) {
	_, err := Load("testdata/bad/more_than_twenty.yaml")
	var list *Error
	if !errors.As(err, &list) || len(list.Problems) != yamldoc.MaxProblems || list.Omitted != 3 {
		t.Fatalf("got %#v", err)
	}
	if p := list.Problems[0]; p.File != "testdata/bad/more_than_twenty.yaml" || p.Line == 0 || p.Column == 0 || p.Text == "" {
		t.Errorf("got %#v", p)
	}
}

// However many mistakes there are, the first ones by position are listed and the rest counted.
func TestErrorStaysSmall(t *testing.T) {
	var b strings.Builder
	b.WriteString("qp_map:\n")
	const n = 5000
	for range n {
		b.WriteString("  - {source_ip: x, destination_ip: 10.0.0.1, source_qp: 2, destination_qp: 3}\n")
	}
	_, err := Parse("f", []byte(b.String()))
	var list *Error
	if !errors.As(err, &list) || len(list.Problems) != yamldoc.MaxProblems || list.Omitted != n+2-yamldoc.MaxProblems { // and no gateway, no ports
		t.Fatalf("got %.200v", err)
	}
	if p := list.Problems[2]; p.Line != 2 || !strings.HasPrefix(p.Text, "qp_map[0].source_ip: ") {
		t.Errorf("third is %v", p)
	}
}

// Every configuration that comes with the program loads, without a warning.
func TestDeployedConfigurations(t *testing.T) {
	for _, name := range files(t, "../../deploy/*.yaml") {
		cfg, err := Load(name)
		if err != nil {
			t.Error(err)
		} else if len(cfg.Warnings) != 0 {
			t.Errorf("%s: %v", name, cfg.Warnings)
		}
	}
}
