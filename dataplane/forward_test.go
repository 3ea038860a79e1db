package dataplane_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

const (
	sender4, receiver4 = "198.18.0.1", "198.19.0.1"
	sender6, receiver6 = "fd00:18::1", "fd00:19::1"
)

// ethernet is a frame with an EtherType and any body, padded to 60 octets.
func ethernet(etherType uint16, body ...byte) []byte {
	b := []byte{2, 0, 0, 0, 0, 0xd, 2, 0, 0, 0, 0, 0x5}
	b = append(binary.BigEndian.AppendUint16(b, etherType), body...)
	return append(b, make([]byte, max(0, 60-len(b)))...)
}

// other is an IP packet of another upper layer.
func other(src, dst string, proto uint8, size int) []byte {
	b := testkit.RoCE{Src: src, Dst: dst, ECN: packet.ECT0, Size: size}.Frame()
	if b[12] == 0x08 {
		b[23] = proto
		testkit.SetECN(b, 14, packet.ECT0)
	} else {
		b[20] = proto
	}
	return b
}

func fragment(offset uint16) []byte {
	b := testkit.RoCE{Src: sender4, Dst: receiver4, DestQP: 9, Size: 200}.Frame()
	binary.BigEndian.PutUint16(b[20:], offset)
	testkit.SetECN(b, 14, packet.ECT0)
	return b
}

var anyFrames = []struct {
	name  string
	frame []byte
}{
	{"ARP", ethernet(0x0806, 0, 1, 8, 0, 6, 4, 0, 1)},
	{"LLDP", ethernet(0x88cc, 2, 7, 4)},
	{"802.3 with LLC", ethernet(38, 0x42, 0x42, 3)},
	{"unknown EtherType", ethernet(0x1234)},
	{"RoCEv1", ethernet(0x8915, 0x60)},
	{"neighbour solicitation", append(append([]byte{0x33, 0x33, 0xff, 0, 0, 1}, other(sender6, receiver6, packet.ProtoICMPv6, 86)[6:54]...),
		append([]byte{135, 0, 0, 0}, make([]byte, 28)...)...)},
	{"TCP", other(sender4, receiver4, packet.ProtoTCP, 1514)},
	{"TCP over IPv6", other(sender6, receiver6, packet.ProtoTCP, 1514)},
	{"RoCEv2", testkit.RoCE{Src: sender4, Dst: receiver4, DestQP: 7, Size: 1082}.Frame()},
	{"RoCEv2 over IPv6", testkit.RoCE{Src: sender6, Dst: receiver6, DestQP: 7, ECN: packet.ECT1, Size: 1082}.Frame()},
	{"RoCEv2 marked CE", testkit.RoCE{Src: sender4, Dst: receiver4, DestQP: 7, ECN: packet.CE}.Frame()},
	{"RoCEv2 with a VLAN tag", testkit.RoCE{Tags: []uint32{0x8100_6064}, Src: sender4, Dst: receiver4, DestQP: 7}.Frame()},
	{"RoCEv2 in QinQ", testkit.RoCE{Tags: []uint32{0x88a8_0001, 0x8100_0002}, Src: sender6, Dst: receiver6, DestQP: 7}.Frame()},
	{"three VLAN tags", testkit.RoCE{Tags: []uint32{0x88a8_0001, 0x8100_0002, 0x8100_0003}, Src: sender4, Dst: receiver4}.Frame()},
	{"jumbo", testkit.RoCE{Src: sender4, Dst: receiver4, DestQP: 7, ECN: packet.ECT0, Size: 9018}.Frame()},
	{"jumbo with two tags", testkit.RoCE{Tags: []uint32{0x88a8_0001, 0x8100_0002}, Src: sender6, Dst: receiver6, DestQP: 7, Size: 9022}.Frame()},
	{"ACK", testkit.RoCE{Src: receiver4, Dst: sender4, DestQP: 8, Opcode: packet.RCAcknowledge}.Frame()},
	{"CNP", testkit.RoCE{Src: receiver4, Dst: sender4, DestQP: 8, Opcode: packet.CNP, Flags: packet.BECN, Size: 74}.Frame()},
	{"first fragment", fragment(0x2000)},
	{"last fragment", fragment(0x0010)},
	{"IPv4 longer than the frame", testkit.RoCE{Src: sender4, Dst: receiver4, Size: 1000}.Frame()[:200]},
	{"IPv6 longer than the frame", testkit.RoCE{Src: sender6, Dst: receiver6, Size: 1000}.Frame()[:200]},
	{"a runt", testkit.RoCE{Src: sender4, Dst: receiver4}.Frame()[:17]},
	{"half an Ethernet header", ethernet(0x0800)[:9]},
	{"noise", bytes.Repeat([]byte{0xa5, 0x5a, 0xff}, 100)},
	{"nothing but an IP header", testkit.RoCE{Src: sender4, Dst: receiver4}.Frame()[:34]},
	{"IPv4 of a wrong header length", ethernet(0x0800, 0x4f, 0, 0, 20)},
	{"IPv6 with a header that names itself", ethernet(0x86dd, 0x60, 0, 0, 0, 0, 6, 60, 64)},
}

// TestForwardsEverything: every frame leaves by the peer as it came, either way, of several pairs, in order.
func TestForwardsEverything(t *testing.T) {
	for pairs := 1; pairs <= 3; pairs++ {
		t.Run(fmt.Sprintf("%d pairs", pairs), func(t *testing.T) {
			r := testkit.New(t, testkit.Setup{Pairs: pairs, BufferSize: 9600})
			octets := uint64(0)
			for port := range 2 * pairs {
				for _, c := range anyFrames {
					r.Inject(t, port, c.frame)
				}
			}
			for _, c := range anyFrames {
				octets += uint64(len(c.frame))
			}
			r.Drain()
			for port := range 2 * pairs {
				sent := r.Take(port)
				if len(sent) != len(anyFrames) {
					t.Fatalf("port %d sent %d frames of %d", port, len(sent), len(anyFrames))
				}
				for i, c := range anyFrames {
					if !bytes.Equal(sent[i].Octets, c.frame) || sent[i].Length != uint32(len(c.frame)) || sent[i].Built {
						t.Errorf("port %d: %s left as\n% x, came as\n% x", port, c.name, sent[i].Octets, c.frame)
					}
				}
				n := uint64(len(anyFrames))
				s := r.Plane.Port(port)
				if s.Count[counters.RxPackets] != n || s.Count[counters.TxPackets] != n ||
					s.Count[counters.RxBytes] != octets || s.Count[counters.TxBytes] != octets {
					t.Errorf("port %d counts %v", port, s.Count)
				}
				if got := s.Count[counters.CEReceived]; got != 1 {
					t.Errorf("port %d: %d frames came in with CE, expected 1", port, got)
				}
				if s.Depth[0] != 0 || s.Watermark[0] == 0 {
					t.Errorf("port %d: depth %d, watermark %d", port, s.Depth[0], s.Watermark[0])
				}
			}
			r.Close(t)
		})
	}
}

// TestCutShort: a frame of which only the beginning is at hand keeps its length, and its whole length counts.
func TestCutShort(t *testing.T) {
	r := testkit.New(t, testkit.Setup{})
	frame := testkit.RoCE{Src: sender4, Dst: receiver4, DestQP: 7, Size: 4000}.Frame()
	r.Inject(t, 0, frame[:64])
	r.InjectCut(t, 0, 0, frame[:64], uint32(len(frame)))
	r.Settle()
	if got := r.Count(0, counters.RxBytes); got != 64+4000 {
		t.Errorf("%d octets received", got)
	}
	r.Drain()
	sent := r.Take(1)
	if len(sent) != 2 || sent[0].Length != 64 || sent[1].Length != 4000 || !bytes.Equal(sent[1].Octets, frame[:64]) {
		t.Errorf("sent %+v", sent)
	}
	if got := r.Count(1, counters.TxBytes); got != 64+4000 {
		t.Errorf("%d octets sent", got)
	}
	r.Close(t)
}

// TestCloseWithFullQueues: every frame that is still queued counts as dropped by the shutdown and gives its buffer back, also
// where frames are on offer to several devices at that moment and more must be freed than one exchange can.
func TestCloseWithFullQueues(t *testing.T) {
	for _, waiting := range []bool{false, true} {
		r := testkit.New(t, testkit.Setup{Pairs: 2, Rate: 1_000_000})
		frame := testkit.RoCE{Src: sender4, Dst: receiver4, DestQP: 7, Size: 300}.Frame()
		for port := range 4 {
			for range 400 {
				r.Inject(t, port, frame)
			}
		}
		if waiting {
			r.Settle()
		} else {
			for range 11 {
				r.Plane.Worker(0).Step()
			}
			r.Advance(1e9) // so that every port has an offer to its device under way
			r.Plane.Worker(0).Step()
		}
		left := 0
		for port := range 4 {
			left += int(r.Plane.Port(port).Frames[0])
		}
		if left == 0 {
			t.Fatal("nothing is queued")
		}
		sent := len(r.Sent[0])
		r.Close(t)
		dropped := uint64(0)
		for port := range 4 {
			dropped += r.Count(port, counters.DroppedShutdown)
		}
		if dropped != uint64(left) || len(r.Sent[0]) != sent {
			t.Errorf("%d frames dropped and %d sent by the shutdown, expected %d and none", dropped, len(r.Sent[0])-sent, left)
		}
	}
}
