package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/cnpgate/cnpgate/internal/units"
)

// MaxFile bounds a document, in bytes: enough for some 40,000 entries of a configuration's qp_map.
const MaxFile = 4 << 20

// parse returns the root of the only document in data, or reports a problem and returns nil.
func (d *Document) parse(data []byte, needs string) *yaml.Node {
	if len(data) > MaxFile {
		d.problem(&Node{}, "the file is too long; expected at most %s", units.Exact(MaxFile, units.Sizes))
		return nil
	}
	if !d.checkText(data) {
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	doc, err := nextDocument(dec)
	if err != nil {
		d.syntax(data, err)
		return nil
	}
	if doc == nil || len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" {
		d.problem(&Node{}, "the file is empty; expected at least the sections %s", needs)
		return nil
	}
	second, err := nextDocument(dec)
	if err != nil {
		d.syntax(data, err)
		return nil
	}
	if second != nil {
		d.problem(&Node{Line: second.Line, Column: second.Column}, "a second YAML document begins here; expected one per file")
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
func (d *Document) checkText(data []byte) bool {
	line, column := 1, 1
	for i := 0; i < len(data); {
		c, size := utf8.DecodeRune(data[i:])
		at := &Node{Line: line, Column: column}
		switch {
		case c == utf8.RuneError && size <= 1:
			d.problem(at, "byte %#02x is not UTF-8; expected a text file in UTF-8", data[i])
			return false
		case !isText(c) && !(c == '\uFEFF' && i == 0):
			d.problem(at, "character U+%04X is not allowed in a configuration; remove it", c)
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
func (d *Document) syntax(data []byte, err error) {
	line, text := 0, err.Error()
	m := yamlError.FindStringSubmatch(text)
	if m != nil {
		line, _ = strconv.Atoi(m[1])
		text = m[2]
	}
	if m := unknownAnchor.FindStringSubmatch(text); m != nil {
		d.problem(placeAt(data, bytes.Index(data, []byte("*"+m[1]))), aliasRefused)
		return
	}
	if tab := tabIndent.FindIndex(data); tab != nil && (strings.Contains(text, "token") || strings.Contains(text, "tab character")) {
		d.problem(placeAt(data, tab[1]-1), "a tab indents this line; expected spaces")
		return
	}
	if strings.Contains(text, "expected node content") {
		d.problem(startOf(data, line+1), "not valid YAML in or below this line: %s; look for a value that is missing, or that begins with a colon "+
			"or a bracket and needs quotes, such as \"::/0\"", text)
		return
	}
	if parserError.MatchString(text) {
		d.problem(startOf(data, line+1), "not valid YAML in or below this line: %s; look for a wrong indent or an unclosed bracket", text)
		return
	}
	d.problem(startOf(data, max(line, 1)), "not valid YAML: %s%s", text, scannerHint(text))
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
func startOf(data []byte, line int) *Node {
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
func placeAt(data []byte, offset int) *Node {
	before := data[:max(offset, 0)]
	start := bytes.LastIndexByte(before, '\n') + 1
	return &Node{Line: bytes.Count(before, []byte("\n")) + 1, Column: utf8.RuneCount(before[start:]) + 1}
}
