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
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// MaxFile bounds a configuration file, in octets: enough for some 40,000 entries of qp_map.
const MaxFile = 4 << 20

// Load reads and resolves the configuration file at path. The error of a file that can't be read wraps the system's; that of a file
// with mistakes is an *Error.
func Load(path string) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1)) // one octet more than Parse takes, so that it sees the file is too long
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
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: there is no such configuration file; check the path: %w", path, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: this user may not read the configuration file; check owner and mode: %w", path, err)
	}
	return fmt.Errorf("%s: can't read the configuration file: %w", path, err)
}

// Parse resolves the configuration in data; name stands for the file in errors and warnings. It returns a snapshot or an *Error,
// never both.
func Parse(name string, data []byte) (*Config, error) {
	r := &report{file: name}
	root := r.parseYAML(data)
	if root == nil {
		return nil, r.err()
	}
	doc := &document{}
	r.value(reflect.ValueOf(doc).Elem(), root, place{}, rule{})
	cfg := r.resolve(doc)
	if err := r.err(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(r.warnings, func(a, b Warning) int { return comparePositions(a.Position, b.Position) })
	cfg.Warnings = r.warnings
	return cfg, nil
}

// parseYAML gives the root of the one document in data, or nil and a problem.
func (r *report) parseYAML(data []byte) *yaml.Node {
	if len(data) > MaxFile {
		r.problem(place{}, "the file is too long; expected at most %s", formatUnits(MaxFile, sizeUnits))
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
		r.problem(place{}, "the file is empty; expected at least the sections gateway and ports")
		return nil
	}
	second, err := nextDocument(dec)
	if err != nil {
		r.syntax(data, err)
		return nil
	}
	if second != nil {
		r.problem(place{line: second.Line, column: second.Column}, "a second YAML document begins here; expected one a file")
		return nil
	}
	return doc.Content[0]
}

// nextDocument gives nil after the last document. The YAML package panics where it finds itself in a state it doesn't know; what a file
// can bring about must be an error.
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

// checkText finds the first octet that is no text: the YAML package would tell of it without a position.
func (r *report) checkText(data []byte) bool {
	line, column := 1, 1
	for i := 0; i < len(data); {
		c, size := utf8.DecodeRune(data[i:])
		at := place{line: line, column: column}
		switch {
		case c == utf8.RuneError && size <= 1:
			r.problem(at, "octet %#02x is not UTF-8; expected a text file in UTF-8", data[i])
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

// isText tells the printable characters of YAML 1.2, 5.1.
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

// syntax reports what the YAML package could not parse. It tells a line at best: for errors of its scanner the line of the mistake,
// for those of its parser one less (none for 0), of the mistake or of the block around it. The two commonest mistakes are looked
// for here.
func (r *report) syntax(data []byte, err error) {
	line, text := 0, err.Error()
	m := yamlError.FindStringSubmatch(text)
	if m != nil {
		line, _ = strconv.Atoi(m[1])
		text = m[2]
	}
	if m := unknownAnchor.FindStringSubmatch(text); m != nil {
		r.problem(placeOf(data, bytes.Index(data, []byte("*"+m[1]))), aliasRefused)
		return
	}
	if tab := tabIndent.FindIndex(data); tab != nil && (strings.Contains(text, "token") || strings.Contains(text, "tab character")) {
		r.problem(placeOf(data, tab[1]-1), "a tab indents this line; expected spaces")
		return
	}
	if parserError.MatchString(text) {
		r.problem(startOf(data, line+1), "not valid YAML in or below this line: %s; look for a wrong indent or an unclosed bracket", text)
		return
	}
	r.problem(startOf(data, max(line, 1)), "not valid YAML: %s", text)
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
	return placeOf(data, offset+len(rest)-len(bytes.TrimLeft(rest, " ")))
}

// placeOf counts lines and columns up to an offset.
func placeOf(data []byte, offset int) place {
	before := data[:max(offset, 0)]
	start := bytes.LastIndexByte(before, '\n') + 1
	return place{line: bytes.Count(before, []byte("\n")) + 1, column: utf8.RuneCount(before[start:]) + 1}
}
