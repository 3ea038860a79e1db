package dataplane

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/dataplane/respond"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/flowtable"
)

// drain counts, while the policy has Drain, the senders that a worker has asked to slow down and that have had no Resume yet.
type drain struct {
	*stage.State
	law    *respond.Law
	counts bool            // Slowed may have a number
	at     flowtable.Index // the flow that was looked at last
	found  int64           // in this pass over the flows
	slowed atomic.Int64    // in the last whole pass, and 1 more; 0: there was none
}

const (
	drainEntries = 128 // flows that a step looks at
	// drainIdle is the time without a packet, ns, after which a flow's sender is not waited for: a Resume under the law needs a packet.
	drainIdle = 1_000_000_000
)

// step looks at some flows. After the drain, it forgets what was counted.
func (d *drain) step() {
	if d.counts = d.Policy.Drain; !d.counts {
		d.slowed.Store(0)
		d.at, d.found = 0, 0
		return
	}
	high := d.Flows.High()
	for n := drainEntries; n > 0 && d.at < high; n-- {
		d.at++
		if d.Flows.State(d.at).Live() && d.law.Asked(d.Flows.Ref(d.at)) && d.Now-d.Flows.LastSeen(d.at) < drainIdle {
			d.found++
		}
	}
	if d.at < high {
		return
	}
	for port := range d.Egress {
		for class := range d.Queues[port] {
			d.found += int64(d.Queues[port][class].Slowed)
		}
	}
	d.slowed.Store(d.found + 1)
	d.at, d.found = 0, 0
}

// Slowed is the number of senders that were asked to slow down, still send, and have had no Resume yet. known is false unless every worker has counted
// them since the policy has Drain. Any goroutine may call it.
func (d *Dataplane) Slowed() (senders int, known bool) {
	known = true
	for _, w := range d.workers {
		n := w.drain.slowed.Load()
		known = known && n > 0
		senders += int(max(n-1, 0))
	}
	return senders, known
}
