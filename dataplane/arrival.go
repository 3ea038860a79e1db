package dataplane

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// answerCE processes the data packets of a batch that arrived from the fabric with CE: a queue of the sender's own data centre marked them.
// If so configured, it notifies their senders at once, instead of a WAN round trip later, and clears CE.
func (w *Worker) answerCE(b *batch) {
	policy := &w.policy.Ports[w.ports[b.port].Peer]
	if !policy.OnArrival || w.ports[b.port].Role != Fabric {
		return
	}
	for left := b.ce &^ (b.gone | b.flowless); left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left))
		w.inHand = uint8(i)
		if p := &w.records[i]; p.CarriesData() && p.DestQP() >= managementQPs {
			w.answerMark(b, i)
			if b.tunnel>>i&1 == 0 { // the mark may have been copied from the packet inside (RFC 6040 4.1), which keeps it
				w.clearCE(b, i, policy)
			}
		}
	}
	w.inHand = notInHand
}

// answerMark notifies the sender of one packet, if that is due. If a due notification isn't sent, the reason is counted once.
func (w *Worker) answerMark(b *batch, i int) {
	x := w.flow[i].Index
	if x == flowtable.None {
		w.suppress(b.port, FlowUnknown)
		return
	}
	a := w.accounts.Get(x)
	arrivals, due := congestion.Arrivals(a.Arrivals.Load()).Mark(w.now)
	if due {
		r := response{in: b.port, out: w.ports[b.port].Peer, class: w.classOf(b.port, &w.records[i]), cause: congestion.ByArrival, state: &arrived}
		w.about(r.in, r.out, r.class, r.state, r.cause)
		w.note.decision, w.note.flowBytes, w.note.flowRate = congestion.Arrived(), w.learner.Bytes(x), 0
		reason := w.ask(b, i, a, &w.target)
		switch {
		case reason != allowed:
			w.suppressFlow(&r, x, reason)
		case w.note.format != packet.ProxyNotification && !w.note.observed:
			arrivals = arrivals.Answered() // a proxy may not be able to notify the sender
		}
	}
	a.Arrivals.Store(uint64(arrivals))
}

// clearCE clears CE of a packet if the gateway has notified the sender: the last due notification was sent, at most an interval ago, and
// the flow's QP is confirmed. The marks of any other flow reach the receiver, which notifies the sender.
func (w *Worker) clearCE(b *batch, i int, policy *PortPolicy) {
	x := w.flow[i].Index
	if !policy.ClearCE || w.policy.observesAt(w.ports[b.port].Peer) || x == flowtable.None || !congestion.Arrivals(w.accounts.Known(x).Arrivals.Load()).IsAnswered() {
		return
	}
	if _, confirmed := w.learner.SourceQP(x); !confirmed {
		return
	}
	if p := &w.records[i]; packet.ClearCE(w.batch.Bytes(b.frames[i]), p.IP, p.ECN()) {
		p.TOS ^= packet.CE ^ packet.ECT0
		w.counters.add(b.port, CECleared, 1)
	}
}
