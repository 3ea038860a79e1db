package dataplane_test

import (
	"maps"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"pgregory.net/rapid"
)

// flowsOf lists what worker 0 has counted of each flow.
func flowsOf(r *testkit.Rig) map[flowtable.Key]counted {
	out := map[flowtable.Key]counted{}
	for f := range r.Plane.Worker(0).Records() {
		out[f.Key] = counted{f.Traffic.Packets, f.Traffic.Bytes, f.Marked, f.Notified, f.Traffic.Transport}
	}
	return out
}

type counted struct {
	Packets, Bytes, Marked uint64
	Notified               [packet.SentNotifications]uint32
	Transport              uint8
}

// TestLearns: each RDMA flow is learned once for each direction, pair of VLAN tags and pair of ports, with what it did; CNPs make none.
func TestLearns(t *testing.T) {
	p := notifying(byAnything...)
	p.Ports = append(p.Ports, p.Ports...)
	s := newScene(t, p, func(s *testkit.Setup) { s.Pairs = 2 })
	s.fill(6, data(true, 0)) // 3rd to 6th above K_min, a Fast CNP for the 5th and 6th
	tagged := data(true, 0)
	tagged.Tags = []uint32{0x8100_0005}
	double := data(true, 0)
	double.Tags = []uint32{0x88a8_0005, 0x8100_0006}
	priority, service, old, swapped := tagged, tagged, tagged, double // other tags, with no VID and the same VIDs
	priority.Tags, service.Tags, old.Tags = []uint32{0x8100_e000}, []uint32{0x88a8_0005}, []uint32{0x9100_0005}
	swapped.Tags = []uint32{0x8100_0005, 0x88a8_0006}
	ud := testkit.RoCE{Src: sender4, Dst: receiver4, Opcode: packet.UDSendOnly, DestQP: 9, SourceQP: 17, Size: 300}
	udToo := ud
	udToo.SourceQP = 18
	s.arriveAt(2, data(true, 0).Frame(), tagged.Frame(), double.Frame(), ud.Frame(), udToo.Frame(), ud.Frame())
	s.arriveAt(3, priority.Frame(), service.Frame(), old.Frame(), swapped.Frame(), tagged.Frame(), double.Frame())
	ack := testkit.RoCE{Src: receiver6, Dst: sender6, Opcode: packet.RCAcknowledge, DestQP: sourceQP}
	cnp := testkit.RoCE{Src: receiver6, Dst: sender6, Opcode: packet.CNP, Flags: packet.BECN, DestQP: sourceQP}
	s.arriveAt(1, ack.Frame(), cnp.Frame(), other(receiver4, sender4, packet.ProtoTCP, 100))
	s.arriveAt(3, ack.Frame())

	at := func(r testkit.RoCE, port uint16) flowtable.Key {
		k := flowtable.Key{Src: address(r.Src), Dst: address(r.Dst), DestQP: r.DestQP, SourceQP: r.SourceQP, Port: port}
		if len(r.Tags) > 0 {
			k.OuterTag = packet.MakeTag(uint16(r.Tags[0]>>16), uint16(r.Tags[0]))
		}
		if len(r.Tags) > 1 {
			k.InnerTag = packet.MakeTag(uint16(r.Tags[1]>>16), uint16(r.Tags[1]))
		}
		return k
	}
	want := map[flowtable.Key]counted{
		at(data(true, 0), 0): {Packets: 6, Bytes: 6000, Marked: 2, Notified: [packet.SentNotifications]uint32{packet.FastCNP: 2}},
		at(data(true, 0), 2): {Packets: 1, Bytes: 1000},
		at(tagged, 2):        {Packets: 1, Bytes: 1000},
		at(double, 2):        {Packets: 1, Bytes: 1000, Marked: 1},
		at(ud, 2):            {Packets: 2, Bytes: 600, Transport: 3},
		at(udToo, 2):         {Packets: 1, Bytes: 300, Transport: 3},
		at(ack, 1):           {Packets: 1, Bytes: uint64(len(ack.Frame()))},
		at(ack, 3):           {Packets: 1, Bytes: uint64(len(ack.Frame()))},
		at(priority, 3):      {Packets: 1, Bytes: 1000},
		at(service, 3):       {Packets: 1, Bytes: 1000},
		at(old, 3):           {Packets: 1, Bytes: 1000, Marked: 1},
		at(swapped, 3):       {Packets: 1, Bytes: 1000, Marked: 1},
		at(tagged, 3):        {Packets: 1, Bytes: 1000, Marked: 1},
		at(double, 3):        {Packets: 1, Bytes: 1000, Marked: 1},
	}
	if got := flowsOf(s.Rig); !maps.Equal(got, want) {
		t.Errorf("learned\n%+v, expected\n%+v", got, want)
	}
	s.Drain()
	s.Close(t)
}

// TestForgets: a flow that sends nothing for the aging time is forgotten, by the sweep, also while frames of it wait, and its record is reported.
func TestForgets(t *testing.T) {
	var ended []uint32
	r := testkit.New(t, testkit.Setup{Rate: 1_000_000, Change: func(c *dataplane.Config) {
		c.Aging = 100 * ms
		c.Ended = func(f *dataplane.FlowRecord) {
			ended = append(ended, f.Key.DestQP, uint32(f.Traffic.Packets))
		}
	}})
	long := data(true, 7)
	long.Size = 2000
	r.Inject(t, wan, data(true, 3).Frame())
	r.Settle()
	r.Advance(ms)
	for range 20 {
		r.Inject(t, fabric, long.Frame()) // 16 ms each
	}
	r.Settle()
	for range 200 {
		r.Advance(ms)
		r.Settle()
	}
	if len(ended) != 4 {
		t.Fatalf("ended: %v", ended)
	}
	if records := map[uint32]uint32{ended[0]: ended[1], ended[2]: ended[3]}; records[103] != 1 || records[107] != 20 {
		t.Errorf("ended: %v", ended)
	}
	if n := r.Plane.Worker(0).Queued(); n == 0 || r.Plane.Worker(0).FlowStats().Flows != 0 {
		t.Errorf("%d frames wait, %d flows", n, r.Plane.Worker(0).FlowStats().Flows)
	}
	r.Drain()
	r.Close(t)
}

// TestLearnsAmongOthers: a packet counts at its own flow, whatever comes in the same burst.
func TestLearnsAmongOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rigs [2]*testkit.Rig // the second gets each frame in a burst of its own
		for i := range rigs {
			rigs[i] = testkit.New(t, testkit.Setup{Burst: 32, Rate: 400e9})
		}
		for range rapid.IntRange(1, 32).Draw(t, "frames") {
			frame := drawFrame(t, 40)
			for i := range rigs {
				rigs[i].Inject(t, fabric, frame)
			}
			rigs[1].Plane.Worker(0).Step()
		}
		rigs[0].Plane.Worker(0).Step()
		if got, want := flowsOf(rigs[0]), flowsOf(rigs[1]); !maps.Equal(got, want) {
			t.Fatalf("%v\none by one %v", got, want)
		}
	})
}

// A port whose device takes nothing (its link is down, its peer pauses it) holds one flow's frame. The flows of the other pair
// of ports come, go silent, and are evicted as ever.
func TestStuckPortKeepsItsOwnFlows(t *testing.T) {
	p := notifying(byAnything...)
	p.Ports = append(p.Ports, p.Ports...)
	r := testkit.New(t, testkit.Setup{Pairs: 2, Policy: p, Flows: 128, Change: func(c *dataplane.Config) { c.Aging = 100 * ms }})
	r.Backends[0].Limit(wan, 0)
	r.Inject(t, fabric, data(true, 7).Frame())
	for range 3 {
		r.Plane.Worker(0).Step()
	}
	for n := range uint32(1000) { // one new flow each 10 ms: ten or so are alive at a time
		r.Advance(10 * ms)
		f := data(true, 1000+n)
		r.Inject(t, 2, f.Frame())
		for range 3 {
			r.Plane.Worker(0).Step()
		}
	}
	if s := r.Plane.Worker(0).FlowStats(); s.Refused != 0 || s.Flows > 40 {
		t.Errorf("%d flows refused, %d in the table, %d aged, %d evicted", s.Refused, s.Flows, s.Aged, s.Evictions)
	}
}

// The same where strict priority starves a class for long: one frame waits in class 1 while class 0 always has some.
func TestStarvedClassKeepsItsOwnFlows(t *testing.T) {
	p := notifying(byAnything...)
	r := testkit.New(t, testkit.Setup{Rate: 100_000_000, Policy: p, Flows: 128, Change: func(c *dataplane.Config) {
		c.Aging = 100 * ms
		for i := range c.Ports {
			c.Ports[i].Classes = 2
			c.Ports[i].ClassOf[1] = 1
		}
	}})
	high := data(true, 7)
	low := data(true, 8)
	low.DSCP = 1
	for range 20 {
		r.Inject(t, fabric, high.Frame())
	}
	r.Settle()
	r.Inject(t, fabric, low.Frame())
	for n := range uint32(2000) { // 12 frames of class 0 leave in a ms, 14 come; and one new flow the other way
		for range 14 {
			r.Inject(t, fabric, high.Frame())
		}
		b := data(true, 1000+n)
		b.Src, b.Dst = b.Dst, b.Src
		r.Inject(t, wan, b.Frame())
		r.Advance(ms)
		r.Settle()
	}
	if s := r.Plane.Worker(0).FlowStats(); s.Refused != 0 {
		t.Errorf("%d flows refused, %d in the table, %d aged, %d evicted", s.Refused, s.Flows, s.Aged, s.Evictions)
	}
}

// Nothing is ever queued by two workers but one frame each; sanity of the packets counted: each is counted once.
func TestCountsOnce(t *testing.T) {
	r := testkit.New(t, testkit.Setup{Flows: 128})
	for n := range uint32(70000) {
		f := data(true, 7)
		f.PSN = n
		r.Inject(t, fabric, f.Frame())
		if n%16 == 0 {
			r.Advance(ms)
			r.Settle()
		}
	}
	r.Settle()
	for _, f := range flowsOf(r) {
		if f.Packets != 70000 || f.Bytes != 70000000 {
			t.Errorf("%+v", f)
		}
	}
}

// drawFrame makes a frame, so many in a hundred of them not of the plain sort.
func drawFrame(t *rapid.T, special int) []byte {
	r := data(rapid.Bool().Draw(t, "v6"), rapid.Uint32Range(0, 11).Draw(t, "flow"))
	r.DSCP = rapid.SampledFrom([]uint8{0, 0, 0, 0, 0, 1, 2}).Draw(t, "DSCP")
	r.ECN = rapid.SampledFrom([]uint8{packet.ECT0, packet.ECT0, packet.ECT1, packet.NotECT, packet.CE}).Draw(t, "ECN")
	r.PSN = rapid.Uint32Range(0, 100).Draw(t, "PSN")
	r.Size = rapid.SampledFrom([]int{100, 100, 200, 1000, rapid.IntRange(60, 1100).Draw(t, "octets")}).Draw(t, "size") // so that sums hit thresholds
	if rapid.IntRange(0, 99).Draw(t, "special") >= special {
		return r.Frame()
	}
	switch rapid.IntRange(0, 5).Draw(t, "sort") {
	case 0:
		return macControl()
	case 1:
		return ethernet(0x88cc)
	case 2:
		return other(sender4, receiver4, packet.ProtoTCP, 100)
	case 3:
		r.Opcode, r.Flags = packet.CNP, packet.BECN
	case 4:
		r.Opcode = packet.RCAcknowledge
	case 5:
		r.Opcode, r.SourceQP = packet.UDSendOnly, 77
	}
	return r.Frame()
}
