package yamldoc

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

// Problem is one mistake: where it is, which key it is about, what was expected. Or it is a warning: a setting that has no effect or is unlikely to be intended, in a
// valid document.
type Problem struct {
	Position
	Text string
}

func (p Problem) String() string { return p.Position.String() + ": " + p.Text }

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
	problems []Problem
	omitted  int
	warnings []Problem
	examples []*Node // addresses and prefixes that are reserved for examples, in the order of the file
}

// found is a mistake or a warning at a key's value. The text begins with the key's path.
func (r *report) found(at *Node, format string, args ...any) Problem {
	text := fmt.Sprintf(format, args...)
	if at.Path != "" {
		text = at.Path + ": " + text
	}
	return Problem{r.position(at), text}
}

// problem notes a mistake at a key's value.
func (r *report) problem(at *Node, format string, args ...any) {
	r.problems = append(r.problems, r.found(at, format, args...))
	if len(r.problems) >= 64*MaxProblems { // bounds the memory for a file full of mistakes
		r.trim()
	}
}

// UnknownName reports a reference to a name that doesn't exist. what is the kind of thing it should name, names are the existing ones.
func (d *Document) UnknownName(address any, text, what string, names []string) {
	switch meant := Nearest(text, names); {
	case len(names) == 0:
		d.Problem(address, "there is no %s %s; none is defined", what, Quote(text))
	case meant != "":
		d.Problem(address, "there is no %s %s; did you mean %s? Expected %s", what, Quote(text), meant, Either(names))
	default:
		d.Problem(address, "there is no %s %s; expected %s", what, Quote(text), Either(names))
	}
}

// position is the printed form of a place: one without a line is the whole file.
func (r *report) position(at *Node) Position {
	return Position{r.file, max(at.Line, 1), max(at.Column, 1)}
}

// trim sorts the problems and keeps the first ones.
func (r *report) trim() {
	sortProblems(r.problems)
	if n := len(r.problems) - MaxProblems; n > 0 {
		r.problems, r.omitted = r.problems[:MaxProblems], r.omitted+n
	}
}

// Err is an *Error with all noted mistakes, nil without mistakes.
func (r *report) Err() error {
	if len(r.problems) == 0 {
		return nil
	}
	r.trim()
	return &Error{r.problems, r.omitted}
}

// Mistakes is the number of noted mistakes.
func (r *report) Mistakes() int { return len(r.problems) + r.omitted }

// Warnings are all noted warnings, by position.
func (r *report) Warnings() []Problem {
	sortProblems(r.warnings)
	return r.warnings
}

// sortProblems sorts by position.
func sortProblems(all []Problem) {
	slices.SortStableFunc(all, func(a, b Problem) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column)) })
}

// documentation are the prefixes that are reserved for examples (RFC 5737, RFC 3849, RFC 9637): no network has them.
var documentation = []netip.Prefix{
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("3fff::/20"),
}

// noteExample notes a value that is an address or a prefix for examples.
func (r *report) noteExample(n *Node) {
	var p netip.Prefix
	switch v := n.value.(type) {
	case netip.Addr:
		p = netip.PrefixFrom(v, v.BitLen())
	case netip.Prefix:
		p = v
	}
	for _, d := range documentation {
		if p.IsValid() && d.Bits() <= p.Bits() && d.Contains(p.Addr()) {
			r.examples = append(r.examples, n)
		}
	}
}

// WarnExamples warns, once a file, of addresses that are left over from an example.
func (d *Document) WarnExamples() {
	const reserved = "reserved for examples (RFC 5737, RFC 3849), and no network has"
	switch n := len(d.examples); {
	case n == 1:
		d.Warn(d.examples[0], "%s is %s it; replace it by your own", d.examples[0].text(), reserved)
	case n > 1:
		d.Warn(d.examples[0], "%s and %d more in this file are %s them; replace them by your own", d.examples[0].text(), n-1, reserved)
	}
}
