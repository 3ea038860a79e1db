package dataplane

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
)

// A sender that doesn't react to notifications is braked: its packets are marked CE, and if its WAN port paces its flows, they leave at F. What comes
// beyond that waits for a short time, and then is dropped, so that it takes nobody else's share.

// brakedTime is the time of a sender's braked frames that may be held, at their pace, ns.
const brakedTime = 5_000_000

// braked paces a flow at F while its sender doesn't react, and ends that when it does.
func (w *Worker) braked(k *flowtable.Key, x flowtable.Index, s *lawSender, reacted bool, fair float64) {
	out := w.ports[k.Port].Peer
	w.noteReaction(senderOf(k), out, s)
	p := w.pacers[out]
	switch {
	case p == nil || p.policy == nil:
	case s.reaction.Brakes(w.now):
		if w.enforces(out, k.Src) {
			w.paceAt(out, x, fair)
		}
	case reacted && p.known > 0:
		if at := p.find(k); at != 0 && p.hosts.of[at].enforced.braked {
			p.hosts.of[at].enforced.braked = false
			p.hosts.of[at].restore(p.policy, 0, w.now)
			p.move(at)
		}
	}
}

// paceAt paces a flow at a rate, bytes on the line per ns.
func (w *Worker) paceAt(out int, x flowtable.Index, rate float64) {
	p := w.pacers[out]
	at := p.add(w.flows.Key(x), w.now)
	if at == 0 {
		w.unenforced(out, unenforcedSpace)
		return
	}
	h := &p.hosts.of[at]
	if !h.enforced.linked {
		p.link(at)
	}
	h.enforced.ref, h.enforced.braked = w.flows.Ref(x), true
	h.pace.Limit(p.policy, uint64(rate*8e9), whole, w.now)
}

// late reports whether a sender has as many frames here as may be held for brakedTime.
func (p *pacer) late(h *pacedHost, now int64) bool {
	return float64(*p.heldOf(h)) > float64(h.pace.Rate(p.policyOr(), now))/8e9*brakedTime
}

// lawHeld is law for the frames of a burst that are held or dropped instead of queued: they have arrived, too.
func (w *Worker) lawHeld(b *batch, out int, held mask) {
	if !w.policy.Ports[out].Law.On() || w.ports[out].Role != WAN {
		return
	}
	for held != 0 {
		class, these := w.classOf(b.port, &w.records[bits.TrailingZeros64(uint64(held))]), mask(0)
		for left := held; left != 0; left &= left - 1 {
			if i := bits.TrailingZeros64(uint64(left)); w.classOf(b.port, &w.records[i]) == class {
				these |= 1 << i
			}
		}
		held &^= these
		q := &w.egress[out]
		r := response{in: b.port, out: out, class: class, policy: &w.policy.Ports[out], state: &w.states[out][class], cause: congestion.ByDepth}
		w.law(&r, b, these, float64(q.Classes[class].Waiting()))
	}
}
