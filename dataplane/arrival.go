package dataplane

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// answerCE processes the data packets of a batch that arrived from the fabric with CE: a queue of the sender's own data centre marked them.
// If so configured, it notifies their senders at once, instead of a WAN round trip later, and clears CE.
func (s *responder) answerCE(b *batch) {
	policy := &s.policy.Ports[s.ports[b.port].Peer]
	if !policy.OnArrival || s.ports[b.port].Role != Fabric {
		return
	}
	for left := b.ce &^ (b.gone | b.flowless); left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left))
		b.inHand = uint8(i)
		if p := &b.records[i]; p.CarriesData() && p.DestQP() >= packet.ManagementQPs {
			s.answerMark(b, i)
			if b.tunnel>>i&1 == 0 { // the mark may have been copied from the packet inside (RFC 6040 4.1), which keeps it
				s.clearCE(b, i, policy)
			}
		}
	}
	b.inHand = notInHand
}

// answerMark notifies the sender of one packet, if that is due. If a due notification isn't sent, the reason is counted once.
func (s *responder) answerMark(b *batch, i int) {
	n, x := s.notifier, b.flow[i].Index
	if x == flowtable.None {
		s.suppress(b.port, FlowUnknown)
		return
	}
	a := s.accounts.Get(x)
	arrivals, due := congestion.Arrivals(a.Arrivals.Load()).Mark(s.now)
	if due {
		class := b.classAt(i)
		r := congested{in: b.port, out: s.ports[b.port].Peer, class: class, cause: congestion.ByArrival, state: &arrived}
		n.about(&r)
		n.note.decision, n.note.flowBytes, n.note.flowRate = congestion.Arrived(), s.learner.Bytes(x), 0
		if n.ask(&r, b, i, a, &n.target) && n.note.format != packet.ProxyNotification && !n.note.observed {
			arrivals = arrivals.Answered() // a proxy may not be able to notify the sender
		}
	}
	a.Arrivals.Store(uint64(arrivals))
}

// clearCE clears CE of a packet if the gateway has notified the sender: the last due notification was sent, at most an interval ago, and
// the flow's QP is confirmed. The marks of any other flow reach the receiver, which notifies the sender.
func (s *responder) clearCE(b *batch, i int, policy *PortPolicy) {
	x := b.flow[i].Index
	if !policy.ClearCE || s.policy.observesAt(s.ports[b.port].Peer) || x == flowtable.None {
		return
	}
	_, confirmed := s.learner.SourceQP(x)
	if !confirmed || !congestion.Arrivals(s.accounts.Known(x).Arrivals.Load()).IsAnswered() {
		return
	}
	if p := &b.records[i]; packet.ClearCE(b.data(i), p.IP, p.ECN()) {
		p.TOS ^= packet.CE ^ packet.ECT0
		s.counters.add(b.port, CECleared, 1)
	}
}
