package dataplane

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/pairing"
)

// observer is a worker's flowtable.Observer: it tells the learner of flows that begin and end, reports those that end, and carries a
// renewed flow's share of a queue over.
//
// Only a flow that is renewed can have frames queued when it ends: an idle or evicted one was last seen before any frame that waits came
// (see wait), so its share is 0 by then.
type observer struct {
	w       *Worker
	ended   func(*FlowRecord) // nil: nobody wants to know
	record  FlowRecord        // for ended
	renewed renewedShare
}

// renewedShare is the share of a queue that a flow has between its End and the Begin that follows at once.
type renewedShare struct {
	flow         flowtable.Index // flowtable.None while there is none
	queued, rank uint32
	class        uint8
}

// Begin is for the flow table.
func (o *observer) Begin(x flowtable.Index) {
	o.w.learner.Begin(x)
	if s := &o.renewed; s.flow == x && x != flowtable.None {
		a := o.w.accounts.get(x)
		a.queued, a.rank, a.class = s.queued, s.rank, s.class
		s.flow = flowtable.None
	}
}

// End is for the flow table.
func (o *observer) End(x flowtable.Index, why flowtable.Ending) {
	if why == flowtable.Renewed {
		if a := o.w.accounts.find(x); a != nil && a.queued != 0 {
			o.renewed = renewedShare{x, a.queued, a.rank, a.class}
		}
	}
	if o.ended != nil {
		o.w.record(x, &o.record)
		if o.record.Ended == pairing.Open {
			o.record.Ended = endings[why]
		}
		o.ended(&o.record)
	}
	o.w.learner.End(x)
}

// endings are the reasons for which a flow ends whose record pairing has not closed.
var endings = [...]pairing.Ending{
	flowtable.Aged: pairing.EndedAged, flowtable.Evicted: pairing.EndedEviction, flowtable.Renewed: pairing.EndedReuse,
}
