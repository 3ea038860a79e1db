package notifications

import (
	"fmt"
	"math/bits"
	"net/netip"
	"regexp"
	"strings"
)

// A documentation page holds the table of a golden frame between two comments. PageWrite fills in all tables. PageRead reads the octets
// from them, so that a test can check that the page matches the encoders.
var (
	framed = regexp.MustCompile(`(?s)<!-- frame: ([a-z0-9-]+) -->\n(.*?)<!-- end -->`)
	ours   = regexp.MustCompile(`(, )?\bW\d+`)
	row    = regexp.MustCompile("(?m)^\\| (\\d+) \\| `([0-9a-f ]+)` \\|")
)

// PageWrite returns the page with all tables rewritten.
func PageWrite(page string) string {
	return framed.ReplaceAllStringFunc(page, func(block string) string {
		name := framed.FindStringSubmatch(block)[1]
		return fmt.Sprintf("<!-- frame: %s -->\n%s<!-- end -->", name, Find(name).table())
	})
}

// PageRead returns the octets of each frame in the tables of a page, by the frame's name. Each row must start where the previous one ended.
func PageRead(page string) (map[string][]byte, error) {
	frames := map[string][]byte{}
	for _, block := range framed.FindAllStringSubmatch(page, -1) {
		var frame []byte
		for _, r := range row.FindAllStringSubmatch(block[2], -1) {
			if r[1] != fmt.Sprint(len(frame)) {
				return nil, fmt.Errorf("%s: a row at offset %s, expected %d", block[1], r[1], len(frame))
			}
			frame = append(frame, octets(r[2])...)
		}
		frames[block[1]] = frame
	}
	return frames, nil
}

// rowLen is how many octets a row shows; a longer field has several rows.
const rowLen = 16

// table is the frame as a table: offset, octets, field, value, and source of the requirement.
func (g *Golden) table() string {
	var b strings.Builder
	b.WriteString("| Offset | Octets | Field | Here | From |\n|---|---|---|---|---|\n")
	for _, l := range g.Lines() {
		a := g.about(l.Name)
		if g.Origin != "" {
			a.from = ours.ReplaceAllString(a.from, "") // one of our decisions doesn't explain what others send
		}
		if l.Mask != 0 {
			low := bits.TrailingZeros64(l.Mask)
			high := 63 - bits.LeadingZeros64(l.Mask)
			place := fmt.Sprintf("bits %d to %d", high, low)
			if high == low {
				place = fmt.Sprintf("bit %d", low)
			}
			fmt.Fprintf(&b, "| | %s | %s | %s | %s |\n", place, a.field, l.says(), a.from)
			continue
		}
		for at := 0; at < l.Length; at += rowLen {
			field, says, from := a.field, l.says(), a.from
			if at > 0 {
				field, says, from = "", "", ""
			}
			fmt.Fprintf(&b, "| %d | `% x` | %s | %s | %s |\n", l.Offset+at, l.Octets[at:min(at+rowLen, l.Length)], field, says, from)
		}
	}
	return b.String()
}

// says is the line's value in readable form, and the note.
func (l *Line) says() string {
	value := ""
	switch v := l.Value.(type) {
	case int:
		value = fmt.Sprint(v)
		if hexadecimal[l.Name] {
			value = fmt.Sprintf("0x%0*X", 2*l.Length, v)
		}
	case netip.Addr:
		value = v.String()
	case string:
		if v == string(l.Octets) {
			value = `"` + v + `"`
		}
	}
	if unsaid[l.Name] {
		value = ""
	}
	if value != "" && l.Note != "" {
		value += ": "
	}
	return value + l.Note
}

func (g *Golden) about(name string) about {
	for _, key := range []string{g.Kind + "/" + name, name} {
		if a, ok := abouts[key]; ok {
			return a
		}
	}
	if number, ok := strings.CutPrefix(name, "pfc.time"); ok {
		return about{"time[" + number + "]", qbb}
	}
	panic("the page doesn't know what " + name + " is")
}
