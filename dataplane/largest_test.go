package dataplane_test

import (
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// TestLargestShare: only the sender of a flow that has most in the queue is notified, at a tie any, and none where more of it is not RoCEv2.
func TestLargestShare(t *testing.T) {
	sized := func(flow uint32, octets int) []byte {
		f := data(true, flow)
		f.Size = octets
		return f.Frame()
	}
	tcp := func(octets int) []byte { return other(sender4, receiver4, packet.ProtoTCP, octets) }
	for _, c := range []struct {
		name     string
		frames   [][]byte
		notified []uint32 // flows
		reason   map[string]uint64
	}{
		{"another flow has more", [][]byte{sized(0, 3000), sized(1, 2000)}, nil, nil},
		{"then its own turn comes", [][]byte{sized(0, 3000), sized(1, 2000), sized(0, 100)}, []uint32{0}, nil},
		{"a tie", [][]byte{sized(0, 2500), sized(1, 2500)}, []uint32{1}, nil},
		{"a tie of all", [][]byte{sized(0, 2500), sized(1, 2500), sized(2, 2500)}, []uint32{1, 2}, nil},
		{"one octet less than a tie", [][]byte{sized(0, 2501), sized(1, 2500)}, nil, nil},
		{"the small ones grow", [][]byte{sized(0, 4000), sized(1, 2000), sized(1, 1999), sized(1, 62)}, []uint32{1}, nil},
		{"TCP has more", [][]byte{tcp(3000), sized(0, 2000)}, nil, map[string]uint64{"largest-not-roce": 1}},
		{"TCP has as much", [][]byte{tcp(2500), sized(0, 2500)}, []uint32{0}, nil},
		{"TCP above K_max is nobody to tell", [][]byte{sized(0, 3000), tcp(2000)}, nil, nil},
		{"management datagrams", [][]byte{testkit.RoCE{Src: sender6, Dst: receiver6, Opcode: packet.UDSendOnly, DestQP: 1, SourceQP: 1,
			Size: 4500}.Frame()}, nil, map[string]uint64{"management-qp": 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, notifying(byAnything...), func(s *testkit.Setup) { s.BufferSize = 9018 })
			s.arrive(c.frames...)
			s.wantSuppressed(c.reason)
			notes := s.finish()
			if len(notes) != len(c.notified) {
				t.Fatalf("%d notifications, expected %d", len(notes), len(c.notified))
			}
			for i, n := range notes {
				if _, p := kindOf(n); p.DestQP != 100+c.notified[i] {
					t.Errorf("notification %d is for QP %d, expected %d", i, p.DestQP, 100+c.notified[i])
				}
			}
		})
	}
}

// TestLargestChanges: as frames leave, another flow becomes the largest.
func TestLargestChanges(t *testing.T) {
	s := newScene(t, notifying(byAnything...), nil)
	s.fill(4, data(true, 0))
	s.fill(3, data(true, 1)) // above K_max, but not the largest
	if n := s.Count(fabric, dataplane.SentFirst); n != 0 {
		t.Fatalf("%d Fast CNPs", n)
	}
	s.Advance(84*8_000 + 3*1024*8_000) // the first frame of the line, then two of flow 0 and the start of the third
	s.Settle()
	s.fill(1, data(true, 1))
	notes := s.finish()
	if len(notes) != 1 {
		t.Fatalf("%d notifications", len(notes))
	}
	if _, p := kindOf(notes[0]); p.DestQP != 101 {
		t.Errorf("the notification is about flow %d", p.DestQP-100)
	}
}

// TestLargestByClass: the largest share is of the class that is congested, whatever waits in another one; and a flow with frames in
// two classes has its share in the first.
func TestLargestByClass(t *testing.T) {
	s := newScene(t, notifying(byAnything...), func(s *testkit.Setup) { s.Change = threeClasses })
	bulk, urgent, small := data(true, 0), data(true, 1), data(true, 2)
	bulk.DSCP, urgent.DSCP, small.DSCP = 1, 0, 0
	s.fill(4, bulk) // 4,000 octets: not above K_max
	s.fill(1, small)
	s.fill(3, urgent)
	s.wantSuppressed(map[string]uint64{})
	s.fill(1, urgent) // 5,000 octets in its class, 4,000 of them its own
	moved := urgent
	moved.DSCP = 1
	s.fill(1, moved) // above K_max there, but the share of its flow is elsewhere
	if notes := s.finish(); len(notes) != 1 {
		t.Fatalf("%d notifications, expected one for the largest of the congested class", len(notes))
	}
}
