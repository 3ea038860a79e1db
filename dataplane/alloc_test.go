package dataplane_test

import (
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// TestStepAllocatesNothing: with flows learned, evicted and aged, packets marked, dropped and answered, a step allocates nothing and
// is one exchange.
func TestStepAllocatesNothing(t *testing.T) {
	p := notifying(byAnything...)
	p.Who.Enabled[packet.ProxyNotification], p.Proxies = true, behind(t, "198.18.0.0/16", proxy4)
	p.Ports[wan].PerFlow = 1000
	p.PerDestination, p.PerPort = perSecond(1e8), perSecond(1e8)
	p.Domain = stage.NewDomain(nil, nil, false)
	r := testkit.New(t, testkit.Setup{Policy: p, Static: knownQPs(t), Forget: true, Flows: 256, Capacity: 40_000, Rate: 1e9,
		Change: func(c *dataplane.Config) { c.Aging = ms / 2 }})
	var frames [][]byte
	for flow := range uint32(1000) {
		frames = append(frames, data(flow%3 == 0, flow%50+flow%7*100).Frame())
	}
	frames = append(frames, other(sender4, receiver4, packet.ProtoTCP, 1000), macControl(), notCauses(t)["fast-cnp"])
	place, steps, copied := 0, 0, 0
	snapshot := &dataplane.Snapshot{Flows: make([]dataplane.FlowRecord, 0, 100)}
	round := func() {
		if w := r.Plane.Worker(0); !w.Asked(snapshot) { // all the while
			copied += len(snapshot.Flows)
			if snapshot.Flows = snapshot.Flows[:0]; snapshot.End {
				snapshot.At = flowtable.None
			}
			w.Ask(snapshot)
		}
		for i := range 16 {
			r.Inject(t, (place+i)&1, frames[(place*5+i)%len(frames)])
		}
		place += 16
		r.Advance(30_000)
		r.Plane.Worker(0).Step()
		steps++
	}
	for range 200 {
		round()
	}
	before, began := r.Backends[0].Exchanges(), steps
	if n := testing.AllocsPerRun(1000, round); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
	if n := int(r.Backends[0].Exchanges() - before); n != steps-began {
		t.Errorf("%d exchanges in %d steps", n, steps-began)
	}
	for name, n := range map[string]uint64{
		"marked": r.Count(wan, counters.ECNMarked), "answered with a notification": r.Count(fabric, counters.SentFirst),
		"behind a notified proxy": r.Count(fabric, counters.SentFirst+counters.Counter(packet.ProxyNotification)),
		"dropped by a full queue": r.Count(wan, counters.DroppedQueueOctets), "dropped by the domain filter": r.Count(fabric, counters.DroppedDomainOut),
		"flow copied": uint64(copied), "flows evicted": r.Plane.Worker(0).FlowStats().Evictions, "flows aged": r.Plane.Worker(0).FlowStats().Aged,
	} {
		if n == 0 {
			t.Errorf("none was %s: not what was to be tested", name)
		}
	}
	r.Drain()
	r.Close(t)
}

// TestLawAllocatesNothing: a step in which the law notifies senders, or finds all flows below its rate, allocates nothing.
func TestLawAllocatesNothing(t *testing.T) {
	for name, line := range map[string]uint64{"below its rate": 400e9, "notified": 100e3} {
		p := notifying(byAnything...)
		p.Ports[wan].Law = congestion.NewLaw(line, 1, 0)
		r := testkit.New(t, testkit.Setup{Policy: p, Static: knownQPs(t), Forget: true, Rate: 400e9})
		frames := [][]byte{data(false, 100).Frame(), data(true, 101).Frame()}
		round := func() {
			for i := range 16 {
				r.Inject(t, fabric, frames[i&1])
			}
			r.Advance(30_000)
			r.Plane.Worker(0).Step()
		}
		for range 200 {
			round()
		}
		if n := testing.AllocsPerRun(1000, round); n != 0 {
			t.Errorf("%s: %v allocations a step", name, n)
		}
		if sent := r.Plane.Worker(0).Notifications().Recorded(); (sent > 0) != (name == "notified") {
			t.Errorf("%s: %d notifications", name, sent)
		}
		r.Drain()
		r.Close(t)
	}
}
