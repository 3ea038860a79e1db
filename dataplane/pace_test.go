package dataplane_test

import (
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// pacedScene is a gateway whose fabric port, of 10 Gbit/s, paces hosts: to 1 Gbit/s after a CNP, and 10 ms later not any more. A host behind it has sent
// an ACK to QP 100 of the sender.
func pacedScene(t *testing.T, hold uint64, change func(*congestion.Pacing)) *scene {
	p := testkit.DefaultPolicy(2)
	pacing := &congestion.Pacing{HostRate: 10e9, Floor: 1e9, Keep: 1, Interval: 50_000, Recovery: 10_000_000_000}
	if change != nil {
		change(pacing)
	}
	p.Ports[fabric].Pacing = pacing
	s := &scene{testkit.New(t, testkit.Setup{Rate: 10e9, Policy: p, Static: knownQPs(t), Change: func(c *dataplane.Config) { c.Ports[fabric].Paced = hold }}), t}
	connect(t, s.Rig)
	s.Drain()
	s.Take(wan)
	s.Take(fabric)
	return s
}

// connect makes the connection whose CNPs slow down the host behind the fabric: data for it, and its ACK.
func connect(t *testing.T, r *testkit.Rig) {
	t.Helper()
	ack := data(false, 0)
	ack.Opcode, ack.Size = packet.RCAcknowledge, 0
	r.Inject(t, wan, connected().Frame())
	r.Settle()
	r.Inject(t, fabric, ack.Frame())
	r.Settle()
}

// connected is the data of that connection.
func connected() testkit.RoCE {
	f := toHost(0, 0)
	f.DestQP, f.Opcode, f.Size = sourceQP, packet.RCSendOnly, 0
	return f
}

// cnpFrom is a CNP of the host that pacedScene has, to a QP of the sender.
func cnpFrom(qp uint32) []byte {
	f := data(false, qp)
	f.Opcode, f.Size = packet.CNP, 0
	return f.Frame()
}

// toHost is a packet of a flow to that host.
func toHost(flow, psn uint32) testkit.RoCE {
	f := data(false, flow)
	f.Src, f.Dst, f.PSN, f.Size = f.Dst, f.Src, psn, 1250
	return f
}

// TestPacing: after a host's CNP the packets to it go on at the host's pace, those of the flow that was served least first and each flow's in order; those to
// other hosts, ACKs, and the CNP itself aren't held up.
func TestPacing(t *testing.T) {
	s := pacedScene(t, 1e6, nil)
	for psn := range uint32(5) { // flow 1 has been served more
		s.arriveAt(wan, toHost(1, psn).Frame())
	}
	s.Drain()
	s.Take(fabric)
	s.arrive(cnpFrom(0))
	s.Settle()
	s.Advance(1_000)
	s.Settle()
	if out := s.Take(wan); len(out) != 1 || s.Count(fabric, counters.PaceReductions) != 1 {
		t.Fatalf("%d frames left by the WAN, %d reductions", len(out), s.Count(fabric, counters.PaceReductions))
	}
	began := s.Now
	for psn := range uint32(5) {
		s.arriveAt(wan, toHost(1, 5+psn).Frame())
	}
	for psn := range uint32(5) {
		s.arriveAt(wan, toHost(2, psn).Frame())
	}
	other := toHost(3, 0)
	other.Dst = "198.18.0.77"
	ack := toHost(1, 77)
	ack.Opcode, ack.Size = packet.RCAcknowledge, 0
	s.arriveAt(wan, other.Frame(), ack.Frame())
	if n := s.Plane.Port(fabric); n.PacedFrames != 9 || n.PacedBytes != 9*1250 {
		t.Errorf("%d frames of %d bytes are held", n.PacedFrames, n.PacedBytes)
	}
	s.Drain()
	var order [][2]uint32
	last := began
	for _, f := range s.Take(fabric) {
		_, p := kindOf(f)
		switch {
		case p.Dst != address(sender4) || p.Opcode == packet.RCAcknowledge:
			if f.Now > began+5_000 {
				t.Errorf("a packet that isn't paced left after %d ns", f.Now-began)
			}
			continue
		case len(order) > 0 && f.Now-last < 9_900: // 1250 bytes take 10 us
			t.Errorf("flow %d, PSN %d: %d ns after the packet before", p.DestQP, p.PSN, f.Now-last)
		}
		last = f.Now
		order = append(order, [2]uint32{p.DestQP - 100, p.PSN})
	}
	want := [][2]uint32{{1, 5}, {2, 0}, {2, 1}, {2, 2}, {2, 3}, {2, 4}, {1, 6}, {1, 7}, {1, 8}, {1, 9}}
	if len(order) != len(want) {
		t.Fatalf("%d packets: %v", len(order), order)
	}
	for i := range want {
		if order[i] != want[i] {
			t.Fatalf("order %v, expected %v", order, want)
		}
	}
	if took := last - began; took < 89_000 || took > 95_000 {
		t.Errorf("10 packets took %d ns, expected 90 us", took)
	}
	s.Close(t)
}

// TestPacingStarts: what slows a host down, and what doesn't.
func TestPacingStarts(t *testing.T) {
	for _, c := range []struct {
		name  string
		hold  uint64
		port  int
		frame []byte
		want  uint64
	}{
		{"its CNP", 1e6, fabric, cnpFrom(0), 1},
		{"a CNP to a QP that it has no connection with", 1e6, fabric, cnpFrom(5), 0},
		{"a CNP that comes from the WAN", 1e6, wan, cnpFrom(0), 0},
		{"an ACK", 1e6, fabric, data(false, 0).Frame(), 0},
		{"no pacing", 0, fabric, cnpFrom(0), 0},
		{"observe mode", 1e6, fabric, cnpFrom(0), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := pacedScene(t, c.hold, nil)
			if c.name == "observe mode" {
				p := *s.Plane.Policy()
				p.Observe = true
				if err := s.Plane.SetPolicy(&p); err != nil {
					t.Fatal(err)
				}
			}
			s.arriveAt(c.port, c.frame)
			if got := s.Count(fabric, counters.PaceReductions); got != c.want {
				t.Errorf("%d reductions", got)
			}
			for psn := range uint32(10) {
				s.arriveAt(wan, toHost(1, psn).Frame())
			}
			if held := s.Plane.Port(fabric).PacedFrames; held != 9*c.want {
				t.Errorf("%d frames held", held)
			}
			s.Drain()
			s.Close(t)
		})
	}
}

// TestPacingEnds: frames that are held leave, in order, also when there are more than may be held, when pacing is switched off, and at the stop.
func TestPacingEnds(t *testing.T) {
	t.Run("more than may be held", func(t *testing.T) {
		s := pacedScene(t, 4*1250, nil)
		s.arrive(cnpFrom(0))
		for psn := range uint32(20) {
			s.arriveAt(wan, toHost(1, psn).Frame())
			if n := s.Plane.Port(fabric); n.PacedBytes > 4*1250 {
				t.Fatalf("%d bytes held", n.PacedBytes)
			}
		}
		if got := s.Count(fabric, counters.PacedTooMany); got != 15 {
			t.Errorf("%d times too many", got)
		}
		wantInOrder(t, s, 20)
	})
	t.Run("switched off", func(t *testing.T) {
		s := pacedScene(t, 1e6, nil)
		s.arrive(cnpFrom(0))
		for psn := range uint32(10) {
			s.arriveAt(wan, toHost(1, psn).Frame())
		}
		if err := s.Plane.SetPolicy(testkit.DefaultPolicy(2)); err != nil {
			t.Fatal(err)
		}
		for psn := range uint32(10) {
			s.arriveAt(wan, toHost(1, 10+psn).Frame())
		}
		wantInOrder(t, s, 20)
		s.arriveAt(wan, toHost(1, 20).Frame())
		if n := s.Plane.Port(fabric).PacedFrames; n != 0 {
			t.Errorf("%d frames held", n)
		}
	})
	t.Run("stopped", func(t *testing.T) {
		s := pacedScene(t, 1e6, nil)
		s.arrive(cnpFrom(0))
		for psn := range uint32(10) {
			s.arriveAt(wan, toHost(1, psn).Frame())
		}
		s.Plane.Worker(0).Close()
		if got := s.Count(fabric, counters.DroppedShutdown); got < 9 {
			t.Errorf("%d frames dropped by the stop", got)
		}
		s.Close(t)
	})
}

// wantInOrder lets all leave, and wants n packets to the host in the order of their PSNs.
func wantInOrder(t *testing.T, s *scene, n int) {
	t.Helper()
	s.Drain()
	psn := uint32(0)
	for _, f := range s.Take(fabric) {
		if _, p := kindOf(f); p.Opcode != packet.RCAcknowledge && p.Opcode != packet.CNP {
			if p.PSN != psn {
				t.Errorf("PSN %d, expected %d", p.PSN, psn)
			}
			psn++
		}
	}
	if int(psn) != n {
		t.Errorf("%d packets, expected %d", psn, n)
	}
}

// TestPacingByTwoWorkers: a CNP that comes to one worker slows down the packets that come to the other one.
func TestPacingByTwoWorkers(t *testing.T) {
	p := testkit.DefaultPolicy(2)
	p.Ports[fabric].Pacing = &congestion.Pacing{HostRate: 10e9, Floor: 1e9, Keep: 1, Interval: 50_000, Recovery: 10_000_000_000}
	r := testkit.New(t, testkit.Setup{Workers: 2, Rate: 10e9, Policy: p, Static: knownQPs(t), Change: func(c *dataplane.Config) { c.Ports[fabric].Paced = 1e6 }})
	connect(t, r)
	r.InjectAt(t, 0, fabric, cnpFrom(0))
	r.Settle()
	for psn := range uint32(10) {
		r.InjectAt(t, 1, wan, toHost(1, psn).Frame())
	}
	r.Settle()
	if n := r.Plane.Port(fabric); n.PacedFrames != 9 || r.Count(fabric, counters.PaceReductions) != 1 {
		t.Errorf("%d frames held after %d reductions", n.PacedFrames, r.Count(fabric, counters.PaceReductions))
	}
	for range 3 * 64 { // more than a mailbox takes
		r.Advance(50_000)
		r.InjectAt(t, 0, fabric, cnpFrom(0))
		r.Plane.Worker(0).Step()
	}
	if missed := r.Count(fabric, counters.PaceReductionsMissed); missed != r.Count(fabric, counters.PaceReductions)-1-64 {
		t.Errorf("%d of %d reductions missed, expected those that found the mailbox full", missed, r.Count(fabric, counters.PaceReductions))
	}
	r.Settle()
	r.Drain()
	r.Close(t)
}

// TestPacingFull: frames that find neither a place to be held nor space in their class are dropped, each once and none out of order.
func TestPacingFull(t *testing.T) {
	p := testkit.DefaultPolicy(2)
	p.Ports[fabric].Pacing = &congestion.Pacing{HostRate: 10e9, Floor: 1e6, Keep: 1, Interval: 50_000, Recovery: 10_000_000_000}
	s := &scene{testkit.New(t, testkit.Setup{Static: knownQPs(t), Rate: 1e6, Capacity: 6 * 1250, Policy: p, Change: func(c *dataplane.Config) { c.Ports[fabric].Paced = 4 * 1250 }}), t}
	connect(t, s.Rig)
	s.Drain()
	s.Take(fabric)
	s.arrive(cnpFrom(0))
	for psn := range uint32(60) {
		s.arriveAt(wan, toHost(1, psn).Frame())
	}
	if dropped := s.Count(fabric, counters.DroppedQueueOctets); dropped == 0 {
		t.Error("nothing was dropped")
	}
	s.Drain()
	last := -1
	for _, f := range s.Take(fabric) {
		if _, q := kindOf(f); q.Opcode != packet.RCAcknowledge && q.Opcode != packet.CNP {
			if int(q.PSN) <= last {
				t.Errorf("PSN %d after %d", q.PSN, last)
			}
			last = int(q.PSN)
		}
	}
	s.Close(t)
}

// TestPacingMarks: a frame that was held is marked like any other if it enters its class above K_min, and in observe mode only counted.
func TestPacingMarks(t *testing.T) {
	for _, c := range []struct {
		name             string
		kMin             uint64
		ecn              uint8
		observe          bool // once frames are held
		marked, observed uint64
	}{
		{"above K_min", 1, packet.ECT0, false, 10, 0},
		{"at K_min", 1250, packet.ECT0, false, 0, 0},
		{"Not-ECT", 1, packet.NotECT, false, 0, 0},
		{"observed", 1, packet.ECT0, true, 1, 9},
	} {
		s := pacedScene(t, 1e6, nil)
		s.arrive(cnpFrom(0))
		p := *s.Plane.Policy()
		p.Ports = slices.Clone(p.Ports)
		p.Ports[fabric].KMin = c.kMin
		if err := s.Plane.SetPolicy(&p); err != nil {
			t.Fatal(err)
		}
		f := toHost(1, 0)
		f.ECN = c.ecn
		for range 10 {
			s.Inject(t, wan, f.Frame())
		}
		s.Plane.Worker(0).Step()
		if n := s.Plane.Port(fabric).PacedFrames; n != 9 {
			t.Fatalf("%s: %d frames held", c.name, n)
		}
		q := p
		q.Observe = c.observe
		if err := s.Plane.SetPolicy(&q); err != nil {
			t.Fatal(err)
		}
		s.Drain()
		left := uint64(0)
		for _, o := range s.Take(fabric) {
			if _, q := kindOf(o); q.Kind == packet.RoCEv2 && q.ECN == packet.CE {
				left++
			}
		}
		counts := s.Plane.Port(fabric)
		if counts.Marked[0] != c.marked || counts.Count[counters.ECNMarked] != c.marked || left != c.marked || counts.Count[counters.ECNObserved] != c.observed {
			t.Errorf("%s: %d packets marked in the class, %d at the port, %d observed, %d left with CE", c.name, counts.Marked[0],
				counts.Count[counters.ECNMarked], counts.Count[counters.ECNObserved], left)
		}
		s.Close(t)
	}
}
