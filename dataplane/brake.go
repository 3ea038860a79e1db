package dataplane

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/pacing"
	"github.com/cnpgate/cnpgate/flowtable"
)

// A sender that doesn't react to notifications is braked: its packets are marked CE, and if its WAN port paces its flows, they leave at F. What comes
// beyond that waits for a short time, and then is dropped, so that it takes nobody else's share.

// braked paces a flow at F while its sender doesn't react, and ends that when it does.
func (w *Worker) braked(k *flowtable.Key, x flowtable.Index, s *lawSender, reacted bool, fair float64) {
	out := w.ports[k.Port].Peer
	w.noteReaction(pacing.SenderOf(k), out, s)
	switch p := w.pacers[out]; {
	case !p.Active():
	case s.reaction.Brakes(w.now):
		if w.enforces(out, k.Src) {
			p.Brake(x, fair, w.now)
		}
	case reacted:
		p.Unbrake(k, w.now)
	}
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
