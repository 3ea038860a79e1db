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
	"strings"
)

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

// draft-xz-ppfc 3. Over IPv4, the fields are as long as those of a Long-haul CNP, so one could be mistaken for the other.
var ppfcs = []Golden{
	{Name: "ppfc-v4-pause", Kind: "ppfc", Extension: "ppfc", ICRC: "as-sent", Fields: join(
		eth("08 00"),
		ipv4("00 38", "11", "24 f7", gateway4, sender4), // 56 = 20 + 8 + 12 + 12 + 4
		udp("00 24"),
		bth("60", "00 00 c8", ofReceiver),
		[]Field{{Hex: receiver4, Name: "ppfc.dst", Value: addr(receiver4), Note: "the data packet's destination"}},
		ppfc("00 00", "00 02", "00 00", "01 f4"), // port 2, 500 microseconds
		icrc("84 f7 35 77"))},
	{Name: "ppfc-v6-resume-tagged", Kind: "ppfc", Extension: "ppfc", ICRC: "as-sent", Fields: join(
		eth("86 dd", "81 00 60 64"),
		ipv6("00 30", "11", gateway6, sender6), // 48 = 8 + 12 + 24 + 4
		udp("00 30"),
		bth("60", "00 00 c8", ofReceiver),
		[]Field{{Hex: receiver6, Name: "ppfc.dst", Value: addr(receiver6)}},
		ppfc("00 01", "00 02", "00 00", "00 00"),
		icrc("c0 c0 92 60"))},
	{Name: "ppfc-v6-reserved-bits", Kind: "ppfc", Extension: "ppfc", ICRC: "as-sent", Fields: join(
		eth("86 dd"),
		ipv6("00 30", "11", gateway6, sender6),
		udp("00 30"),
		bth("7f", "00 00 c8", ofReceiver),
		[]Field{{Hex: receiver6, Name: "ppfc.dst", Value: addr(receiver6)}},
		ppfc("ff fc", "ff ff", "ff ff", "ff ff"), // another vendor's: receivers ignore flags and reserved bits
		icrc("fc 82 ab c9"))},
}

// proxyUDP is the UDP header of a notification to a proxy.
func proxyUDP(length, checksum string) []Field {
	return []Field{
		{Hex: "ce 21", Name: "udp.srcport", Value: 52769, Note: "as the data packet"},
		{Hex: "03 fe", Name: "udp.dstport", Value: 1022},
		{Hex: length, Name: "udp.length"},
		{Hex: checksum, Name: "udp.checksum"},
	}
}

// The data packets that met congestion: RC SEND First, destination QP 200, PSN 7. Over IPv4 the header checksum is unchanged.
const (
	data4Header = "45 02 00 3c 12 34 40 00 3f 11 00 00" + sender4 + receiver4 + "ce 21 12 b7 00 28 00 00" + dataBTH
	data4Long   = "45 02 04 14 12 34 40 00 3f 11 00 00" + sender4 + receiver4 + "ce 21 12 b7 04 00 00 00" + dataBTH // 1044 octets
	data6       = "60 21 23 45 00 28 11 3f" + sender6 + receiver6 + "ce 21 12 b7 00 28 00 00" + dataBTH             // 80 octets
	data6Long   = "60 21 23 45 05 f4 11 3f" + sender6 + receiver6 + "ce 21 12 b7 05 f4 00 00" + dataBTH             // 1564 octets
	dataBTH     = "00 40 ff ff 00 00 00 c8 00 00 00 07"
)

func invoking(octets, note string) []Field {
	return []Field{{Hex: octets, Name: "proxy.invoking", Value: compact(octets), Note: note}}
}

// draft-xiao-proxy 4, figure 5.
var proxyNotifications = []Golden{
	{Name: "proxy-notification-v4", Kind: "proxy-notification", Extension: "none", Fields: join(
		eth("08 00"),
		ipv4("00 68", "11", "23 cb", gateway4, proxy4), // 104 = 20 + 8 + 16 + 60
		proxyUDP("00 54", "fc 9c"),
		proxied("45", sender4, receiver4), // level 5
		invoking(data4Header+pattern(16)+"69 63 72 63", "whole"))},
	{Name: "proxy-notification-v4-cut", Kind: "proxy-notification", Extension: "none", Fields: join(
		eth("08 00", "81 00 60 64"),
		ipv4("02 40", "11", "21 f3", gateway4, proxy4), // 576 = 20 + 8 + 16 + 532
		proxyUDP("02 2c", "1e 6a"),
		proxied("47", sender4, receiver4),
		invoking(data4Long+pattern(492), "cut at 576 octets"))},
	{Name: "proxy-notification-v6", Kind: "proxy-notification", Extension: "none", Fields: join(
		eth("86 dd"),
		ipv6("00 80", "11", gateway6, proxy6), // 128 = 8 + 40 + 80
		proxyUDP("00 80", "47 66"),
		proxied("65", sender6, receiver6), // level 5
		invoking(data6+pattern(16)+"69 63 72 63", "whole"))},
	{Name: "proxy-notification-v6-cut", Kind: "proxy-notification", Extension: "none", Fields: join(
		eth("86 dd", "88 a8 60 0a", "81 00 60 64"),
		ipv6("04 d8", "11", gateway6, proxy6), // 1240 = 8 + 40 + 1192
		proxyUDP("04 d8", "11 b7"),
		proxied("60", sender6, receiver6), // level 0
		invoking(data6Long+pattern(1132), "cut at 1280 octets"))},
	{Name: "proxy-notification-v4-about-v6", Kind: "proxy-notification", Extension: "none", Fields: join(
		eth("08 00"),
		ipv4("02 40", "11", "21 f3", gateway4, proxy4), // 576 = 20 + 8 + 40 + 508
		proxyUDP("02 2c", "13 a0"),
		proxied("61", sender6, receiver6),
		invoking(data6Long+pattern(448), "cut at 576 octets"))},
}

// compact formats the octets as a line of the listing.
func compact(s string) string { return hexOf(octets(s)) }

// macControl is the Ethernet header of a PAUSE or PFC frame.
var macControl = []Field{
	{Hex: "01 80 c2 00 00 01", Name: "eth.dst", Value: "01:80:c2:00:00:01"},
	{Hex: "02 00 00 00 00 02", Name: "eth.src", Value: "02:00:00:00:00:02"},
	{Hex: "88 08", Name: "eth.type", Value: 0x8808},
}

// IEEE 802.3 31B and IEEE 802.1Qbb.
var macControls = []Golden{
	{Name: "pause", Kind: "pause", Extension: "none", Fields: join(macControl, []Field{
		{Hex: "00 01", Name: "macc.opcode", Value: 1},
		{Hex: "ff ff", Name: "macc.time", Value: 65535, Note: "quanta of 512 bit times"},
		{Hex: "0000000000000000000000000000000000000000 0000000000000000000000000000000000000000 0000", Name: "eth.padding",
			Value: "000000000000000000000000000000000000000000000000000000000000000000000000000000000000"},
	})},
	{Name: "pfc", Kind: "pfc", Extension: "none", Fields: join(macControl, []Field{
		{Hex: "01 01", Name: "macc.opcode", Value: 0x101},
		{Hex: "00", Name: "pfc.reserved", Value: 0},
		{Hex: "18", Name: "pfc.enabled", Value: 0x18, Note: "priorities 3 and 4"},
		{Hex: "00 00", Name: "pfc.time0", Value: 0},
		{Hex: "00 00", Name: "pfc.time1", Value: 0},
		{Hex: "00 00", Name: "pfc.time2", Value: 0},
		{Hex: "ff ff", Name: "pfc.time3", Value: 65535, Note: "quanta of 512 bit times"},
		{Hex: "00 00", Name: "pfc.time4", Value: 0, Note: "may go on"},
		{Hex: "00 00", Name: "pfc.time5", Value: 0},
		{Hex: "00 00", Name: "pfc.time6", Value: 0},
		{Hex: "00 00", Name: "pfc.time7", Value: 0},
		{Hex: "0000000000000000000000000000000000000000000000000000", Name: "eth.padding",
			Value: "0000000000000000000000000000000000000000000000000000"},
	})},
}
