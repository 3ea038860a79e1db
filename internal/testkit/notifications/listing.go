package notifications

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Pcap is a classic capture file of frames, one second apart.
func Pcap(frames [][]byte) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xa1b2c3d4)
	b = append(b, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	b = le.AppendUint32(le.AppendUint32(b, 65535), 1) // snap length, Ethernet
	for i, f := range frames {
		b = le.AppendUint32(le.AppendUint32(b, uint32(i)), 0)
		b = le.AppendUint32(le.AppendUint32(b, uint32(len(f))), uint32(len(f)))
		b = append(b, f...)
	}
	return b
}

const listingHead = `# Golden notifications, written out from the figures of the drafts: the frames of golden.pcap in their order,
# and what each octet is. Made from internal/testkit/notifications by
#   go test ./internal/testkit/notifications -update
# offset and length are octets, counted from the frame's first one. mask selects bits of the octets taken as one number; octets are
# those of the whole field. A value is a number, an address, or octets or text in quotes. extension is what the E/P bit of the BTH means
# to the receiver that the frame is for: long-haul, ppfc or none. icrc is what the ICRC covers of IPv6 extension headers: as-sent or
# without-extension-headers.
`

// Listing is the golden notifications as YAML.
func Listing() []byte {
	var b strings.Builder
	b.WriteString(listingHead)
	for i := range All {
		g := &All[i]
		fmt.Fprintf(&b, "- name: %s\n  frame: %d\n  kind: %s\n  extension: %s\n",
			g.Name, i+1, g.Kind, g.Extension)
		if g.ICRC != "" {
			fmt.Fprintf(&b, "  icrc: %s\n", g.ICRC)
		}
		if g.Origin != "" {
			fmt.Fprintf(&b, "  origin: %q\n", g.Origin)
		}
		fmt.Fprintf(&b, "  length: %d\n  fields:\n", len(g.Bytes()))
		for _, l := range g.Lines() {
			b.WriteString(l.yaml())
		}
	}
	return []byte(b.String())
}

func (l *Line) yaml() string {
	s := fmt.Sprintf("    - {offset: %d, length: %d, ", l.Offset, l.Length)
	if l.Mask != 0 {
		s += fmt.Sprintf("mask: %#x, ", l.Mask)
	}
	s += fmt.Sprintf("octets: %q, name: %s, ", hexOf(l.Octets), l.Name)
	if v, ok := l.Value.(int); ok {
		s += fmt.Sprintf("value: %d", v)
	} else {
		s += fmt.Sprintf("value: %q", fmt.Sprint(l.Value))
	}
	if l.Note != "" {
		s += fmt.Sprintf(", note: %q", l.Note)
	}
	return s + "}\n"
}
