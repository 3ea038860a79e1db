// Package notifications holds golden notifications: complete Ethernet frames without FCS, written octet by octet from the figures of the
// drafts, with the meaning of each octet. The tests of cnpgen, cnpdec, the dissector and the documentation use them. The package doesn't
// call the code under test; testdata/second_opinion.py, which shares no code with this module, checks ICRCs and checksums.
// testdata/notifications has the same frames as a capture and a listing.
package notifications

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// The code points are the defaults: option type 0x9E, ICMPv6 type 200, class 247, UDP port 1022.

// All are the golden notifications.
var All = slices.Concat(standardCNPs, fastCNPs, longHaulCNPs, icmpv6CNPs, ppfcs, proxyNotifications, macControls)

// Golden is a frame and its description.
type Golden struct {
	Name      string
	Kind      string // standard-cnp, fast-cnp, long-haul-cnp, long-haul-cnp-icmpv6, ppfc, proxy-notification, pause, pfc
	Extension string // what ExtensionBit means to the frame's receiver: long-haul, ppfc or none
	ICRC      string // as-sent or without-extension-headers; empty without an ICRC
	Origin    string // the source of a frame that isn't invented
	Fields    []Field
}

// Field is a run of octets or, with Mask, some bits of the last named run.
type Field struct {
	Hex   string // octets in wire order; empty for bits of the last run
	Name  string
	Value any    // int, netip.Addr, or string for octets and text; nil: the octets as a number
	Mask  uint64 // of the last run as one number
	Note  string
}

// Line is a Field with its offset and octets. Its Value isn't nil.
type Line struct {
	Field
	Offset, Length int
	Octets         []byte
}

// Bytes is the frame.
func (g *Golden) Bytes() []byte {
	var b []byte
	for _, f := range g.Fields {
		b = append(b, octets(f.Hex)...)
	}
	return b
}

func octets(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(fmt.Sprintf("%q: %v", s, err))
	}
	return b
}

// Lines are the fields with their offsets.
func (g *Golden) Lines() []Line {
	var lines []Line
	offset, last := 0, Line{}
	for _, f := range g.Fields {
		l := Line{Field: f}
		if f.Mask == 0 {
			l.Octets = octets(f.Hex)
			l.Offset, l.Length = offset, len(l.Octets)
			offset += l.Length
			last = l
		} else {
			l.Offset, l.Length, l.Octets = last.Offset, last.Length, last.Octets
		}
		if l.Value == nil {
			l.Value = l.Number()
		}
		lines = append(lines, l)
	}
	return lines
}

// Number is the value of the line's octets, or of its bits, as one number.
func (l *Line) Number() int {
	var v uint64
	for _, o := range l.Octets {
		v = v<<8 | uint64(o)
	}
	if l.Mask != 0 {
		v = v & l.Mask >> bits.TrailingZeros64(l.Mask)
	}
	return int(v)
}

func hexOf(b []byte) string { return hex.EncodeToString(b) }

// Find returns the golden frame of the given name. It panics if there is none, as that is a mistake in a test.
func Find(name string) *Golden {
	for i := range All {
		if All[i].Name == name {
			return &All[i]
		}
	}
	panic("no golden notification " + name)
}

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
