package packet

import (
	"bytes"
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

func addr(s string) Addr { return AddrFrom(netip.MustParseAddr(s)) }

func TestPutHeaders(t *testing.T) {
	from, to := addr("2001:db8::1"), addr("fd00:18::2")
	for _, c := range []struct {
		name string
		put  func(b []byte)
		want string
	}{
		{"IPv4", func(b []byte) { PutIPv4(b, 60, 48<<2, 64, ProtoUDP, 0xc0000201, 0xc6336402) },
			"\x45" + // version 4, IHL 5
				"\xc0" + // DSCP 48, Not-ECT
				"\x00\x3c" + // total length 60
				"\x00\x00" + // identification
				"\x40\x00" + // DF
				"\x40\x11" + // TTL 64, UDP
				"\x4d\xba" + // checksum: 45c0+003c+4000+4011+c000+0201+c633+6402 = 2b243 -> b245 -> complement 4dba
				"\xc0\x00\x02\x01" + "\xc6\x33\x64\x02"},
		{"IPv6", func(b []byte) { PutIPv6(b, 64, 48<<2, ProtoDestOpts, 64, &from, &to) },
			"\x6c\x00\x00\x00" + // version 6, DSCP 48, Not-ECT, flow label 0
				"\x00\x40" + // payload length 64
				"\x3c\x40" + // Destination Options, hop limit 64
				"\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" +
				"\xfd\x00\x00\x18\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02"},
		{"BTH with everything set", (&BTH{Opcode: RCSendOnly, SE: true, PadCount: 3, TVer: 5, PKey: 0x8001, Flags: FECN | 0x1f,
			DestQP: 0xffffffff, AckReq: true, PSN: 0xfffffffe}).Put,
			"\x04\xb5\x80\x01" + "\x9f\xff\xff\xff" + "\x80\xff\xff\xfe"},
		{"DETH with a QP of more than 24 bits", (&DETH{QKey: 0x01020304, SourceQP: 0x5060708}).Put, "\x01\x02\x03\x04" + "\x00\x06\x07\x08"},
	} {
		b := bytes.Repeat([]byte{0xee}, len(c.want)+1)
		c.put(b)
		if string(b) != c.want+"\xee" {
			t.Errorf("%s:\n% x, want\n% x", c.name, b[:len(c.want)], c.want)
		}
	}
}

// TestICMPv6ChecksumPlain compares with the definition: RFC 1071 over the written-out pseudo-header and message.
func TestICMPv6ChecksumPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		octets := rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "addresses")
		msg := rapid.SliceOfN(rapid.Byte(), 4, 99).Draw(t, "message")
		pseudo := append(append([]byte(nil), octets...), 0, 0, 0, byte(len(msg)), 0, 0, 0, 58, msg[0], msg[1], 0, 0)
		pseudo = append(pseudo, msg[4:]...)
		if len(pseudo)%2 == 1 {
			pseudo = append(pseudo, 0)
		}
		got := ICMPv6Checksum(AddrFrom16(octets), AddrFrom16(octets[16:]), msg)
		if want := plainChecksum(pseudo); got != want {
			t.Fatalf("checksum %04x, want %04x", got, want)
		}
	})
}

// TestMaskedHeaders: a header that is written with ones in the fields that the ICRC doesn't cover, and then gets them, is the one that is written
// at once.
func TestMaskedHeaders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length, proto := rapid.Uint16().Draw(t, "length"), rapid.Byte().Draw(t, "protocol")
		class, ttl := rapid.Byte().Draw(t, "class"), rapid.Byte().Draw(t, "TTL")
		src, dst := AddrFrom16(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "source")), AddrFrom16(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "destination"))
		var got4, want4 [IPv4Len]byte
		MaskIPv4(&got4, length, proto, uint32(src.Lo), uint32(dst.Lo))
		if got4[1]&got4[8]&got4[10]&got4[11] != 0xff {
			t.Fatalf("IPv4: % x is not masked", got4)
		}
		UnmaskIPv4(&got4, class, ttl)
		PutIPv4(want4[:], length, class, ttl, proto, uint32(src.Lo), uint32(dst.Lo))
		if got4 != want4 {
			t.Fatalf("IPv4: % x, want % x", got4, want4)
		}
		var got6, want6 [IPv6Len]byte
		MaskIPv6(&got6, length, proto, &src, &dst)
		if got6[0] != 0x6f || got6[1]&got6[2]&got6[3]&got6[7] != 0xff {
			t.Fatalf("IPv6: % x is not masked", got6)
		}
		UnmaskIPv6(&got6, class, ttl)
		PutIPv6(want6[:], length, class, proto, ttl, &src, &dst)
		if got6 != want6 {
			t.Fatalf("IPv6: % x, want % x", got6, want6)
		}
	})
}
