package dataplane

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/pairing"
)

// observer is a worker's flowtable.Observer: it informs the learner when flows begin and end, and reports those that end.
type observer struct {
	w      *Worker
	ended  func(*FlowRecord) // nil: no report
	record FlowRecord        // for ended
}

// Begin implements flowtable.Observer.
func (o *observer) Begin(x flowtable.Index) {
	o.w.state.Learner.Begin(x)
	o.w.state.Trace.Began(x)
}

// End implements flowtable.Observer.
func (o *observer) End(x flowtable.Index, why flowtable.Ending) {
	if o.ended != nil {
		o.record.of(o.w, x)
		if o.record.Ended == pairing.Open {
			o.record.Ended = endings[why]
		}
		o.ended(&o.record)
	}
	if a := o.w.state.Accounts.Find(x); a != nil {
		o.w.senders.Release(a)
		o.w.state.Egress[o.w.state.Ports[o.w.state.Flows.Key(x).Port].Peer].End(x, a)
		paced := a.Paced
		a.Begin(a.Generation.Load() + 1) // of the next flow, so that the tags of queued frames match no account
		if why == flowtable.Renewed && paced != 0 {
			o.w.state.Pacers[o.w.state.Ports[o.w.state.Flows.Key(x).Port].Peer].Renewed(x, a, paced)
		}
	}
	o.w.state.Learner.End(x)
}

// endings are the reasons for which a flow ends whose record pairing has not closed.
var endings = [...]pairing.Ending{
	flowtable.Aged: pairing.EndedAged, flowtable.Evicted: pairing.EndedEviction, flowtable.Renewed: pairing.EndedReuse,
}
