package fastpath_test

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/notifications"
	"github.com/cnpgate/cnpgate/internal/testkit/pcap"
)

var be = binary.BigEndian

// VLAN tags of 32 bits: TPID and TCI.
const (
	ctag = packet.EtherTypeCTag << 16
	stag = packet.EtherTypeSTag << 16
)

// tagStacks are those that the fast path may be taken with, the first three, and those that it mustn't take for one of them.
var tagStacks = [][]uint32{nil, {ctag | 0xfff}, {ctag | 0x1001}, {stag | 1}, {ctag | 1, ctag | 2}, {ctag | 1, stag | 2}, {stag | 1, ctag | 2},
	{ctag | 1, ctag | 2, ctag | 3}, {packet.EtherTypeQinQ<<16 | 5}}

// of is a frame of a family, 4 or 6, with minimal headers.
func of(family uint8, r testkit.RoCE) testkit.RoCE {
	r.Src, r.Dst = "198.18.0.1", "198.18.0.2"
	if family == 6 {
		r.Src, r.Dst = "fd00:18::1", "fd00:18::2"
	}
	return r
}

// layout is where the IP and the UDP header of a frame built by testkit.RoCE are.
func layout(r *testkit.RoCE) (l3, l4 int) {
	l3 = packet.EthernetLen + packet.VLANTagLen*len(r.Tags)
	if netip.MustParseAddr(r.Src).Is4() {
		return l3, l3 + packet.IPv4Len
	}
	return l3, l3 + packet.IPv6Len
}

// grow inserts octets into an IP packet at an offset, and makes its length theirs longer.
func grow(b []byte, l3, at int, octets ...byte) []byte {
	length := b[l3+2:]
	if b[l3]>>4 == 6 {
		length = b[l3+4:]
	}
	be.PutUint16(length, be.Uint16(length)+uint16(len(octets)))
	return slices.Insert(b, at, octets...)
}

// behindHeader is a frame with an IPv6 extension header of 8 octets before its UDP header.
func behindHeader(b []byte, l3, l4 int, header uint8) []byte {
	b = grow(b, l3, l4, packet.ProtoUDP, 0, 0, 0, 0, 0, 0, 0)
	b[l3+6] = header
	return b
}

// drawRoCE draws a frame that ParsePlain may be asked about.
func drawRoCE(t *rapid.T) testkit.RoCE {
	r := of(rapid.SampledFrom([]uint8{4, 6}).Draw(t, "family"), testkit.RoCE{
		Tags:     rapid.SampledFrom(tagStacks).Draw(t, "tags"),
		DSCP:     rapid.Uint8Max(63).Draw(t, "DSCP"),
		ECN:      rapid.Uint8Max(3).Draw(t, "ECN"),
		SrcPort:  rapid.Uint16().Draw(t, "source port"),
		Opcode:   packet.Opcode(rapid.Byte().Draw(t, "opcode")),
		Flags:    rapid.Byte().Draw(t, "BTH flags"),
		DestQP:   rapid.Uint32Max(1<<24-1).Draw(t, "destination QP"),
		SourceQP: rapid.Uint32().Draw(t, "source QP"),
		PSN:      rapid.Uint32().Draw(t, "PSN"),
		Size:     rapid.IntRange(0, 200).Draw(t, "size"),
	})
	switch rapid.IntRange(0, 9).Draw(t, "addresses") {
	case 0:
		r.Src = "::ffff:192.0.2.1"
		r.Dst = rapid.SampledFrom([]string{"fd00:18::2", "::ffff:192.0.2.2", "::2"}).Draw(t, "destination")
	case 1, 2, 3:
		n := len(netip.MustParseAddr(r.Src).AsSlice())
		for _, a := range []*string{&r.Src, &r.Dst} {
			ip, _ := netip.AddrFromSlice(rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "address"))
			*a = ip.String()
		}
	}
	return r
}

// drawFrame draws RoCEv2 frames and their near misses.
func drawFrame(t *rapid.T) []byte {
	r := drawRoCE(t)
	b := r.Frame()
	l3, l4 := layout(&r)
	udp := b[l4:]
	some := uint16(rapid.IntRange(1, 50).Draw(t, "some"))
	switch variant := rapid.IntRange(0, 12).Draw(t, "variant"); {
	case variant == 0:
		udp[9] |= uint8(some & 15) // transport version
	case variant == 1:
		be.PutUint16(udp[2:], rapid.SampledFrom([]uint16{1022, 4790, 4792, 53}).Draw(t, "destination port"))
	case variant == 2:
		be.PutUint16(udp[4:], be.Uint16(udp[4:])+some)
	case variant == 3: // octets of the IP packet behind the UDP datagram
		b = grow(b, l3, len(b), make([]byte, some)...)
	case variant == 4:
		b = append(b, make([]byte, some)...) // padding
	case variant == 5 && r.Src[:1] == ":" || variant == 6 && l4 == l3+packet.IPv6Len:
		b = behindHeader(b, l3, l4, rapid.SampledFrom([]uint8{0, 43, 44, 51, 60}).Draw(t, "extension header"))
	case l4 != l3+packet.IPv4Len:
	case variant == 5:
		b[l3+9] = rapid.SampledFrom([]uint8{1, 6, 58, 59, 50, 135, 255}).Draw(t, "protocol")
	case variant == 6:
		n := 4 * rapid.IntRange(1, 10).Draw(t, "options")
		b = grow(b, l3, l4, make([]byte, n)...)
		b[l3] += uint8(n / 4)
	case variant == 7:
		be.PutUint16(b[l3+6:], rapid.SampledFrom([]uint16{0x4000, 0x8000, 0x2000, 0x0001, 0x3fff, 0x1000}).Draw(t, "flags and fragment offset"))
	}
	return b
}

// seeds are frames of real traffic, the golden notifications, and one of each kind that ParsePlain takes or just doesn't take.
func seeds(t testing.TB) (all [][]byte) {
	for _, path := range pcap.Real(t) {
		frames := pcap.Octets(pcap.Read(t, path))
		all = append(all, frames[:min(len(frames), 12)]...)
	}
	for i := range notifications.All {
		all = append(all, notifications.All[i].Bytes())
	}
	return append(all, kinds()...)
}

// kinds are frames whose headers differ in their extent.
func kinds() (all [][]byte) {
	for _, family := range []uint8{4, 6} {
		for _, tags := range tagStacks {
			all = append(all, of(family, testkit.RoCE{Tags: tags, Opcode: packet.RCWriteFirst, Size: 120}).Frame())
		}
		for _, opcode := range []packet.Opcode{packet.RCSendOnly, packet.RCAcknowledge, packet.RCWriteOnlyImm, packet.UD | packet.RCSendOnlyImm, packet.RD | packet.RCSendOnly, packet.CNP} {
			all = append(all, of(family, testkit.RoCE{Opcode: opcode}).Frame())
		}
	}
	r := of(6, testkit.RoCE{Opcode: packet.RCWriteOnlyImm})
	l3, l4 := layout(&r)
	return append(all, testkit.VXLAN(r.Frame(), 1, packet.ECT0, false), testkit.MPLS(r.Frame(), 16), testkit.Pseudowire(r.Frame(), 16),
		behindHeader(r.Frame(), l3, l4, 60))
}
