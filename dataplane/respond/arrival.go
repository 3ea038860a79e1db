package respond

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/frames"
	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// AnswerCE counts the packets of a batch that arrived with CE, and processes the data packets from the fabric among them: a queue of the sender's own data centre marked them.
// If so configured, it notifies their senders at once, instead of a WAN round trip later, and clears CE.
func (s *Responder) AnswerCE(b *frames.Batch) {
	s.Counters.Add(b.Port, counters.CEReceived, uint64(bits.OnesCount64(uint64(b.CE&^b.Gone))))
	policy := &s.Policy.Ports[s.Ports[b.Port].Peer]
	if !policy.OnArrival || s.Ports[b.Port].Role != stage.Fabric {
		return
	}
	for left := b.CE &^ (b.Gone | b.Flowless); left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left))
		b.InHand = uint8(i)
		if p := &b.Records[i]; p.CarriesData() && p.DestQP() >= packet.ManagementQPs {
			s.answerMark(b, i)
			if b.Tunnel>>i&1 == 0 { // the mark may have been copied from the packet inside (RFC 6040 4.1), which keeps it
				s.clearCE(b, i, policy)
			}
		}
	}
	b.InHand = frames.NotInHand
}

// answerMark notifies the sender of one packet, if that is due. If a due notification isn't sent, the reason is counted once.
func (s *Responder) answerMark(b *frames.Batch, i int) {
	n, x := s.notifier, b.Flow[i].Index
	if x == flowtable.None {
		s.Suppress(b.Port, counters.FlowUnknown)
		return
	}
	a := s.Accounts.Get(x)
	arrivals, due := congestion.Arrivals(a.Arrivals.Load()).Mark(s.Now)
	if due {
		class := b.ClassAt(i)
		r := notify.Queue{In: b.Port, Out: s.Ports[b.Port].Peer, Class: class, Cause: congestion.ByArrival, State: &notify.Arrived}
		n.About(&r)
		n.Note.Decision, n.Note.FlowBytes, n.Note.FlowRate, n.Note.FairRate = congestion.Arrived(), s.Learner.Bytes(x), 0, 0
		if n.Ask(&r, b, i, a, &n.Target) && n.Note.Format != packet.ProxyNotification && !n.Note.Observed {
			arrivals = arrivals.Answered() // a proxy may not be able to notify the sender
		}
	}
	a.Arrivals.Store(uint64(arrivals))
}

// clearCE clears CE of a packet if the gateway has notified the sender: the last due notification was sent, at most an interval ago, and
// the flow's QP is confirmed. The marks of any other flow reach the receiver, which notifies the sender.
func (s *Responder) clearCE(b *frames.Batch, i int, policy *stage.PortPolicy) {
	x := b.Flow[i].Index
	if !policy.ClearCE || s.Policy.ObservesAt(s.Ports[b.Port].Peer) || x == flowtable.None {
		return
	}
	_, confirmed := s.Learner.SourceQP(x)
	if !confirmed || !congestion.Arrivals(s.Accounts.Known(x).Arrivals.Load()).IsAnswered() {
		return
	}
	if p := &b.Records[i]; packet.ClearCE(b.Data(i), p.IP, p.ECN()) {
		p.TOS ^= packet.CE ^ packet.ECT0
		s.Counters.Add(b.Port, counters.CECleared, 1)
	}
}
