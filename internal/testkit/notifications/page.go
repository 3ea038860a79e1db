package notifications

import (
	"fmt"
	"math/bits"
	"net/netip"
	"regexp"
	"strings"
)

// A page of documentation holds the table of a golden frame between two comments. Write fills all of them in, Read takes the octets out
// again: so the page says what the encoders write, and a test can tell.
var (
	framed = regexp.MustCompile(`(?s)<!-- frame: ([a-z0-9-]+) -->\n(.*?)<!-- end -->`)
	ours   = regexp.MustCompile(`(, )?\bW\d+`)
	row    = regexp.MustCompile("(?m)^\\| (\\d+) \\| `([0-9a-f ]+)` \\|")
)

// PageWrite is the page with each table written anew.
func PageWrite(page string) string {
	return framed.ReplaceAllStringFunc(page, func(block string) string {
		name := framed.FindStringSubmatch(block)[1]
		return fmt.Sprintf("<!-- frame: %s -->\n%s<!-- end -->", name, Find(name).table())
	})
}

// PageRead is what the tables of a page say: the octets of each frame, by its name. Each row must start where the one before ended.
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

// rowLen is how many octets a row shows; longer fields take several.
const rowLen = 16

// table is the frame as rows of a table: offset, octets, field, what it says, and who says so.
func (g *Golden) table() string {
	var b strings.Builder
	b.WriteString("| Offset | Octets | Field | Here | From |\n|---|---|---|---|---|\n")
	for _, l := range g.Lines() {
		a := g.about(l.Name)
		if g.Origin != "" {
			a.from = ours.ReplaceAllString(a.from, "") // a decision of ours is no reason for what others send
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

// says is the line's value as a reader wants it, and the note.
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
