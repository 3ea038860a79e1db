package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/cnpgate/cnpgate/internal/units"
)

// MaxFile bounds a configuration file, in bytes: enough for some 40,000 entries of qp_map.
const MaxFile = 4 << 20

// Load reads and resolves the configuration file at path. If the file can't be read, the error wraps the system's; if it has
// mistakes, the error is an *Error.
func Load(path string) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer f.Close()
	return Read(path, f)
}

// Read reads and resolves a configuration; path is its name in errors and warnings.
func Read(path string, f io.Reader) (*Config, error) {
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1)) // one byte more than Parse takes, so that it sees the file is too long
	if err != nil {
		return nil, unreadable(path, err)
	}
	return Parse(path, data)
}

func unreadable(path string, err error) error {
	var cause *fs.PathError
	if errors.As(err, &cause) {
		err = cause.Err
	}
	switch {
	case path == "":
		return errors.New("the name of the configuration file is empty; expected a path")
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: there is no such configuration file; check the path: %w", path, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: this user may not read the configuration file; check owner and mode: %w", path, err)
	}
	if errors.Is(err, syscall.EISDIR) {
		return fmt.Errorf("%s: can't read the configuration file: %w; give the YAML file in this directory", path, err)
	}
	return fmt.Errorf("%s: can't read the configuration file: %w", path, err)
}

// Parse resolves the configuration in data; name is the file's name in errors and warnings. It returns a snapshot or an *Error,
// never both.
func Parse(name string, data []byte) (*Config, error) {
	r := &report{file: name, needs: "gateway and ports"}
	d, doc := decoder{r}, &document{}
	root := d.parseYAML(data)
	if root == nil {
		return nil, r.err()
	}
	d.value(reflect.ValueOf(doc).Elem(), root, place{}, rule{})
	cfg := (&resolver{r, doc}).resolve()
	if err := r.err(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(r.warnings, func(a, b Warning) int { return comparePositions(a.Position, b.Position) })
	cfg.Warnings, cfg.File = r.warnings, File{name, data}
	return cfg, nil
}

// parseYAML returns the root of the only document in data, or reports a problem and returns nil.
func (r *decoder) parseYAML(data []byte) *yaml.Node {
	if len(data) > MaxFile {
		r.problem(place{}, "the file is too long; expected at most %s", units.Exact(MaxFile, units.Sizes))
		return nil
	}
	if !r.checkText(data) {
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	doc, err := nextDocument(dec)
	if err != nil {
		r.syntax(data, err)
		return nil
	}
	if doc == nil || len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" {
		r.problem(place{}, "the file is empty; expected at least the sections %s", r.needs)
		return nil
	}
	second, err := nextDocument(dec)
	if err != nil {
		r.syntax(data, err)
		return nil
	}
	if second != nil {
		r.problem(place{line: second.Line, column: second.Column}, "a second YAML document begins here; expected one per file")
		return nil
	}
	return doc.Content[0]
}

// nextDocument returns nil after the last document. It turns panics of the YAML package into errors: no file may cause a
// panic.
func nextDocument(dec *yaml.Decoder) (doc *yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			doc, err = nil, fmt.Errorf("yaml: %v", p)
		}
	}()
	doc = &yaml.Node{}
	if err := dec.Decode(doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return doc, nil
}

// checkText finds the first byte that is not text: the YAML package's error has no position.
func (r *decoder) checkText(data []byte) bool {
	line, column := 1, 1
	for i := 0; i < len(data); {
		c, size := utf8.DecodeRune(data[i:])
		at := place{line: line, column: column}
		switch {
		case c == utf8.RuneError && size <= 1:
			r.problem(at, "byte %#02x is not UTF-8; expected a text file in UTF-8", data[i])
			return false
		case !isText(c) && !(c == '\uFEFF' && i == 0):
			r.problem(at, "character U+%04X is not allowed in a configuration; remove it", c)
			return false
		}
		if column++; c == '\n' {
			line, column = line+1, 1
		}
		i += size
	}
	return true
}

// isText reports whether a character is printable (YAML 1.2, 5.1).
func isText(c rune) bool {
	switch {
	case c == '\t', c == '\n', c == '\r', c == 0x85:
		return true
	case c < 0x20, c >= 0x7F && c < 0xA0, c == '\uFEFF', c == 0xFFFE, c == 0xFFFF:
		return false
	}
	return true
}

var (
	yamlError     = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)
	parserError   = regexp.MustCompile(`^did not find expected (<|node|'-'|key|',')|^found (duplicate|incompatible|undefined)`)
	unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
	tabIndent     = regexp.MustCompile(`(?m)^ *\t`)
)

// syntax reports what the YAML package could not parse. The package's errors have a line at most: scanner errors that of the
// mistake; parser errors one less (none for 0) than that of the mistake or of the block around it. syntax itself looks for the
// two most common mistakes.
func (r *decoder) syntax(data []byte, err error) {
	line, text := 0, err.Error()
	m := yamlError.FindStringSubmatch(text)
	if m != nil {
		line, _ = strconv.Atoi(m[1])
		text = m[2]
	}
	if m := unknownAnchor.FindStringSubmatch(text); m != nil {
		r.problem(placeAt(data, bytes.Index(data, []byte("*"+m[1]))), aliasRefused)
		return
	}
	if tab := tabIndent.FindIndex(data); tab != nil && (strings.Contains(text, "token") || strings.Contains(text, "tab character")) {
		r.problem(placeAt(data, tab[1]-1), "a tab indents this line; expected spaces")
		return
	}
	if strings.Contains(text, "expected node content") {
		r.problem(startOf(data, line+1), "not valid YAML in or below this line: %s; look for a value that is missing, or that begins with a colon "+
			"or a bracket and needs quotes, such as \"::/0\"", text)
		return
	}
	if parserError.MatchString(text) {
		r.problem(startOf(data, line+1), "not valid YAML in or below this line: %s; look for a wrong indent or an unclosed bracket", text)
		return
	}
	r.problem(startOf(data, max(line, 1)), "not valid YAML: %s%s", text, scannerHint(text))
}

// scannerHint is the most likely cause of an error of the YAML package's scanner; "" if there is none.
func scannerHint(text string) string {
	for _, hint := range []struct{ part, advice string }{
		{"mapping values are not allowed", "look for a colon within a value, which needs quotes, a colon without a space after it, a value before a section's keys, a wrong indent, " +
			"or a quote that is not closed, here or above"},
		{"cannot start any token", "put quotes around a value that begins with %, @ or `"},
		{"could not find expected ':'", "put a colon and a space between a key and its value, here or in the line above"},
		{"unexpected end of stream", "look for a quote that is not closed, here or above"},
		{"unknown escape character", "write a backslash within double quotes twice, or use single quotes"},
		{"block sequence entries are not allowed", "begin a list on a new line below its key"},
	} {
		if strings.Contains(text, hint.part) {
			return "; " + hint.advice
		}
	}
	return ""
}

// startOf is the place of the first character of a line that is not blank.
func startOf(data []byte, line int) place {
	offset := 0
	for range line - 1 {
		next := bytes.IndexByte(data[offset:], '\n')
		if next < 0 {
			break
		}
		offset += next + 1
	}
	rest := data[offset:]
	return placeAt(data, offset+len(rest)-len(bytes.TrimLeft(rest, " ")))
}

// placeAt counts lines and columns up to an offset.
func placeAt(data []byte, offset int) place {
	before := data[:max(offset, 0)]
	start := bytes.LastIndexByte(before, '\n') + 1
	return place{line: bytes.Count(before, []byte("\n")) + 1, column: utf8.RuneCount(before[start:]) + 1}
}
