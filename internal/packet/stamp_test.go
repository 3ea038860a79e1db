package packet

import (
	"bytes"
	"encoding/hex"
	"testing"

	"pgregory.net/rapid"
)

// TestSTAMPGolden: the octets of RFC 8762's figures 2 and 5.
func TestSTAMPGolden(t *testing.T) {
	const test = "01020304" + "1112131415161718" + "1601"
	sent := STAMPTest{0x01020304, 0x1112131415161718, STAMPError}
	reply := STAMPReply{0x01020304, 0x2122232425262728, STAMPError, 0x3132333435363738, sent, 254}
	b := bytes.Repeat([]byte{0xff}, STAMPLen)
	if sent.Put(b); hex.EncodeToString(b) != test+hex.EncodeToString(make([]byte, 30)) {
		t.Errorf("the test packet is %x", b)
	}
	b = bytes.Repeat([]byte{0xff}, STAMPLen)
	if reply.Put(b); hex.EncodeToString(b) != "01020304"+"2122232425262728"+"1601"+"0000"+"3132333435363738"+test+"0000"+"fe"+"000000" {
		t.Errorf("the reply is %x", b)
	}
}

// stampBody decodes octets as a test packet and as a reply: what is written from them decodes to the same.
func stampBody(t interface{ Fatalf(string, ...any) }, b []byte) {
	if len(b) < STAMPLen {
		return
	}
	var again [STAMPLen]byte
	test, reply := DecodeSTAMPTest(b), DecodeSTAMPReply(b)
	if test.Put(again[:]); DecodeSTAMPTest(again[:]) != test || !bytes.Equal(again[:14], b[:14]) {
		t.Fatalf("% x is the test packet %+v, written as % x", b, test, again)
	}
	if reply.Put(again[:]); DecodeSTAMPReply(again[:]) != reply || !bytes.Equal(again[16:38], b[16:38]) {
		t.Fatalf("% x is the reply %+v, written as % x", b, reply, again)
	}
}

func FuzzSTAMP(f *testing.F) {
	f.Add(make([]byte, STAMPLen))
	f.Add(bytes.Repeat([]byte{0xa5}, STAMPLen+20))
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) { stampBody(t, b) })
}

func TestSTAMPProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { stampBody(t, rapid.SliceOfN(rapid.Byte(), STAMPLen, 2*STAMPLen).Draw(t, "octets")) })
}

func TestNTPSince(t *testing.T) {
	for _, c := range []struct{ later, earlier, want int64 }{
		{0, 0, 0}, {1_000_000_000, 0, 1_000_000_000}, {1_700_000_000_123_456_789, 1_700_000_000_000_000_000, 123_456_789},
		{5, 1_000_000_000, -999_999_995}, {2_085_978_496_000_000_005, 2_085_978_495_999_999_999, 6}, // eras of NTP: 2036
	} {
		if got := NTPSince(NTPTime(c.later), NTPTime(c.earlier)); got < c.want-1 || got > c.want+1 {
			t.Errorf("from %d to %d: %d ns, expected %d", c.earlier, c.later, got, c.want)
		}
	}
}

// TestPutUDPDatagram: Parse finds what was written, and the checksums are right.
func TestPutUDPDatagram(t *testing.T) {
	for _, c := range []struct{ src, dst Addr }{
		{AddrFrom4([]byte{192, 0, 2, 1}), AddrFrom4([]byte{198, 51, 100, 9})}, {Addr{0x20010db8 << 32, 1}, Addr{0x20010db8 << 32, 2}},
	} {
		const l3 = EthernetLen + VLANTagLen
		frame := make([]byte, l3+IPHeaderLen(c.src)+UDPLen+STAMPLen)
		frame[12], frame[13] = 0x81, 0x00
		test := STAMPTest{Sequence: 7}
		test.Put(frame[l3+IPHeaderLen(c.src)+UDPLen:])
		PutUDPDatagram(frame, l3, c.src, c.dst, 48, 255, 50000, STAMPPort)
		var p Parsed
		Parse(frame, uint32(len(frame)), &p)
		if p.Kind != IP || p.Src != c.src || p.Dst != c.dst || p.DSCP != 48 || p.SrcPort != 50000 || p.DstPort != STAMPPort || int(p.IPEnd) != len(frame) {
			t.Errorf("parsed %+v", p)
		}
		if c.src.Is4() && !IPv4ChecksumOK(frame, &p) {
			t.Error("the IPv4 checksum is wrong")
		}
		datagram := frame[p.L4:]
		if got := UDPChecksum(c.src, c.dst, datagram); datagram[6] != byte(got>>8) || datagram[7] != byte(got) {
			t.Errorf("UDP checksum %x, expected %04x", datagram[6:8], got)
		}
	}
}
