package dataplane_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// TestLargestShare: only the sender of a flow that has its fair share of the queue (egress.Sums.FairShare) is notified, and none where more of it is not RoCEv2.
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
		{"another flow has more", [][]byte{sized(0, 3600), sized(1, 1400)}, nil, nil},
		{"then its own turn comes", [][]byte{sized(0, 3600), sized(1, 1400), sized(0, 100)}, []uint32{0}, nil},
		{"a tie", [][]byte{sized(0, 2500), sized(1, 2500)}, []uint32{1}, nil},
		{"a tie of all", [][]byte{sized(0, 2500), sized(1, 2500), sized(2, 2500)}, []uint32{1, 2}, nil},
		{"the fair share", [][]byte{sized(0, 3200), sized(1, 2067)}, []uint32{1}, nil},
		{"one octet less than the fair share", [][]byte{sized(0, 3200), sized(1, 2066)}, nil, nil},
		{"the small ones grow", [][]byte{sized(0, 4000), sized(1, 1000), sized(1, 1000), sized(1, 600)}, []uint32{1}, nil},
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
	s.fill(2, data(true, 1)) // above K_max, but less than its share
	if n := s.Count(fabric, counters.SentFirst); n != 0 {
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

// TestLargestByClass: the largest share is of the class that is congested, whatever waits in another one: a flow with frames in two classes
// has a share in each.
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
	s.fill(1, moved) // above K_max there, but most of it is the bulk flow's
	if notes := s.finish(); len(notes) != 1 {
		t.Fatalf("%d notifications, expected one for the largest of the congested class", len(notes))
	}
}

// TestLittleInAnotherClass: frames that a flow has in other classes, where they wait for as long as one before them is not empty, don't hide
// what it has in the class that it fills; and the flow beside it is not notified in its place.
func TestLittleInAnotherClass(t *testing.T) {
	little := func(flow uint32, dscp uint8) testkit.RoCE {
		f := data(true, flow)
		f.DSCP, f.Size = dscp, 80
		return f
	}
	big, victim := data(true, 0), data(true, 1)
	for _, c := range []struct {
		name  string
		first []testkit.RoCE
	}{
		{"nothing", nil},
		{"one frame in a lower class", []testkit.RoCE{little(0, 1)}},
		{"one frame in each lower class", []testkit.RoCE{little(0, 1), little(0, 2)}},
		{"many flows' frames in a lower class", []testkit.RoCE{little(0, 1), little(1, 1), little(2, 1), little(3, 2)}},
	} {
		for tracked, frames := range map[string]int{"": 0, ", tracked": 300} { // that wait in the lower class before
			t.Run(c.name+tracked, func(t *testing.T) {
				s := newScene(t, notifying(byAnything...), func(s *testkit.Setup) { s.Change = threeClasses })
				for n := range frames {
					s.fill(1, testkit.RoCE{Src: sender4, Dst: receiver4, DSCP: 1, DestQP: uint32(200 + n), Size: 60})
				}
				before := s.notified()
				for _, f := range c.first {
					s.fill(1, f)
				}
				lower := s.notified() - before // the lower class may be congested, too
				s.fill(4, big)
				s.fill(1, victim)
				s.fill(1, big)
				s.fill(1, victim)
				if got := s.notified() - before - lower; got != 1 {
					t.Errorf("%d notifications, expected one", got)
				}
				notes := s.finish()
				if _, p := kindOf(notes[len(notes)-1]); p.DestQP != 100 {
					t.Errorf("flow %d is notified, expected the one that fills the class", p.DestQP-100)
				}
			})
		}
	}
}

// TestFairShare: of the flows in a queue, only those with at least their fair share are notified, also if a round may notify more; tiny flows
// beside them don't change that. Each case has every flow's frames in the queue, of 100 bytes each, and then one more frame of each flow.
func TestFairShare(t *testing.T) {
	tiny := func(flows ...int) []int {
		for range 200 {
			flows = append(flows, 1)
		}
		return flows
	}
	for _, c := range []struct {
		name     string
		frames   []int // of each flow
		notified []int // flows
	}{
		{"one", []int{100}, []int{0}},
		{"a mouse", []int{285, 1}, []int{0}},
		{"mice", []int{285, 1, 2, 1}, []int{0}},
		{"all alike", []int{50, 50, 50, 50}, []int{0, 1, 2, 3}},
		{"two of four", []int{80, 60, 40, 20}, []int{0, 1}},
		{"the least of many", []int{50, 50, 50, 50, 50, 50, 50, 50, 20}, []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{"tiny flows don't lower it", tiny(600, 200), []int{0}},
		{"and don't raise it", tiny(300, 300), []int{0, 1}},
	} {
		for _, workers := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s/%d", c.name, workers), func(t *testing.T) {
				p := notifying(byAnything...)
				const size = 100
				all := uint64(0)
				for _, n := range c.frames {
					all += size * uint64(n)
				}
				p.Ports[wan].Thresholds = congestion.Thresholds{KMin: all / 2, KMax: all - 3*size}
				s := newScene(t, p, func(s *testkit.Setup) { s.Workers = workers })
				frame := func(flow int) {
					f := data(true, uint32(flow))
					f.Size = size
					s.InjectAt(t, flow%workers, fabric, f.Frame())
					s.Settle()
				}
				for flow, n := range c.frames {
					for range n {
						frame(flow)
					}
				}
				var notified []int
				for flow := range c.frames {
					before := s.notified()
					if frame(flow); s.notified() > before {
						notified = append(notified, flow)
					}
				}
				if !slices.Equal(notified, c.notified) {
					t.Errorf("flows %v are notified, expected %v", notified, c.notified)
				}
				s.Drain()
				s.Close(t)
			})
		}
	}
}

// TestEqualRates: of flows with equal rates, whose packets come in any order, three quarters or more are notified at their first packet above
// K_max, and all before the queue is half as long again.
func TestEqualRates(t *testing.T) {
	for _, flows := range []int{1, 2, 4, 8, 16} {
		t.Run(fmt.Sprint(flows), func(t *testing.T) {
			const size, each = 100, 50 // octets, and packets of each flow in the queue
			most := flows * each
			p := notifying(byAnything...)
			p.Ports[wan].Thresholds = congestion.Thresholds{KMin: uint64(most * size / 2), KMax: uint64(most * size)}
			s := newScene(t, p, nil)
			order := rand.New(rand.NewPCG(1, uint64(flows)))
			frames, atOnce := 0, 0
			seen, notified := map[int]bool{}, map[int]bool{}
			for len(notified) < flows && frames < most*3/2 {
				flow := order.IntN(flows)
				f := data(true, uint32(flow))
				f.Size = size
				before := s.notified()
				s.arrive(f.Frame())
				frames++
				if frames <= most+1 { // the first one is transmitted
					continue
				}
				if s.notified() > before {
					notified[flow] = true
					if !seen[flow] {
						atOnce++
					}
				}
				seen[flow] = true
			}
			if len(notified) < flows || 4*atOnce < 3*flows {
				t.Errorf("%d of %d senders are notified once the queue has %d packets, %d of them at their first above %d", len(notified), flows, frames, atOnce, most)
			}
			s.finish()
		})
	}
}
