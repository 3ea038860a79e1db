package packet

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"
)

// TestARPCodec: the octets of a message and its fields.
func TestARPCodec(t *testing.T) {
	wire := []byte("\x00\x01\x08\x00\x06\x04\x00\x02" + "\x02\x00\x00\x00\x00\x0a\xc0\x00\x02\x01" + "\x02\x00\x00\x00\x00\x0b\xc0\x00\x02\x09")
	want := ARP{Operation: ARPReply, SenderMAC: MAC{2, 0, 0, 0, 0, 10}, SenderIP: AddrFrom4([]byte{192, 0, 2, 1}), TargetMAC: MAC{2, 0, 0, 0, 0, 11},
		TargetIP: AddrFrom4([]byte{192, 0, 2, 9})}
	got, ok := DecodeARP(append(bytes.Clone(wire), 0, 0))
	if !ok || got != want {
		t.Fatalf("decoded %+v, %v", got, ok)
	}
	out := make([]byte, ARPLen)
	if got.Put(out); !bytes.Equal(out, wire) {
		t.Errorf("encoded % x", out)
	}
	if _, ok := DecodeARP(wire[:ARPLen-1]); ok {
		t.Error("a cut message is read")
	}
	for at := range 6 {
		other := bytes.Clone(wire)
		other[at] ^= 1
		if _, ok := DecodeARP(other); ok {
			t.Errorf("a message with another octet %d is read", at)
		}
	}
}

// TestSolicitedNode is the example of RFC 4291 2.7.1.
func TestSolicitedNode(t *testing.T) {
	a := AddrFrom16([]byte{0x40, 0x37, 0, 0, 0, 0, 0, 0, 0, 1, 8, 0, 0x20, 0x0e, 0x8c, 0x6c})
	if got := SolicitedNode(a).Netip().String(); got != "ff02::1:ff0e:8c6c" {
		t.Errorf("%s", got)
	}
	if got := AllNodes.Netip().String(); got != "ff02::1" {
		t.Errorf("%s", got)
	}
}

// TestUnicastMAC: what can be a station's address.
func TestUnicastMAC(t *testing.T) {
	for a, want := range map[MAC]bool{{}: false, {1, 0, 0x5e, 0, 0, 1}: false, AllNodesMAC: false, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}: false, {2}: true, {0, 0, 0, 0, 0, 1}: true} {
		if a.Unicast() != want {
			t.Errorf("%x: %v", a, !want)
		}
	}
}

// TestEchoRoundTrip: a reply to any echo request is a valid packet that only differs from it in type, checksum, and the direction of its addresses; and is no
// echo request itself.
func TestEchoRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		payload := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "payload")
		src, dst := AddrFrom4([]byte{192, 0, 2, 9}), AddrFrom4([]byte{192, 0, 2, 1})
		message := append([]byte{icmpEcho, 0, 0, 0, 0x12, 0x34, 0, 7}, payload...)
		v6 := rapid.Bool().Draw(t, "v6")
		if v6 {
			src, dst, message[0] = Addr{0x20010db8 << 32, 9}, Addr{0x20010db8 << 32, 1}, icmpv6EchoRequest
			binary.BigEndian.PutUint16(message[2:], ICMPv6Checksum(src, dst, message))
		} else {
			binary.BigEndian.PutUint16(message[2:], icmpChecksum(message))
		}
		frame := make([]byte, EthernetLen+IPHeaderLen(src)+len(message))
		copy(frame, "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x09\x08\x00")
		if v6 {
			copy(frame[12:], "\x86\xdd")
			PutIPv6(frame[EthernetLen:], uint16(len(message)), 0, ProtoICMPv6, 64, &src, &dst)
		} else {
			PutIPv4(frame[EthernetLen:], uint16(len(frame)-EthernetLen), 0, 64, ProtoICMP, uint32(src.Lo), uint32(dst.Lo))
		}
		copy(frame[EthernetLen+IPHeaderLen(src):], message)
		var p, q Parsed
		Parse(frame, uint32(len(frame)), &p)
		request := EchoRequest(frame, &p)
		if !bytes.Equal(request, message) {
			t.Fatalf("request % x", request)
		}
		reply := make([]byte, len(frame))
		PutEthernet(reply, frame, &p, MAC{2, 1}, MAC{2, 9})
		PutEchoReply(reply, int(p.L3), request, &p, 64)
		Parse(reply, uint32(len(reply)), &q)
		if q.Kind != IP || q.Src != dst || q.Dst != src || q.IPEnd != p.IPEnd || !bytes.Equal(reply[q.L4+4:], message[4:]) || EchoRequest(reply, &q) != nil {
			t.Fatalf("reply % x", reply)
		}
		at := rapid.IntRange(int(p.L4), len(frame)-1).Draw(t, "octet")
		frame[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if EchoRequest(frame, &p) != nil {
			t.Fatalf("a damaged request is answered: % x", frame)
		}
	})
}
