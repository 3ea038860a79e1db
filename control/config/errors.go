package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// MaxProblems bounds the mistakes that one error lists.
const MaxProblems = 20

// Position is a place in a configuration file. Lines and columns count from 1, columns in characters.
type Position struct {
	File         string
	Line, Column int
}

func (p Position) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

// Problem is one mistake: where it is, which key it is about, what was expected.
type Problem struct {
	Position
	Text string
}

func (p Problem) String() string { return p.Position.String() + ": " + p.Text }

// Warning is a setting that has no effect or is unlikely to be intended. The configuration is valid.
type Warning struct {
	Position
	Text string
}

func (w Warning) String() string { return w.Position.String() + ": " + w.Text }

// Error has the mistakes found in a file.
type Error struct {
	Problems []Problem // by position, at least one, at most MaxProblems
	Omitted  int       // mistakes found after these
}

// Error gives a line for each problem.
func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Problems)+1)
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	if e.Omitted > 0 {
		lines = append(lines, fmt.Sprintf("%s: and %d more", e.Problems[0].File, e.Omitted))
	}
	return strings.Join(lines, "\n")
}

// report collects the mistakes and warnings about one file.
type report struct {
	file     string
	needs    string // the sections that a file must have
	problems []Problem
	omitted  int
	warnings []Warning
	examples []example // in the order of the file
}

// problem notes a mistake at a key's value. The text begins with the key's path.
func (r *report) problem(at place, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if at.path != "" {
		text = at.path + ": " + text
	}
	r.problems = append(r.problems, Problem{r.position(at), text})
	if len(r.problems) >= 64*MaxProblems { // bounds the memory for a file full of mistakes
		r.trim()
	}
}

func (r *report) warn(at place, format string, args ...any) {
	r.warnings = append(r.warnings, Warning{r.position(at), at.path + ": " + fmt.Sprintf(format, args...)})
}

// unknownName reports a reference to a name that doesn't exist.
func (r *report) unknownName(at place, text, what string, names []string) {
	switch meant := nearest(text, names); {
	case len(names) == 0:
		r.problem(at, "there is no %s %s; none is defined", what, quote(text))
	case meant != "":
		r.problem(at, "there is no %s %s; did you mean %s? Expected %s", what, quote(text), meant, either(names))
	default:
		r.problem(at, "there is no %s %s; expected %s", what, quote(text), either(names))
	}
}

// position is the printed form of a place: one without a line is the whole file.
func (r *report) position(at place) Position {
	return Position{r.file, max(at.line, 1), max(at.column, 1)}
}

// in is the position of a value in parentheses, "" if the values are not in a file.
func (r *report) in(at place) string {
	if r.file == "" {
		return ""
	}
	return " (" + r.position(at).String() + ")"
}

// trim sorts the problems and keeps the first ones.
func (r *report) trim() {
	slices.SortStableFunc(r.problems, func(a, b Problem) int { return comparePositions(a.Position, b.Position) })
	if n := len(r.problems) - MaxProblems; n > 0 {
		r.problems, r.omitted = r.problems[:MaxProblems], r.omitted+n
	}
}

// unique reports a value that an earlier entry has already, and returns false for it. seen has the values of the earlier entries.
func unique[K comparable](r *report, seen map[K]place, key K, at place, what string) bool {
	if first, twice := seen[key]; twice {
		r.problem(at, "%s is given twice; %s at %s also has it", what, first.path, r.position(first))
		return false
	}
	seen[key] = at
	return true
}

// err is the file's error, nil without problems.
func (r *report) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	r.trim()
	return &Error{r.problems, r.omitted}
}

func comparePositions(a, b Position) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}

// quote formats a value from the file for an error: quoted, escaped and shortened.
func quote(s string) string {
	const most = 64
	if runes := []rune(s[:min(len(s), 4*most+utf8Slack)]); len(runes) > most {
		return fmt.Sprintf("%q...", string(runes[:most]))
	}
	return fmt.Sprintf("%q", s)
}

const utf8Slack = 4 // so that cutting bytes never leaves fewer than 64 whole characters of a longer text

// either lists names for people: "a", "a or b", "a, b or c"; of many, only the first ones.
func either(names []string) string {
	const most = 12
	if len(names) > most {
		return fmt.Sprintf("%s or one of %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// synonyms are words that operators use for keys, words and flags.
var synonyms = []struct{ name, words string }{
	{"fabric", "lan dc inside internal downlink"}, {"wan", "outside external uplink internet"},
	{"standard-cnp", "cnp dcqcn rocev2-cnp"}, {"ppfc", "pfc"},
	{"debug", "trace verbose"}, {"warn", "warning"}, {"error", "fatal critical panic"},
	{"management", "logging log log_level metrics listen socket api"}, {"ports", "interfaces nics links"}, {"endpoints", "hosts servers"},
	{"device", "interface iface pci"}, {"rate", "speed bandwidth"}, {"sent", "notified"}, {"suppressed", "dropped limited"}, {"text", "table plain"}, {"output", "json format"},
}

// plainWord is a word without what mistakes in it are rarely about: its case, and what joins its parts.
func plainWord(text string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(text))
}

// nearest finds the name that text most likely means, or "".
func nearest(text string, names []string) string {
	if len(text) > 64 {
		return ""
	}
	text = plainWord(text)
	best, least := "", max(1, len(text)/3)+1
	consider := func(word, name string) {
		word = plainWord(word)
		d := editDistance(text, word)
		if len(text) > 2 && strings.HasPrefix(word, text) {
			d = min(d, 1)
		}
		if d < least {
			best, least = name, d
		}
	}
	for _, name := range names {
		consider(name, name)
	}
	for _, s := range synonyms {
		for _, word := range strings.Fields(s.words) {
			if slices.Contains(names, s.name) {
				consider(word, s.name)
			}
		}
	}
	return best
}

// Nearest finds the name that text most likely means, or "".
func Nearest(text string, names []string) string { return nearest(text, names) }

// Either lists names for people: "a, b or c".
func Either(names []string) string { return either(names) }

// editDistance is how many bytes to add, remove, change or swap with the next one make b of a.
func editDistance(a, b string) int {
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1) // of the last two bytes of a, and of this one
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, above, row = above, row, before
		row[0] = i + 1
		for j := range len(b) {
			change := above[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, row[j]+1, above[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

// documentation are the prefixes that are reserved for examples (RFC 5737, RFC 3849, RFC 9637): no network has them.
var documentation = []netip.Prefix{
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("3fff::/20"),
}

// example is an address or prefix in the file that is reserved for examples.
type example struct {
	place
	text string
}

// noteExample notes a value that is an address or a prefix for examples.
func (r *report) noteExample(at place, value any) {
	var p netip.Prefix
	switch v := value.(type) {
	case netip.Addr:
		p = netip.PrefixFrom(v, v.BitLen())
	case netip.Prefix:
		p = v
	default:
		return
	}
	for _, d := range documentation {
		if p.IsValid() && d.Bits() <= p.Bits() && d.Contains(p.Addr()) {
			r.examples = append(r.examples, example{at, fmt.Sprint(value)})
		}
	}
}

// warnExamples warns, once a file, of addresses that are left over from an example.
func (r *report) warnExamples() {
	const reserved = "reserved for examples (RFC 5737, RFC 3849), and no network has"
	switch n := len(r.examples); {
	case n == 1:
		r.warn(r.examples[0].place, "%s is %s it; replace it by your own", r.examples[0].text, reserved)
	case n > 1:
		r.warn(r.examples[0].place, "%s and %d more in this file are %s them; replace them by your own", r.examples[0].text, n-1, reserved)
	}
}
