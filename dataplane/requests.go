package dataplane

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
)

// This file keeps what congested nodes have asked of a proxy until the flow's next data packet. The notification is built from that packet, as for
// a queue of this gateway: so it has the MAC addresses, the tags, the UDP port and the partition key that the sender uses now. Nothing in it comes from
// what the congested node has sent, except the Congestion Level. A sender that has stopped sending need not be notified.

// request asks to notify the sender of a flow of this worker.
type request struct {
	flow  flowtable.Ref
	in    uint8 // the flow's ingress port
	level uint8 // Congestion Level, 0 to 7
	until int64 // when it is given up, ns; it counts also while another worker has not read it yet
}

const (
	// requestSlots bounds the waiting requests of a worker. A flow has one slot, by its index.
	requestSlots = 512
	// requestTime is how long a request waits, ns. A flow that fills a queue sends a packet much sooner.
	requestTime = 100e6
	// requestsSwept is the number of slots that a step checks for requests to give up.
	requestsSwept = 8
)

// requests are the waiting requests of a worker.
type requests struct {
	used [requestSlots / 64]uint64 // a bit for each slot with a request, in one cache line: each packet reads its flow's while there are requests
	of   [requestSlots]request
	n    int             // slots in use
	hand flowtable.Index // the slot swept last
	mail []mailbox[request]
}

// request keeps a request until a data packet of its flow arrives. If the flow has one, the later level counts.
func (w *Worker) request(r request) {
	s := &w.requests
	at := r.flow.Index % requestSlots
	switch {
	case w.now >= r.until: // the gateway has not been a proxy for a while
		w.suppress(int(r.in), ProxyFlowSilent)
		return
	case s.has(at) && s.of[at].flow != r.flow:
		w.suppress(int(r.in), ProxyRequestsFull)
		return
	case s.has(at):
		w.suppress(int(r.in), ProxyRepeated)
	default:
		s.used[at/64] |= 1 << (at % 64)
		s.n++
	}
	s.of[at] = r
}

// has reports whether a slot has a request.
func (s *requests) has(at flowtable.Index) bool { return s.used[at/64]>>(at%64)&1 != 0 }

// readRequests takes the requests that other workers have passed on.
func (w *Worker) readRequests() {
	for from := range w.requests.mail {
		for range mailboxSize {
			r, ok := w.requests.mail[from].take()
			if !ok {
				break
			}
			w.request(r)
		}
	}
}

// forget empties a slot.
func (s *requests) forget(at flowtable.Index) {
	s.used[at/64] &^= 1 << (at % 64)
	s.n--
}

// sweepRequests gives up requests whose flows have sent no data packet in time, a few slots a step.
func (w *Worker) sweepRequests() {
	s := &w.requests
	for range requestsSwept {
		s.hand = (s.hand + 1) % requestSlots
		if r := &s.of[s.hand]; s.has(s.hand) && w.now >= r.until {
			w.suppress(int(r.in), ProxyFlowSilent)
			s.forget(s.hand)
		}
	}
}

// answerRequests notifies the senders of a batch's data packets whose flows have a request.
func (w *Worker) answerRequests(b *batch) {
	s := &w.requests
	hits := mask(0)
	flows := w.flow[:min(len(b.frames), len(w.flow))]
	for i := range flows {
		at := flows[i].Index % requestSlots
		hits |= mask(s.used[at/64]>>(at%64)&1) << i
	}
	for left := hits &^ (b.gone | b.flowless); left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left)) % burst.MaxSize
		w.inHand = uint8(i)
		f := flows[i]
		at := f.Index % requestSlots
		if !s.has(at) || s.of[at].flow != f || !w.records[i].CarriesData() {
			continue
		}
		s.forget(at)
		w.translate(b, i, s.of[at].level)
	}
	w.inHand = notInHand
}

// translate notifies the sender of a data packet on behalf of the congested node that has sent a level, in a format that the sender accepts. The limits
// are those of the gateway's own notifications.
func (w *Worker) translate(b *batch, i int, level uint8) {
	x, out := w.flow[i].Index, w.ports[b.port].Peer
	a, policy := w.accounts.get(x), &w.policy.Ports[out]
	r := response{in: b.port, out: out, class: w.classOf(b.port, &w.records[i]), policy: policy, cause: congestion.ByProxy, state: &arrived}
	if !w.due(policy, x, a) {
		w.suppressFlow(&r, x, FlowLimit)
		return
	}
	w.about(r.in, r.out, r.class, r.state, r.cause)
	w.note.decision, w.note.flowBytes, w.note.flowRate = policy.Relayed(level), w.learner.Bytes(x), 0
	if reason := w.ask(b, i, a, &w.target); reason != allowed {
		w.suppressFlow(&r, x, reason)
		return
	}
	a.notify(w.now)
	w.counters.add(b.port, ProxyTranslatedFirst+Counter(w.note.format), 1)
}
