package dataplane

import (
	"math"
	"sync/atomic"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/pairing"
)

// This file is what the gateways of a fleet tell each other of their dataplanes: which senders were notified, and what arrives at a
// bottleneck that they share. Any goroutine may call the methods; a worker only reads words that they leave.

// Peers are the flows that other gateways have seen; nil without Config.PeerFlows.
func (d *Dataplane) Peers() *pairing.Peers { return d.peers }

// initPeers reserves the memory for flows that other gateways have seen.
func (d *Dataplane) initPeers(c *Config) error {
	if c.PeerFlows == 0 {
		return nil
	}
	memory, err := c.Allocate(pairing.PeersSize(c.PeerFlows))
	if err != nil {
		return err
	}
	d.peers, err = d.pairing.JoinPeers(memory, c.PeerFlows, c.PeerAging, c.Seed+uint64(len(c.Backends)))
	return err
}

const (
	elsewhereSlots = 1024      // flows of a worker of which it is known that another gateway has notified the sender
	elsewhereFor   = 2_000_000 // ns for which such a notification counts, and the delay of the loop besides
	elsewhereTick  = 16        // shift of a time, ns
	elsewhereDeep  = 2         // times the reference: a longer queue doesn't wait for what another gateway has asked for
)

// elsewhere has, by the low bits of a flow's index, when another gateway has notified its sender: bits 0-27 the index, 28-39 the generation,
// 40-63 the time in ticks.
type elsewhere [elsewhereSlots]atomic.Uint64

func elsewhereOf(x flowtable.Index, generation uint32) uint64 {
	return uint64(x)&(1<<28-1) | uint64(generation&(1<<12-1))<<28
}

// NotifiedElsewhere records that another gateway has notified the sender of a flow, at a Unix time in ns. The ingress port in the key is not
// used. It reports whether a worker has the flow.
func (d *Dataplane) NotifiedElsewhere(k *flowtable.Key, at int64) (found bool) {
	at -= d.wallClock.Load()
	for port := range d.ports {
		if d.ports[port].Role != Fabric {
			continue
		}
		key := *k
		key.SetScope(k.Scope().At(port))
		for _, w := range d.workers {
			if x, state, ok := w.flows.Find(&key); ok {
				found = true
				w.law.elsewhere[uint32(x)%elsewhereSlots].Store(elsewhereOf(x, state.Generation()) | uint64(at>>elsewhereTick)<<40)
			}
		}
	}
	return found
}

// notifiedElsewhere reports whether another gateway has notified the sender of a flow lately, so that this one needn't.
func (l *law) notifiedElsewhere(t *turn, x flowtable.Index) bool {
	e := l.elsewhere[uint32(x)%elsewhereSlots].Load()
	if e == 0 || e&(1<<40-1) != elsewhereOf(x, l.flows.State(x).Generation()) || t.Depth > elsewhereDeep*t.Law.Reference {
		return false
	}
	ago := (uint64(l.now>>elsewhereTick) - e>>40) & (1<<24 - 1) << elsewhereTick
	return ago < uint64(elsewhereFor+t.Loop)
}

// Arrivals is what arrives at a class of an egress queue.
type Arrivals struct {
	Obeyed  uint64  // bytes that would have come if every flow had obeyed F, since the start; it stands still while the queue is short
	Depth   uint64  // bytes queued
	Largest float64 // rate of the fastest flow, bytes/ns
	Line    float64 // rate of the port, bytes/ns
	Fair    float64 // F, bytes/ns
	Loop    int64   // delay of the control loop, ns; 0: not known
}

// Arrivals returns what arrives at a class of a port's queue.
func (d *Dataplane) Arrivals(port, class int) (a Arrivals) {
	at := port*account.MaxClasses + class
	for _, w := range d.workers {
		a.Obeyed += w.law.parts[at].obeyed.Load()
		a.Largest = max(a.Largest, math.Float64frombits(w.law.parts[at].largest.Load()))
	}
	stats := d.Port(port)
	a.Depth, a.Line, a.Fair, a.Loop = stats.Depth[class], d.Policy().Ports[port].Law.Line, d.fair[at].fair(), d.fair[at].loop.Load()
	return a
}

// Share is what arrives at other gateways' queues in front of the same bottleneck, in the units of Arrivals.
type Share struct{ Rate, Depth, Line, Largest float64 }

// SetShare replaces what others do at the bottleneck of a class of a port; nil: nothing. F is then that of the whole bottleneck.
func (d *Dataplane) SetShare(port, class int, s *Share) {
	d.fair[port*account.MaxClasses+class].share.Store(s)
}

// LearnLoop sets the delay of the control loop of a class that has measured none yet.
func (d *Dataplane) LearnLoop(port, class int, delay int64) {
	d.fair[port*account.MaxClasses+class].loop.CompareAndSwap(0, delay)
}

// othersMeasure reports whether others measure rates at the bottleneck: F needs the bytes of all.
func (f *fairClass) othersMeasure(p *congestion.Law) bool {
	s := f.share.Load()
	return s != nil && p.Measures(s.Depth)
}

// next is the next F. Where others share the bottleneck it is that of all, from all that arrives; unless the queue here is so long that it
// needs its own.
func (f *fairClass) next(t *turn, in congestion.Inflow, depth float64) float64 {
	law := t.policy.Law
	if s := f.share.Load(); s != nil && depth < elsewhereDeep*law.Reference {
		law.Reference *= (law.Line + s.Line) / law.Line
		law.Line += s.Line
		in.Obeyed += s.Rate * float64(in.Elapsed)
		in.Largest = max(in.Largest, s.Largest)
		depth += s.Depth
	}
	return min(law.Next(f.fair(), in, depth, f.loop.Load()), t.policy.Law.Line)
}
