package packet

import (
	"encoding/binary"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/burst"
)

// TestPlainRunTwins: in runs of frames of all kinds, the assembly and its twin find the same: nothing of a frame is left for the next one.
func TestPlainRunTwins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var octets []byte
		frames := make([]burst.Frame, rapid.IntRange(0, 8).Draw(t, "frames"))
		for i := range frames {
			s := stack{family: rapid.SampledFrom([]uint8{4, 6}).Draw(t, "family"), tags: rapid.SampledFrom(plainTags[:3]).Draw(t, "tag"),
				opcode: rapid.SampledFrom([]Opcode{RCSendOnly, RCAcknowledge, UDSendOnly}).Draw(t, "opcode"), payload: 40,
				dscp: rapid.Uint8Max(63).Draw(t, "DSCP"), ecn: rapid.Uint8Max(3).Draw(t, "ECN")}
			if rapid.IntRange(0, 9).Draw(t, "plain") == 0 {
				s.tags = plainTags[4]
			}
			b, _ := s.build()
			frames[i] = burst.Frame{Buf: 1, Data: uint64(len(octets)), Len: uint32(len(b)), Head: uint32(len(b))}
			octets = append(octets, b...)
		}
		octets = append(octets, 0) // not empty without frames
		port := rapid.Uint64Max(1<<16-1).Draw(t, "port")
		got, want := make([]Record, len(frames)), make([]Record, len(frames))
		run := ParsePlain(unsafe.Pointer(&octets[0]), frames, port, got)
		twin := parsePlainGo(unsafe.Pointer(&octets[0]), frames, port, want)
		if run != twin || !slices.Equal(got[:run.N], want[:run.N]) {
			t.Fatalf("%d frames parsed to\n%+v %+v, the twin finds\n%+v %+v", len(frames), run, got[:run.N], twin, want[:twin.N])
		}
	})
}

// TestPlainLengthBorrowsNoPort: a total length below that of the IP header makes no other UDP port look like RoCEv2's.
func TestPlainLengthBorrowsNoPort(t *testing.T) {
	s := stack{family: 4, opcode: RCSendOnly, payload: 40}
	b, _ := s.build()
	ip, udp := b[EthernetLen:], b[EthernetLen+IPv4Len:]
	binary.BigEndian.PutUint16(udp[2:], RoCEv2Port-1)
	binary.BigEndian.PutUint16(ip[2:], 4)
	binary.BigEndian.PutUint16(udp[4:], 1<<16-16)
	checkPlainIsAny(t, b, 1<<20) // the UDP length is within the frame
	if run := ParsePlain(unsafe.Pointer(&b[0]), []burst.Frame{{Len: 1 << 20, Head: uint32(len(b))}}, 0, make([]Record, 1)); run.N != 0 {
		t.Error("taken as plain")
	}
}
