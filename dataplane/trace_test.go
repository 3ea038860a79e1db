package dataplane_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/dataplane/trace"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/notifications"
	"github.com/cnpgate/cnpgate/pairing"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// traceOf is a trace of the flow of data(false, 0), of all its packets.
func traceOf(decisions bool) *trace.Trace {
	return &trace.Trace{Source: address(sender4), Destination: address(receiver4), DestQP: 100, Decisions: decisions}
}

// taken are the records of worker 0.
func taken(t *trace.Trace) (all []trace.PacketRecord) {
	for {
		r, ok := t.Take(0)
		if !ok {
			return all
		}
		all = append(all, r)
	}
}

// TestTrace: the record of a packet has the decisions that were made about it.
func TestTrace(t *testing.T) {
	type record = trace.PacketRecord
	longHaul := grant("198.18.0.0/16", packet.LongHaulCNP)
	law := func(p *dataplane.Policy) { p.Ports[wan].Law = congestion.Law{Line: 0.125e-3, Reference: 2000} }
	for _, c := range []struct {
		name   string
		policy *dataplane.Policy
		change func(*dataplane.Policy)
		before int // other packets of the flow that wait
		frame  []byte
		is     func(r *record) bool
	}{
		{"first", notifying(), nil, 0, data(false, 0).Frame(), func(r *record) bool {
			return r.Flow == trace.FlowBegan && r.Plain && r.QP.State() == pairing.Confirmed && r.QP.SourceQP() == sourceQP && r.Queued && r.Depth == 0 && r.Skip == trace.NoCongestion &&
				!r.MarkAsked && r.Left > 0 && !r.Notified && r.Suppressed == 0
		}},
		{"marked", notifying(), nil, 3, data(false, 0).Frame(), func(r *record) bool {
			return r.Flow == trace.FlowFound && r.Depth == 3000 && r.MarkAsked && r.Marked && !r.MarkObserved && r.Skip == trace.NoCongestion && r.TOS&3 == packet.ECT0 && r.KMin == kMin
		}},
		{"not ECN-capable", notifying(), nil, 3, testkit.RoCE{Src: sender4, Dst: receiver4, DestQP: 100, Size: 1000}.Frame(), func(r *record) bool { return r.MarkAsked && !r.Marked }},
		{"observed mark", notifying(), func(p *dataplane.Policy) { p.Ports[wan].Observe = true }, 3, data(false, 0).Frame(), func(r *record) bool { return r.MarkAsked && r.Marked && r.MarkObserved }},
		{"nobody's host", notifying(), nil, 5, data(false, 0).Frame(), func(r *record) bool {
			return r.Suppressed == counters.Suppression(congestion.NoEndpoint) && r.Skip == trace.NotSkipped && !r.Notified && r.Cause != 0
		}},
		{"notified", notifying(longHaul), nil, 5, data(false, 0).Frame(), func(r *record) bool {
			return r.Notified && r.Outcome == counters.Emitted && r.Format == packet.LongHaulCNP && r.To == address(sender4) && r.SentBy == fabric
		}},
		{"observed", notifying(longHaul), func(p *dataplane.Policy) { p.Observe = true }, 5, data(false, 0).Frame(), func(r *record) bool { return r.Notified && r.Outcome == counters.Observed }},
		{"too often", notifying(longHaul), func(p *dataplane.Policy) { p.Ports[wan].PerFlow = 1e9 }, 8, data(false, 0).Frame(), func(r *record) bool { return r.Suppressed == counters.FlowLimit }},
		{"drain", notifying(longHaul), func(p *dataplane.Policy) { p.Drain = true }, 5, data(false, 0).Frame(), func(r *record) bool { return r.Suppressed == counters.Stopping }},
		{"law, not measured yet", notifying(longHaul), law, 5, data(false, 0).Frame(), func(r *record) bool { return r.Law && r.Rate == 0 && r.Fair > 0 && r.Skip == trace.NoCongestion }},
		{"full", notifying(), func(p *dataplane.Policy) {
			q := egress.Queue{Rate: 1_000_000, Capacity: 2500, Frames: 4096}
			p.Ports[wan].Queue = &q
		}, 2, data(false, 0).Frame(), func(r *record) bool {
			return r.Ended && r.Reason == counters.DroppedQueueOctets && !r.Queued && r.Left == 0
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.change != nil {
				c.change(c.policy)
			}
			s := newScene(t, c.policy, nil)
			s.fill(c.before, data(false, 0))
			tr := traceOf(true)
			if !s.Plane.StartTrace(tr) || s.Plane.StartTrace(traceOf(true)) {
				t.Fatal("one tr runs at a time")
			}
			s.arrive(c.frame, data(false, 1).Frame(), data(true, 0).Frame())
			s.Drain()
			all := taken(tr)
			if len(all) != 1 {
				t.Fatalf("%d records, %d left out", len(all), tr.TakeSkipped())
			}
			r := &all[0]
			if !c.is(r) || int(r.In) != fabric || r.Length != uint32(len(c.frame)) || !bytes.Equal(r.Frame[:r.Bytes], c.frame[:trace.TracedBytes]) || r.Opcode != data(false, 0).Opcode && r.Kind != packet.RoCEv2 {
				r.Frame = [trace.TracedBytes]byte{}
				t.Errorf("%+v", *r)
			}
			s.Plane.EndTrace(tr)
			s.arrive(c.frame)
			if s.Drain(); len(taken(tr)) != 0 {
				t.Error("a packet is traced after the end")
			}
			s.Close(t)
		})
	}
}

// TestTraceConsumed: of a frame that a stage ends, the trace has the reason, also if it is no packet of a flow.
func TestTraceConsumed(t *testing.T) {
	p := notifying()
	p.Domain = stage.NewDomain(nil, nil, false)
	s := newScene(t, p, nil)
	tr := traceOf(true)
	tr.AnyQP = true
	s.Plane.StartTrace(tr)
	cnp := data(false, 0)
	cnp.Opcode = packet.CNP
	s.arrive(cnp.Frame())
	s.Drain()
	all := taken(tr)
	if len(all) != 1 || all[0].Notification != packet.StandardCNP || all[0].Plain || all[0].Flow != trace.NoFlow || !all[0].Queued || all[0].Left == 0 {
		t.Errorf("%d records, %+v", len(all), all)
	}
	s.Close(t)
}

// TestTraceBounds: a trace leaves packets out beyond its rate, and if nobody reads the records; it counts them, and all packets pass.
func TestTraceBounds(t *testing.T) {
	for _, rate := range []uint64{0, 1} {
		s := newScene(t, notifying(), nil)
		tr := traceOf(false)
		tr.Rate = perSecond(rate)
		s.Plane.StartTrace(tr)
		const packets = 300
		s.fill(packets, data(false, 0))
		all := taken(tr)
		if skipped := tr.TakeSkipped(); len(all)+int(skipped) != packets || rate == 0 && len(all) != 64 || rate > 0 && len(all) > 2 {
			t.Errorf("%d packets/s: %d recorded, %d left out of %d", rate, len(all), skipped, packets)
		}
		s.Drain()
		if got := len(s.Take(wan)); got != packets {
			t.Errorf("%d of %d packets have left", got, packets)
		}
		s.Close(t)
	}
}

// TestTraceDrops: of the frames that a worker drops, a trace of drops has those of its reasons and flow, as many as its rate allows, with the port by which they arrived.
func TestTraceDrops(t *testing.T) {
	full := func() *dataplane.Policy {
		p := notifying()
		p.Domain = stage.NewDomain(nil, nil, false)
		q := egress.Queue{Rate: 1_000_000, Capacity: 2500, Frames: 4096}
		p.Ports[wan].Queue = &q
		return p
	}
	other, hidden := data(false, 0), notifications.Find("long-haul-cnp-v4").Bytes()
	other.DestQP = 101
	for name, c := range map[string]struct {
		trace *trace.Trace
		want  []counters.Counter
		lost  uint64
	}{
		"all":          {&trace.Trace{Drops: counters.ReasonsOf("all"), AnyAddress: true}, []counters.Counter{counters.DroppedDomainOut, counters.DroppedQueueOctets, counters.DroppedQueueOctets}, 0},
		"a reason":     {&trace.Trace{Drops: counters.ReasonsOf("queue-full-bytes"), AnyAddress: true}, []counters.Counter{counters.DroppedQueueOctets, counters.DroppedQueueOctets}, 0},
		"another":      {&trace.Trace{Drops: counters.ReasonsOf("queue-full-frames"), AnyAddress: true}, nil, 0},
		"of a flow":    {&trace.Trace{Drops: counters.ReasonsOf("all"), Source: address(sender4), Destination: address(receiver4), DestQP: 101}, []counters.Counter{counters.DroppedQueueOctets}, 0},
		"of a rate":    {&trace.Trace{Drops: counters.ReasonsOf("all"), AnyAddress: true, Rate: ratelimit.PerSecond(2)}, []counters.Counter{counters.DroppedDomainOut}, 2},
		"not consumed": {&trace.Trace{Drops: 1 << counters.DroppedToGateway, AnyAddress: true}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, full(), nil)
			s.fill(2, data(false, 0))
			s.Plane.StartTrace(c.trace)
			s.arrive(hidden, data(false, 0).Frame(), other.Frame())
			var got []counters.Counter
			for _, r := range taken(c.trace) {
				got = append(got, r.Reason)
				if int(r.In) != fabric || !r.Ended || r.Bytes == 0 || uint32(r.Bytes) != min(r.Length, trace.TracedBytes) {
					t.Errorf("%+v", r)
				}
			}
			if lost := c.trace.TakeSkipped(); !slices.Equal(got, c.want) || lost != c.lost {
				t.Errorf("%v, %d left out", got, lost)
			}
			s.Drain()
			s.Close(t)
		})
	}
}

// TestDropReasons: each reason for which a worker drops a frame can be selected by the name that the counters have.
func TestDropReasons(t *testing.T) {
	for _, name := range counters.ReasonNames() {
		if set := counters.ReasonsOf(name); set == 0 {
			t.Errorf("%s selects nothing", name)
		}
	}
	if counters.ReasonsOf("link-down") != 0 || counters.ReasonsOf("") != 0 {
		t.Error("a device's drops can't be selected")
	}
}
