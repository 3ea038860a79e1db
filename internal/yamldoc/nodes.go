package yamldoc

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Reload is what a change of a key needs while the program runs.
type Reload uint8

const (
	_       Reload = iota
	Live           // a reload changes it
	Resize         // a reload changes it, up to what memory was reserved for at the start
	Restart        // only a restart changes it
)

// reloadNames are the words of the tag "reload".
var reloadNames = []string{"", "live", "resize", "restart"}

func (r Reload) String() string { return reloadNames[r] }

// Needs is what a change of a key needs, and for a restart why.
type Needs struct {
	Reload  Reload
	Because string
}

// in is what a change of a key needs, whose tags say n, in a section. A key without a reload tag is treated like its section.
func (n Needs) in(section Needs) Needs {
	if n.Reload != 0 {
		section.Reload = n.Reload
	}
	if n.Because != "" {
		section.Because = n.Because
	}
	return section
}

// Compare calls differs for each node of a document whose value isn't the one before. If a list or table has more or fewer entries, that is its node.
func Compare(now, before *Node, differs func(now *Node, needs Needs)) {
	compare(now, before, Needs{Reload: Live}, differs)
}

func compare(now, before *Node, needs Needs, differs func(*Node, Needs)) {
	needs = now.rule.needs.in(needs)
	same := now.value == before.value && now.Valid == before.Valid && slices.EqualFunc(now.Parts, before.Parts, func(a, b *Node) bool { return a.key == b.key })
	if !same {
		differs(now, needs)
		return
	}
	for i, part := range now.Parts {
		compare(part, before.Parts[i], needs, differs)
	}
}

// Find is the node with a path, nil if there is none.
func (n *Node) Find(path string) *Node {
	if n.Path == path {
		return n
	}
	for _, part := range n.Parts {
		if !strings.HasPrefix(path, part.Path) {
			continue
		}
		if found := part.Find(path); found != nil {
			return found
		}
	}
	return nil
}

// GivenIn are the given keys that are for a mode, in a section and below.
func (n *Node) GivenIn(mode string) (keys []*Node) {
	for _, part := range n.Parts {
		if part.rule.mode != mode {
			keys = append(keys, part.GivenIn(mode)...)
		} else if part.Given {
			keys = append(keys, part)
		}
	}
	return keys
}

// Dump writes documents as YAML.
type Dump struct {
	Mode string                     // the defaults of keys for other modes don't apply
	In   func(section any) string   // the mode in a section, "" for that around it; may be nil
	Note func(section any) []string // comments about a section; may be nil
}

// line is a line of YAML, or a comment if it isn't given in the file.
type line struct {
	depth int
	text  string
	given bool
}

// Text is a document with the keys that the file has, and, as comments, the defaults of the others and the notes. Parse reads it to the same document.
func (d Dump) Text(n *Node) string {
	var b strings.Builder
	for _, l := range d.section(n) {
		if !l.given {
			b.WriteString("# ")
		}
		b.WriteString(strings.Repeat("  ", l.depth) + l.text + "\n")
	}
	return b.String()
}

// Line is a value in one line.
func (d Dump) Line(n *Node) string {
	lines := d.entry("", n)
	switch {
	case len(lines) == 0:
		return "none"
	case len(lines) > 1:
		given := 0
		for _, l := range lines[1:] {
			if l.given {
				given++
			}
		}
		return fmt.Sprintf("%d lines", given)
	}
	text := strings.TrimPrefix(lines[0].text, ": ")
	if !lines[0].given {
		text += " (default)"
	}
	return text
}

func deeper(lines []line) []line {
	for i := range lines {
		lines[i].depth++
	}
	return lines
}

// section is a section's keys.
func (d Dump) section(n *Node) (lines []line) {
	if d.In != nil {
		if mode := d.In(n.Value()); mode != "" {
			d.Mode = mode
		}
	}
	for _, p := range n.Parts {
		if rl := p.rule; p.Given || !rl.off && (rl.mode == "" || rl.mode == d.Mode) {
			lines = append(lines, d.entry(p.key, p)...)
		}
	}
	if d.Note != nil {
		for _, note := range d.Note(n.Value()) {
			lines = append(lines, line{text: note})
		}
	}
	return lines
}

// entry is a key with its value.
func (d Dump) entry(key string, n *Node) []line {
	header := line{text: key + ":", given: n.Given}
	var below []line
	var words []string
	shape := shapeOf(n.target.Type())
	switch shape {
	case scalar:
		if !n.Valid {
			return nil
		}
		header.text += " " + yamlText(n.Written)
		return []line{header}
	case section:
		below = deeper(d.section(n))
		header.given = slices.ContainsFunc(below, func(l line) bool { return l.given })
	default:
		for _, p := range n.Parts {
			switch {
			case p.value != nil:
				words = append(words, yamlText(p.Written))
			case p.key == "":
				below = append(below, dashed(deeper(deeper(d.section(p))))...)
			default:
				below = append(below, deeper(d.entry(yamlText(p.key), p))...)
			}
		}
	}
	switch empty := len(below) == 0; {
	case words != nil:
		header.text += " [" + strings.Join(words, ", ") + "]"
	case empty && !n.Given:
		return nil
	case empty && shape == list:
		header.text += " []"
	case empty || !header.given && n.Given:
		header.given, header.text = true, header.text+" {}"
	}
	return append([]line{header}, below...)
}

// dashed makes a section's keys an entry of a list.
func dashed(lines []line) []line {
	for i := range lines {
		if l := &lines[i]; l.given {
			l.depth, l.text = l.depth-1, "- "+l.text
			return lines
		}
	}
	return append([]line{{depth: 1, text: "- {}", given: true}}, lines...)
}

var plainYAML = regexp.MustCompile(`^[A-Za-z0-9._/][A-Za-z0-9._/=-]*(:[A-Za-z0-9._/=-]+)*$`)

// yamlText is a text as a scalar of YAML. Whether it has quotes makes no difference.
func yamlText(text string) string {
	if plainYAML.MatchString(text) {
		return text
	}
	return strconv.Quote(text)
}
