package notifications

import (
	"bytes"
	"fmt"
	"math"
	"math/bits"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// A documentation page holds the table of a golden frame, or of some of its octets, between two comments. PageWrite fills in all tables. PageRead
// reads the octets from them, so that a test can check that the page matches the encoders.
var (
	framed = regexp.MustCompile(`(?s)<!-- frame: ([a-z0-9-]+)(?:, octets (\d+) to (\d+))? -->\n(.*?)<!-- end -->`)
	ours   = regexp.MustCompile(`(, )?\bW\d+`)
	row    = regexp.MustCompile("(?m)^\\| (\\d+) \\| `([0-9a-f ]+)` \\|")
)

// Shown is what a page shows of a frame: its octets from an offset on.
type Shown struct {
	From   int
	Octets []byte
}

// Of reports whether a frame has the octets that the page shows.
func (s Shown) Of(frame []byte) bool {
	end := s.From + len(s.Octets)
	return end <= len(frame) && bytes.Equal(frame[s.From:end], s.Octets)
}

// PageWrite returns the page with all tables rewritten.
func PageWrite(page string) string {
	return framed.ReplaceAllStringFunc(page, func(block string) string {
		m := framed.FindStringSubmatch(block)
		head, _, _ := strings.Cut(block, "\n")
		from, last := 0, math.MaxInt
		if m[2] != "" {
			from, _ = strconv.Atoi(m[2])
			last, _ = strconv.Atoi(m[3])
		}
		return fmt.Sprintf("%s\n%s<!-- end -->", head, Find(m[1]).table(from, last))
	})
}

// PageRead returns the octets of each frame in the tables of a page, by the frame's name. Each row must start where the previous one ended, and the
// rows must be all of the octets that the comment names.
func PageRead(page string) (map[string]Shown, error) {
	frames := map[string]Shown{}
	for _, block := range framed.FindAllStringSubmatch(page, -1) {
		var s Shown
		s.From, _ = strconv.Atoi(block[2])
		for _, r := range row.FindAllStringSubmatch(block[4], -1) {
			if want := s.From + len(s.Octets); r[1] != strconv.Itoa(want) {
				return nil, fmt.Errorf("%s: a row at offset %s, expected %d", block[1], r[1], want)
			}
			s.Octets = append(s.Octets, octets(r[2])...)
		}
		if last := strconv.Itoa(s.From + len(s.Octets) - 1); block[3] != "" && last != block[3] {
			return nil, fmt.Errorf("%s: the rows end at octet %s, expected %s", block[1], last, block[3])
		}
		if _, twice := frames[block[1]]; twice {
			return nil, fmt.Errorf("%s: two tables; show another golden frame in one of them", block[1])
		}
		frames[block[1]] = s
	}
	return frames, nil
}

// rowLen is how many octets a row shows; a longer field has several rows.
const rowLen = 16

// table is the frame, from one octet to another, as a table: offset, octets, field, value, and source of the requirement, if it isn't that of the row above.
func (g *Golden) table(from, last int) string {
	var b strings.Builder
	b.WriteString("| Offset | Octets | Field | Here | From |\n|---|---|---|---|---|\n")
	above := ""
	for _, l := range g.Lines() {
		if l.Offset < from || l.Offset > last {
			continue
		}
		a := g.about(l.Name)
		if g.Origin != "" {
			a.from = ours.ReplaceAllString(a.from, "") // one of our decisions doesn't explain what others send
		}
		if a.from == above {
			a.from = ""
		} else {
			above = a.from
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
		return about{"time[" + strings.TrimSuffix(number, "_quanta") + "]", qbb}
	}
	panic("the page doesn't know what " + name + " is")
}
