package dataplane_test

import (
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/pairing"
)

// slowScene is pacedScene with lines of 100 Mbit/s, hosts paced to 100 kbit/s (100 ms a packet), and flows that age after 20 ms.
func slowScene(t *testing.T) *scene {
	t.Helper()
	p := testkit.DefaultPolicy(2)
	p.Ports[fabric].Pacing = &congestion.Pacing{HostRate: 100e6, Floor: 100_000, Keep: 1, Recovery: 1 << 50}
	s := &scene{testkit.New(t, testkit.Setup{Static: knownQPs(t), Rate: 100e6, Policy: p, Change: func(c *dataplane.Config) {
		c.Ports[fabric].Paced, c.Aging = 1e6, 20*ms
	}}), t}
	connect(t, s.Rig)
	s.arrive(cnpFrom(0))
	for range 50 { // more than enough to reduce the pace to its floor
		s.Advance(1)
		s.arrive(cnpFrom(0))
	}
	s.Drain()
	s.Take(wan)
	s.Take(fabric)
	return s
}

// TestHeldFlowEnds: a flow may end while a frame of it is held. When that goes on, it counts as no flow's, and not as that of the flow which has the
// index next.
func TestHeldFlowEnds(t *testing.T) {
	s := slowScene(t)
	s.arriveAt(wan, toHost(1, 0).Frame(), toHost(1, 1).Frame())
	if n := s.Plane.Port(fabric).PacedFrames; n != 1 {
		t.Fatalf("%d frames held", n)
	}
	other := toHost(2, 0)
	other.Dst = "198.18.0.77"
	for range 90 { // the other flow lives on: it doesn't get the index
		s.arriveAt(wan, other.Frame())
		s.Advance(1 * ms)
		s.Settle()
	}
	for range 60 * 8 { // the queue is long, so that shares are tracked, when the frame goes on
		s.Inject(t, wan, other.Frame())
	}
	for range 20 {
		s.Advance(1 * ms)
		s.Settle()
	}
	if n := s.Plane.Port(fabric).PacedFrames; n != 0 {
		t.Fatalf("%d frames held", n)
	}
	for flow := range uint32(8) { // one of them has the index of the flow that has ended
		next := toHost(10+flow, 0)
		next.Dst = "198.18.0.78"
		for range 10 { // so that the queue is still long when the frame leaves
			s.arriveAt(wan, next.Frame())
		}
	}
	for range 600 {
		s.Advance(ms / 10)
		s.Settle()
		if counted, found := s.Plane.Worker(0).EndedBytes(fabric, 0); counted != found {
			t.Fatalf("%d bytes of flows that have ended are counted, and %d are in the queue", int64(counted), found)
		}
	}
	s.Drain()
	s.Close(t)
}

// TestPacingOverload: while more comes than may be held, frames go on sooner than the pace allows. Those that are held afterwards wait for their pace only.
func TestPacingOverload(t *testing.T) {
	s := pacedScene(t, 10*1250, nil)
	s.arrive(cnpFrom(0))
	for psn := range uint32(1000) {
		s.arriveAt(wan, toHost(1, psn).Frame())
		s.Advance(1_000)
	}
	for range 20 {
		s.Advance(10_000) // a packet's time at the pace
		s.Settle()
	}
	if n := s.Plane.Port(fabric).PacedFrames; n != 0 {
		t.Errorf("%d frames are still held", n)
	}
	wantInOrder(t, s, 1000)
	s.Close(t)
}

// TestPacingPastFullClass: a frame whose class is full doesn't hold up those of other hosts.
func TestPacingPastFullClass(t *testing.T) {
	p := testkit.DefaultPolicy(2)
	p.Ports[fabric].Pacing = &congestion.Pacing{HostRate: 10e9, Floor: 1e9, Keep: 1, Interval: 50_000, Recovery: 10_000_000_000}
	pairs, err := pairing.NewQPMap([]pairing.QPPair{
		{Source: address(sender4), Destination: address(receiver4), SourceQP: sourceQP, DestinationQP: 100},
		{Source: address("198.18.0.77"), Destination: address(receiver4), SourceQP: sourceQP, DestinationQP: 100},
	}, 1)
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{testkit.New(t, testkit.Setup{Static: pairs, Rate: 1e6, Capacity: 2 * 1300, Policy: p, Change: func(c *dataplane.Config) {
		c.Ports[fabric].Paced, c.Ports[fabric].Classes = 1e6, 2
		c.Ports[fabric].ClassOf[8] = 1
	}}), t}
	second := func(f testkit.RoCE) testkit.RoCE { f.Src, f.Dst = f.Dst, f.Src; return f }
	connect(t, s.Rig)
	s.arrive(cnpFrom(0))
	more := connected()
	more.Dst = "198.18.0.77"
	ack := data(false, 0)
	ack.Src, ack.Opcode, ack.Size = more.Dst, packet.RCAcknowledge, 0
	s.arriveAt(wan, more.Frame())
	s.arrive(ack.Frame())
	ack.Opcode = packet.CNP
	s.arrive(ack.Frame())
	s.Drain()
	full := toHost(3, 0)
	full.Dst, full.DSCP = "198.18.0.78", 8
	slow, other := toHost(1, 0), second(data(false, 2))
	slow.DSCP, other.Dst, other.Size = 8, "198.18.0.77", 1250
	s.arriveAt(wan, full.Frame()) // is on the line for 10 ms
	s.arriveAt(wan, slow.Frame(), full.Frame())
	s.arriveAt(wan, slow.Frame(), other.Frame(), other.Frame())
	if n := s.Plane.Port(fabric).PacedFrames; n != 2 {
		t.Fatalf("%d frames held", n)
	}
	s.Advance(100_000)
	s.Settle()
	if n := s.Plane.Port(fabric); n.PacedFrames != 1 || n.Frames[0] != 2 || n.Frames[1] != 2 {
		t.Errorf("%d frames held, %v in the classes", n.PacedFrames, n.Frames)
	}
	s.Drain()
	s.Close(t)
}

// TestPacingKeepsResponsesInOrder: an ACK behind READ responses of its flow waits with them. If it overtook them, the requester would take them for lost.
func TestPacingKeepsResponsesInOrder(t *testing.T) {
	s := pacedScene(t, 1e6, nil)
	s.arrive(cnpFrom(0))
	for psn := range uint32(4) {
		f := toHost(1, psn)
		f.Opcode = packet.RCReadRespOnly
		s.arriveAt(wan, f.Frame())
	}
	ack := toHost(1, 4)
	ack.Opcode, ack.Size = packet.RCAcknowledge, 0
	s.arriveAt(wan, ack.Frame())
	s.Drain()
	psn := uint32(0)
	for _, f := range s.Take(fabric) {
		if _, p := kindOf(f); p.PSN != psn {
			t.Errorf("PSN %d, expected %d", p.PSN, psn)
		}
		psn++
	}
	s.Close(t)
}

// TestPacingIsFairToLongFlows: of two flows that have sent much, the longer one does not wait until the other one has sent as much.
func TestPacingIsFairToLongFlows(t *testing.T) {
	s := pacedScene(t, 1e6, nil)
	sent := map[uint32]uint32{1: 30_000, 2: 40_000} // packets of 1250 bytes
	for flow, n := range sent {
		for psn := range n {
			s.arriveAt(wan, toHost(flow, psn).Frame())
		}
		s.Drain()
	}
	s.Take(fabric)
	s.arrive(cnpFrom(0))
	for n := range uint32(50) {
		s.arriveAt(wan, toHost(1, sent[1]+n).Frame(), toHost(2, sent[2]+n).Frame())
	}
	s.Drain()
	first := map[uint32]int{} // of the first 50 packets
	for i, f := range s.Take(fabric) {
		if _, p := kindOf(f); i < 50 {
			first[p.DestQP-100]++
		}
	}
	if first[1] < 20 || first[2] < 20 {
		t.Errorf("%d and %d of the first 50 packets", first[1], first[2])
	}
	s.Close(t)
}

// TestPacingLateWorker: a worker that comes late makes up for 50 us of a host's pace, and not for all the time.
func TestPacingLateWorker(t *testing.T) {
	s := pacedScene(t, 1e6, nil)
	s.arrive(cnpFrom(0))
	for psn := range uint32(20) { // the first one goes on at once
		s.arriveAt(wan, toHost(1, psn).Frame())
	}
	s.Advance(10_000_000)
	s.Settle()
	const packetTime, late = 10_000, 50_000 // ns
	if got, want := s.Plane.Port(fabric).PacedFrames, uint64(19-1-late/packetTime); got != want {
		t.Errorf("%d frames are held, expected %d", got, want)
	}
	wantInOrder(t, s, 20)
	s.Close(t)
}

// TestPacingTooManyFlows: a packet of a flow for which there is no place goes on at once, and is counted.
func TestPacingTooManyFlows(t *testing.T) {
	const most = 8192
	p := testkit.DefaultPolicy(2)
	p.Ports[fabric].Pacing = &congestion.Pacing{HostRate: 10e9, Floor: 1e6, Keep: 1, Interval: 50_000, Recovery: 10_000_000_000}
	s := &scene{testkit.New(t, testkit.Setup{Static: knownQPs(t), Rate: 10e9, Buffers: 3 * most, Frames: 2 * most, Capacity: 100e6, Flows: 4 * most, Policy: p, Change: func(c *dataplane.Config) { c.Ports[fabric].Paced = 100e6 }}), t}
	connect(t, s.Rig)
	s.arrive(cnpFrom(0))
	s.arriveAt(wan, toHost(0, 0).Frame()) // goes on, and those behind it wait
	for flow := range uint32(most + 5) {
		s.arriveAt(wan, toHost(1+flow, 0).Frame())
	}
	held, early := s.Plane.Port(fabric).PacedFrames, s.Count(fabric, counters.PacedTooMany)
	if early == 0 || held+early != most+5 {
		t.Errorf("%d frames are held, and %d went on sooner; expected %d together", held, early, most+5)
	}
	s.Drain()
	s.Close(t)
}

// TestPacingKeepsRenewedFlowInOrder: if so many packets of a connection are lost before the gateway that its flow record ends, the packets that follow
// don't overtake those that are held.
func TestPacingKeepsRenewedFlowInOrder(t *testing.T) {
	const lost, responder = 100, 201
	s := pacedScene(t, 1e6, nil)
	f := toHost(1, 0)
	product := uint64(f.DestQP) * responder                 // below 2^20
	f.SrcPort = uint16(product&0x3fff^product>>14) | 0xc000 // as Linux chooses it, so that the pair is confirmed
	ack := data(false, 0)
	ack.Opcode, ack.Size, ack.DestQP, ack.SrcPort = packet.RCAcknowledge, 0, responder, f.SrcPort
	psn := uint32(5_000_000)
	send := func(n int) {
		for range n {
			f.PSN, psn = psn, psn+1
			s.arriveAt(wan, f.Frame())
		}
	}
	for range 20 {
		send(10)
		ack.PSN = psn - 1
		s.arrive(ack.Frame())
		s.Drain()
	}
	s.Take(fabric)
	s.arrive(cnpFrom(0))
	send(5)
	psn += lost
	send(20)
	if n := s.Plane.Worker(0).PairingStats().Reuses; n != 1 {
		t.Fatalf("%d flow records have ended", n)
	}
	s.Drain()
	out, last := s.Take(fabric), uint32(0)
	for _, o := range out {
		_, p := kindOf(o)
		if p.PSN <= last {
			t.Errorf("PSN %d leaves after %d", p.PSN, last)
		}
		last = p.PSN
	}
	if len(out) != 25 {
		t.Errorf("%d packets left, expected 25", len(out))
	}
	s.Close(t)
}
