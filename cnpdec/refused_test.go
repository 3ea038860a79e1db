package cnpdec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

func address(s string) packet.Addr { return packet.AddrFrom(netip.MustParseAddr(s)) }

// change is a change to a golden frame: the octets from at on.
type change struct {
	at int
	to string
}

// Offsets in the golden frames that are changed here.
const (
	v4BTH     = 14 + 20 + 8
	v4Fields  = v4BTH + 12
	v4Objects = v4Fields + 12
	v6Options = 14 + 40
	fastBTH   = v6Options + 24 + 8
	icmpv6At  = 14 + 40
	v4Src     = 14 + 12
	v6Src     = 14 + 8
)

const noAddress = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// mappedGateway is an address of an IPv6 header that Addr doesn't tell from the IPv4 gateway's.
const mappedGateway = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x0a\x00\x00\xfe"

// refusals change one thing in a golden notification each. Unless raw, checksums and ICRC are made right again.
var refusals = []struct {
	name   string
	golden string
	raw    bool
	change change
	want   Reason
}{
	{"nothing", "long-haul-cnp-v4", false, change{0, ""}, Accepted},
	{"an opcode that isn't CNP", "standard-cnp-v4", false, change{v4BTH, "\x11"}, NotANotification},
	{"another option type", "fast-cnp", false, change{v6Options + 2, "\x1e"}, Accepted}, // a standard CNP with an option to skip
	{"an unknown option that forbids to go on", "fast-cnp", false, change{v6Options + 2, "\x9f"}, OptionUnknown},
	{"an unknown option longer than its header", "fast-cnp", false, change{v6Options + 2, "\x1e\xff"}, OptionMalformed},
	{"another ICMPv6 type", "long-haul-cnp-icmpv6", false, change{icmpv6At, "\x80"}, NotANotification},
	{"another UDP port", "proxy-notification-v4", false, change{36, "\x03\xff"}, NotANotification},
	{"more octets behind UDP", "standard-cnp-v4", false, change{38, "\x00\x27"}, WrongLength},
	{"fifteen reserved octets", "standard-cnp-v4", false, change{16, "\x00\x3b"}, NotANotification}, // UDP goes on behind IP
	{"a proxy notification's UDP too short", "proxy-notification-v4", false, change{38, "\x00\x53"}, WrongLength},

	{"damaged IPv4 header", "long-haul-cnp-v4", true, change{22, "\x3f"}, WrongChecksum},
	{"damaged ICMPv6 message", "long-haul-cnp-icmpv6", true, change{icmpv6At + 4, "\x00"}, WrongChecksum},
	{"damaged proxy notification", "proxy-notification-v4", true, change{62, "\x00"}, WrongChecksum},
	{"wrong UDP checksum of a CNP", "long-haul-cnp-v4", true, change{40, "\x00\x01"}, WrongChecksum},
	{"right UDP checksum of a CNP", "long-haul-cnp-v4", false, change{40, "\x00\x01"}, Accepted},
	{"no UDP checksum over IPv4", "proxy-notification-v4", true, change{40, "\x00\x00"}, Accepted},
	{"no UDP checksum over IPv6", "proxy-notification-v6-cut", true, change{22 + 40 + 6, "\x00\x00"}, WrongChecksum},
	{"damaged CNP", "long-haul-cnp-v4", true, change{v4Fields, "\x00"}, WrongICRC},
	{"damaged ICRC", "standard-cnp-v4", true, change{70, "\x00"}, WrongICRC},
	{"damaged option", "fast-cnp", true, change{v6Options + 10, "\x01"}, WrongICRC},

	{"from an IPv4-mapped address", "long-haul-cnp-icmpv6", false, change{v6Src, mappedGateway}, WrongAddress},
	{"to an IPv4-mapped address", "fast-cnp", false, change{v6Src + 16, mappedGateway}, WrongAddress},
	{"about an IPv4-mapped address", "fast-cnp", false, change{v6Options + 4, mappedGateway}, WrongAddress},
	{"PPFC about an IPv4-mapped address", "ppfc-v6-resume-tagged", false, change{4 + v6Options + 20, mappedGateway}, WrongAddress},
	{"a proxied flow of IPv4-mapped addresses", "proxy-notification-v6", false, change{v6Options + 8 + 8, mappedGateway}, WrongAddress},
	{"to an IPv6 group", "long-haul-cnp-icmpv6", false, change{v6Src + 16, "\xff\x02"}, WrongAddress},
	{"from an IPv6 group", "fast-cnp", false, change{v6Src, "\xff\x02"}, WrongAddress},
	{"from no IPv6 address", "fast-cnp", false, change{v6Src, noAddress}, WrongAddress},
	{"to an IPv4 group", "long-haul-cnp-v4", false, change{v4Src + 4, "\xe0"}, WrongAddress},
	{"to all", "long-haul-cnp-v4", false, change{v4Src + 4, "\xff\xff\xff\xff"}, WrongAddress},
	{"from its own loopback", "long-haul-cnp-v4", false, change{v4Src, "\x7f"}, WrongAddress},
	{"from its own loopback in IPv6", "fast-cnp", false, change{v6Src, noAddress[1:] + "\x01"}, WrongAddress},
	{"from no IPv4 address", "standard-cnp-v4", false, change{v4Src, "\x00\x00\x00\x00"}, WrongAddress},
	{"about an IPv4 group", "ppfc-v4-pause", false, change{v4Fields, "\xef"}, Accepted}, // UD packets may go to one

	{"SE", "standard-cnp-v4", false, change{v4BTH + 1, "\x80"}, WrongBTH},
	{"PadCount", "standard-cnp-v4", false, change{v4BTH + 1, "\x10"}, WrongBTH},
	{"transport version", "standard-cnp-v4", false, change{v4BTH + 1, "\x01"}, NotANotification},
	{"MigReq of a standard CNP", "standard-cnp-v4", false, change{v4BTH + 1, "\x40"}, Accepted},
	{"MigReq of a Fast CNP", "fast-cnp", false, change{fastBTH + 1, "\x40"}, Accepted},
	{"MigReq of a Long-haul CNP", "long-haul-cnp-v4", false, change{v4BTH + 1, "\x40"}, WrongBTH},
	{"MigReq of PPFC", "ppfc-v4-pause", false, change{v4BTH + 1, "\x40"}, WrongBTH},
	{"FECN", "fast-cnp", false, change{fastBTH + 4, "\xc0"}, WrongBTH},
	{"no BECN", "long-haul-cnp-v4", false, change{v4BTH + 4, "\x20"}, WrongBTH},
	{"AckReq", "long-haul-cnp-v4", false, change{v4BTH + 8, "\x80"}, WrongBTH},
	{"PSN", "long-haul-cnp-v4", false, change{v4BTH + 11, "\x01"}, WrongBTH},
	{"partition key of the flow", "long-haul-cnp-v4", false, change{v4BTH + 2, "\x80\x01"}, Accepted},
	{"partition key of the flow, limited member", "fast-cnp", false, change{fastBTH + 2, "\x00\x01"}, Accepted},
	{"no partition key", "long-haul-cnp-v4", false, change{v4BTH + 2, "\x00\x00"}, UnknownPKey},
	{"no partition key, full member", "standard-cnp-v4", false, change{v4BTH + 2, "\x80\x00"}, UnknownPKey},

	{"another header before UDP", "fast-cnp", false,
		change{v6Options, "\x3c\x01\x9e\x04\x00\x00\x00\x00\x00\x00\x00\x00\x01\x02\x00\x00\x11\x00\x01\x04"}, OptionMisplaced},
	{"the option in another header than the last", "fast-cnp", false,
		change{v6Options, "\x2b\x00\x9e\x04\x00\x00\x00\x00\x11\x01\x01\x0c"}, OptionMisplaced},
	{"an option that covers the other", "fast-cnp-other-layout", false, change{v6Options + 4, "\x9e\x10"}, Accepted},
	{"two options", "fast-cnp-preallocated-trace", false,
		change{v6Options + 2, "\x9e\x10" + noAddress + "\x9e\x10" + noAddress + "\x01\x08"}, OptionRepeated},
	{"an unknown option to discard the packet for", "fast-cnp-other-layout", false, change{v6Options + 4, "\x5e"}, OptionUnknown},
	{"an option past the header", "fast-cnp", false, change{v6Options + 20, "\x01\x03"}, OptionMalformed},
	{"an option of 15 octets", "fast-cnp", false, change{v6Options + 3, "\x0f"}, OptionMalformed},
	{"an option of 20 octets", "fast-cnp", false, change{v6Options + 3, "\x14"}, OptionMalformed},
	{"a trace that isn't made of words", "fast-cnp-preallocated-trace", false, change{v6Options + 5, "\x29"}, OptionMalformed},
	{"proof of transit in place of a trace", "fast-cnp-preallocated-trace", false, change{v6Options + 7, "\x02"}, OptionMalformed},

	{"ICMPv6 code 1", "long-haul-cnp-icmpv6", false, change{icmpv6At + 1, "\x01"}, UnknownCode},
	{"ICMPv6 code for experiments", "long-haul-cnp-icmpv6", false, change{icmpv6At + 1, "\xff"}, UnknownCode},
	{"Notify with a parameter", "long-haul-cnp-v4", false, change{v4Fields + 1, "\x00"}, WrongParameter},
	{"Rate Reduce by 101 percent", "long-haul-cnp-v4", false, change{v4Fields + 2, "\x00\x65"}, WrongParameter},
	{"Rate Reduce by 256 percent", "long-haul-cnp-v4", false, change{v4Fields + 2, "\x01\x00"}, WrongParameter},
	{"Rate Reduce by 100 percent", "long-haul-cnp-v4", false, change{v4Fields + 2, "\x00\x64"}, Accepted},
	{"Resume of 101 percent", "long-haul-cnp-v4", false, change{v4Fields + 1, "\xc0\x00\x65"}, WrongParameter},
	{"Pause of 101 microseconds", "long-haul-cnp-v4", false, change{v4Fields + 1, "\x40\x00\x65"}, Accepted},
	{"a Source QP Number of 25 bits", "long-haul-cnp-v4", false, change{v4Fields + 4, "\x01"}, WrongSourceQP},
	{"a marking rate of 101 percent", "long-haul-cnp-v4", false, change{v4Fields + 8, "\x03\x00\x00\x65"}, WrongMetric},
	{"a marking rate of 100 percent", "long-haul-cnp-v4", false, change{v4Fields + 8, "\x03\x00\x00\x64"}, Accepted},
	{"type 0 with a value", "long-haul-cnp-v4", false, change{v4Fields + 8, "\x00\x00\x00\x65"}, Accepted},
	{"an unassigned metric", "long-haul-cnp-v4", false, change{v4Fields + 8, "\xc8\xff\xff\xff"}, Accepted},

	{"extension version 1", "long-haul-cnp-v4-objects", false, change{v4Objects, "\x10"}, ExtensionVersion},
	{"no extension checksum", "long-haul-cnp-v4-objects", false, change{v4Objects + 2, "\x00\x00"}, Accepted},
	{"reserved bits of the Extension Header", "long-haul-cnp-v4-objects", false, change{v4Objects, "\x2f\xff"}, Accepted},
	{"an object of three octets", "long-haul-cnp-v4-objects", false, change{v4Objects + 4, "\x00\x03"}, ObjectMalformed},
	{"an object past the message", "long-haul-cnp-v4-objects", false, change{v4Objects + 28, "\x00\x11"}, ObjectMalformed},
	{"an object as long as its padding", "long-haul-cnp-v4-objects", false, change{v4Objects + 28, "\x00\x10"}, Accepted},
	{"padding of other than zeros", "long-haul-cnp-v4-objects", false, change{v4Objects + 43, "\x01"}, ObjectPadding},
	{"a timestamp of seven octets", "long-haul-cnp-v4-objects", false, change{v4Objects + 4, "\x00\x0b"}, ObjectContent},
	{"a device identifier that isn't UTF-8", "long-haul-cnp-v4-objects", false, change{v4Objects + 20, "\xff"}, ObjectContent},
	{"a path identifier that isn't UTF-8", "long-haul-cnp-v4-objects", false, change{v4Objects + 32, "\xff"}, Accepted},

	{"PT 2", "ppfc-v4-pause", false, change{v4Fields + 5, "\x02"}, UnknownPauseType},
	{"PT 3", "ppfc-v4-pause", false, change{v4Fields + 5, "\x03"}, UnknownPauseType},

	{"five-tuple of IP version 5", "proxy-notification-v4", false, change{v4BTH, "\x55"}, FiveTupleMalformed},
	{"five-tuple of another version than the packet", "proxy-notification-v4", false, change{v4BTH, "\x65"}, FiveTupleMismatch},
	{"another source", "proxy-notification-v4", false, change{v4BTH + 11, "\x02"}, FiveTupleMismatch},
	{"another destination", "proxy-notification-v4", false, change{v4BTH + 15, "\x02"}, FiveTupleMismatch},
	{"another protocol", "proxy-notification-v4", false, change{v4BTH + 1, "\x06"}, FiveTupleMismatch},
	{"another source port", "proxy-notification-v4", false, change{v4BTH + 5, "\x00"}, FiveTupleMismatch},
	{"another destination port", "proxy-notification-v4", false, change{v4BTH + 7, "\x00"}, FiveTupleMismatch},
	{"reserved bits of the five-tuple", "proxy-notification-v4", false, change{v4BTH, "\x4d\x11\xff\xff"}, Accepted},
	{"an invoking packet that isn't IP", "proxy-notification-v4", false, change{v4BTH + 16, "\x00"}, FiveTupleMismatch},

	{"MAC control opcode 2", "pfc", false, change{14, "\x00\x02"}, UnknownMACControl},
	{"PFC to a station", "pfc", false, change{0, "\x02\x00\x00\x00\x00\x01"}, WrongDestination},
	{"PAUSE to a station", "pause", false, change{0, "\x02\x00\x00\x00\x00\x01"}, Accepted},
	{"PAUSE to another group", "pause", false, change{0, "\x01\x00\x5e\x00\x00\x01"}, WrongDestination},
	{"reserved octet of PFC", "pfc", false, change{16, "\xff"}, Accepted},
}

func TestRefusals(t *testing.T) {
	for _, c := range refusals {
		g, r := golden(c.golden)
		frame := g.Bytes()
		copy(frame[c.change.at:], c.change.to)
		if !c.raw {
			repair(frame, &r.Code, r.ICRC)
		}
		checkReason(t, c.name, &r, frame, c.want)
	}
}

// checkReason decodes, compares the reason, and holds an accepted frame to its round trip.
func checkReason(t *testing.T, name string, r *Receiver, frame []byte, want Reason) {
	t.Helper()
	var p packet.Parsed
	var n Notification
	packet.Parse(frame, uint32(len(frame)), &p)
	if got := r.Decode(frame, &p, &n); got != want {
		t.Errorf("%s: %v, want %v: %x", name, got, want, frame)
	} else if got == Accepted && !bytes.Equal(encode(&n, frame), frame[:n.End]) {
		t.Errorf("%s: encodes to\n%x, want\n%x", name, encode(&n, frame), frame)
	}
}

// TestLengths: a message cut to every length, its lengths and checksums made right, is accepted only in the ones the format has.
func TestLengths(t *testing.T) {
	for _, c := range []struct {
		golden   string
		accepted []int // octets cut off the end, ICRC apart
		empty    int   // so many leave an Extension Header alone
	}{
		// Of the invoking packet, 60 octets, the IP header must be there. Ports that are cut can't differ.
		{"proxy-notification-v4", upTo(40), -1},
		{"standard-cnp-v4", []int{0}, -1},
		{"fast-cnp", []int{0}, -1},
		{"long-haul-cnp-v4", []int{0}, -1},
		{"long-haul-cnp-v4-objects", []int{0, 16, 28, 44}, 40},
		{"long-haul-cnp-icmpv6-objects", []int{0, 8, 16, 24, 40}, 36},
		{"ppfc-v4-pause", []int{0}, -1},
		{"ppfc-v6-resume-tagged", []int{0}, -1},
	} {
		g, r := golden(c.golden)
		for cut := range 60 {
			frame := shorten(g.Bytes(), cut)
			if frame == nil {
				break
			}
			repair(frame, &r.Code, r.ICRC)
			var p packet.Parsed
			var n Notification
			packet.Parse(frame, uint32(len(frame)), &p)
			got, want := r.Decode(frame, &p, &n), false
			for _, a := range c.accepted {
				want = want || cut == a
			}
			if (got == Accepted) != want || cut == c.empty && got != ExtensionEmpty {
				t.Errorf("%s, %d octets less: %v", c.golden, cut, got)
			}
		}
	}
}

func upTo(n int) (all []int) {
	for i := range n + 1 {
		all = append(all, i)
	}
	return all
}

// shorten takes octets from the end of the message, in front of the ICRC where there is one, and keeps lengths right. It returns nil
// when fewer would be left than headers take.
func shorten(frame []byte, cut int) []byte {
	var p packet.Parsed
	packet.Parse(frame, uint32(len(frame)), &p)
	end, least := len(frame), int(p.L4)+4
	if p.Kind == packet.RoCEv2 {
		end, least = int(p.ICRC), p.Ext()
	}
	if end-cut < least {
		return nil
	}
	short := append(append([]byte(nil), frame[:end-cut]...), frame[end:]...)
	at := int(p.L3) + 2 // IPv4 total length
	if p.Family == 6 {
		at = int(p.L3) + 4
	}
	binary.BigEndian.PutUint16(short[at:], binary.BigEndian.Uint16(short[at:])-uint16(cut))
	if p.Proto == packet.ProtoUDP {
		at = int(p.L4) + 4
		binary.BigEndian.PutUint16(short[at:], binary.BigEndian.Uint16(short[at:])-uint16(cut))
	}
	return short
}

// TestTruncated: a frame that was captured in part is refused for that, wherever it ends behind its headers.
func TestTruncated(t *testing.T) {
	for _, name := range []string{"standard-cnp-v4", "fast-cnp-preallocated-trace", "long-haul-cnp-v4-objects", "long-haul-cnp-icmpv6",
		"ppfc-v6-resume-tagged", "proxy-notification-v4", "pfc", "pause"} {
		g, r := golden(name)
		frame := g.Bytes()
		n, reason := r.decodeFrame(frame)
		if reason != Accepted {
			t.Fatal(reason)
		}
		for end := range n.End {
			var p packet.Parsed
			packet.Parse(frame[:end], uint32(len(frame)), &p)
			want := NotANotification // its headers aren't all there
			if p.Kind == packet.MACControl || packet.Classify(frame[:end], &p, &r.Code) != packet.NotANotification {
				want = Truncated
			}
			if got := r.Decode(frame[:end], &p, &n); got != want {
				t.Errorf("%s cut at %d: %v, want %v", name, end, got, want)
			}
		}
	}
}

// wrongExtensionChecksum is a frame with a wrong one behind a right ICMPv6 checksum.
func wrongExtensionChecksum() []byte {
	g, _ := golden("long-haul-cnp-icmpv6-objects")
	frame := g.Bytes()
	frame[icmpv6At+18]++
	m := frame[icmpv6At:]
	binary.BigEndian.PutUint16(m[2:], packet.ICMPv6Checksum(address("2001:db8:a::fe"), address("2001:db8:a::1"), m))
	return frame
}

// TestExtensionChecksum: a wrong one is noticed though the message's own is right.
func TestExtensionChecksum(t *testing.T) {
	_, r := golden("long-haul-cnp-icmpv6-objects")
	frame := wrongExtensionChecksum()
	checkReason(t, "extension checksum", &r, frame, ExtensionChecksum)
}

// TestOptionsOfOthers: a packet of any kind whose options are broken, or among whose options is one that forbids an ignorant
// receiver to go on (RFC 8200 4.2), is refused, in whichever header that is.
func TestOptionsOfOthers(t *testing.T) {
	for _, name := range []string{"standard-cnp-v6-tagged", "fast-cnp", "long-haul-cnp-v6-tagged", "long-haul-cnp-icmpv6", "ppfc-v6-resume-tagged",
		"proxy-notification-v6"} {
		g, r := golden(name)
		plain := g.Bytes()
		var p packet.Parsed
		packet.Parse(plain, uint32(len(plain)), &p)
		l3, at := int(p.L3), int(p.L3)+packet.IPv6Len
		for _, c := range []struct {
			header  byte
			options string
			want    Reason
		}{
			{packet.ProtoHopByHop, "\x1e\x02\x00\x00\x01\x00", Accepted},
			{packet.ProtoHopByHop, "\x00\xc5\x03\x00\x00\x00", OptionUnknown},
			{packet.ProtoHopByHop, "\x9e\x04\x00\x00\x00\x00", OptionUnknown}, // a Fast CNP's, but not there
			{packet.ProtoHopByHop, "\x1e\x05\x00\x00\x00\x00", OptionMalformed},
			{packet.ProtoDestOpts, "\x1e\x02\x00\x00\x01\x00", Accepted},
			{packet.ProtoDestOpts, "\x00\x45\x03\x00\x00\x00", OptionUnknown},
			{packet.ProtoDestOpts, "\x00\x00\x00\x00\x00\x1e", OptionMalformed},
		} {
			frame := slices.Concat(plain[:at], []byte{plain[l3+6], 0}, []byte(c.options), plain[at:])
			frame[l3+6] = c.header
			binary.BigEndian.PutUint16(frame[l3+4:], binary.BigEndian.Uint16(frame[l3+4:])+8)
			repair(frame, &r.Code, r.ICRC)
			want := c.want
			if want == Accepted && g.Kind == "fast-cnp" && c.header == packet.ProtoDestOpts {
				want = OptionMisplaced
			}
			checkReason(t, fmt.Sprintf("%s behind header %d with %x", name, c.header, c.options), &r, frame, want)
		}
	}
}

// TestImpostor: nobody is asked to trust an address that an IPv6 packet can't have.
func TestImpostor(t *testing.T) {
	g, r := golden("long-haul-cnp-icmpv6")
	frame := g.Bytes()
	copy(frame[v6Src:], mappedGateway)
	repair(frame, &r.Code, r.ICRC)
	r.Trusted = func(_ packet.Notification, src packet.Addr) bool { return src == address("10.0.0.254") }
	checkReason(t, "impostor", &r, frame, WrongAddress)
}

// TestWhoIsAsked: the access list, the QPs, the flows and the partition keys are the caller's, and each is asked about what the format
// names.
func TestWhoIsAsked(t *testing.T) {
	for _, c := range []struct {
		golden  string
		kind    packet.Notification
		trusted bool // whether the access list is asked
		qp      uint32
		flow    string
		src     string
	}{
		{"standard-cnp-v4", packet.StandardCNP, false, 100, "", ""},
		{"fast-cnp", packet.FastCNP, true, 0, "2001:db8:b::4", "2001:db8:a::fe"},
		{"fast-cnp-preallocated-trace", packet.FastCNP, true, 0, "2001:db8:b::4", "2001:db8:a::fe"},
		{"long-haul-cnp-v4", packet.LongHaulCNP, true, 100, "", "10.0.0.254"},
		{"long-haul-cnp-icmpv6-qinq-undisclosed", packet.LongHaulCNPICMPv6, true, 0xabcdef, "", "2001:db8:a::fe"},
		{"ppfc-v4-pause", packet.PPFC, true, 0, "10.0.0.4", "10.0.0.254"},
		{"ppfc-v6-resume-tagged", packet.PPFC, true, 0, "2001:db8:b::4", "2001:db8:a::fe"},
		{"proxy-notification-v4", packet.ProxyNotification, true, 0, "", "10.0.0.254"},
		{"pfc", packet.LinkPFC, false, 0, "", ""},
	} {
		g, r := golden(c.golden)
		frame := g.Bytes()
		asked := 0
		r.Trusted = func(kind packet.Notification, src packet.Addr) bool {
			asked++
			return kind == c.kind && src == address(c.src)
		}
		r.KnownQP = func(qp uint32) bool { asked += 10; return qp == c.qp }
		r.KnownFlow = func(dst packet.Addr, qp uint32) bool { asked += 100; return dst == address(c.flow) && qp == 200 }
		checkReason(t, c.golden, &r, frame, Accepted)
		want := 0
		if c.trusted {
			want++
		}
		if c.qp != 0 {
			want += 10
		}
		if c.flow != "" {
			want += 100
		}
		if asked != want {
			t.Errorf("%s: asked %d, want %d", c.golden, asked, want)
		}
		if c.qp != 0 {
			r.KnownQP = func(uint32) bool { return false }
			checkReason(t, c.golden, &r, frame, UnknownQP)
		}
		if c.flow != "" {
			r.KnownFlow = func(packet.Addr, uint32) bool { return false }
			checkReason(t, c.golden, &r, frame, UnknownFlow)
		}
		if c.trusted {
			r.Trusted = func(packet.Notification, packet.Addr) bool { return false }
			checkReason(t, c.golden, &r, frame, UntrustedSource)
		}
	}
}

// TestEveryReason: each reason is a name of its own with an explanation.
func TestEveryReason(t *testing.T) {
	names := map[string]bool{}
	for r := range Reason(Reasons) {
		if name := r.String(); names[name] || name == "" || name == "unknown" || r.Explain() == "" {
			t.Errorf("reason %d is %q: %q", r, name, r.Explain())
		}
		names[r.String()] = true
	}
	if Reason(Reasons).String() != "unknown" || Reason(Reasons).Explain() != "unknown reason" {
		t.Error("a reason that isn't one has a name")
	}
}
