package dataplane

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// This file keeps what congested nodes have asked of a proxy until the flow's next data packet. The notification is built from that packet, as for
// a queue of this gateway: so it has the MAC addresses, the tags, the UDP port and the partition key that the sender uses now. Nothing in it comes from
// what the congested node has sent, except the Congestion Level. A sender that has stopped sending need not be notified.

// request asks to notify the sender of a flow of this worker.
type request struct {
	flow  flowtable.Ref
	in    uint8 // the flow's ingress port
	level uint8 // Congestion Level, 0 to 7
	scope packet.Scope
	until int64 // when it is given up, ns; it counts also while another worker has not read it yet
}

const (
	// requestSets and requestWays bound the waiting requests of a worker: those of a flow are in the set that its index names.
	requestSets = 64
	requestWays = 8
	// requestTime is how long a request waits, ns. A flow that fills a queue sends a packet much sooner.
	requestTime = 100e6
	// requestsSwept is the number of slots that a step checks for requests to give up.
	requestsSwept = 8
)

// requests are the waiting requests of a worker.
type requests struct {
	used [requestSets]uint8 // a bit for each request of a set, in one cache line: each packet reads its flow's while there are requests
	of   [requestSets][requestWays]request
	n    int // of all sets
	hand int // the slot swept last
	mail []mailbox[request]
}

// request keeps a request until a data packet of its flow arrives. If the flow has one, the later level counts.
func (w *Worker) request(r request) {
	s := &w.requests
	set := r.flow.Index % requestSets
	if w.now >= r.until { // the gateway has not been a proxy for a while
		w.suppress(int(r.in), ProxyFlowSilent)
		return
	}
	if way, ok := s.find(r.flow); ok {
		w.suppress(int(r.in), ProxyRepeated)
		s.of[set][way] = r
		return
	}
	way := bits.TrailingZeros8(^s.used[set])
	if way == requestWays {
		var ok bool
		if way, ok = s.yielding(set, r.scope); !ok {
			w.suppress(int(r.in), ProxyRequestsFull)
			return
		}
		w.suppress(int(s.of[set][way].in), ProxyRequestsFull)
		s.forget(set, way)
	}
	s.used[set] |= 1 << way
	s.n++
	s.of[set][way] = r
}

// find returns the way of a flow's request in its set.
func (s *requests) find(f flowtable.Ref) (way int, ok bool) {
	set := f.Index % requestSets
	for left := s.used[set]; left != 0; left &= left - 1 {
		if way = bits.TrailingZeros8(left) % requestWays; s.of[set][way].flow == f {
			return way, true
		}
	}
	return 0, false
}

// yielding returns the way of the oldest request, in a full set, of the VLAN or tunnel with the most of them, if a request of another one may
// take its place: that has at least two fewer. So no tenant's requests keep out another's.
func (s *requests) yielding(set flowtable.Index, scope packet.Scope) (way int, ok bool) {
	ways, own, most := &s.of[set], 0, 0
	for i := range ways {
		if ways[i].scope == scope {
			own++
		}
		n := 0
		for j := range ways {
			if ways[j].scope == ways[i].scope {
				n++
			}
		}
		if n > most || n == most && ways[i].until < ways[way].until {
			way, most = i, n
		}
	}
	return way, most >= own+2
}

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
func (s *requests) forget(set flowtable.Index, way int) {
	s.used[set] &^= 1 << way
	s.n--
}

// sweepRequests gives up requests whose flows have sent no data packet in time, a few slots a step.
func (w *Worker) sweepRequests() {
	s := &w.requests
	for range requestsSwept {
		s.hand = (s.hand + 1) % (requestSets * requestWays)
		set, way := flowtable.Index(s.hand/requestWays), s.hand%requestWays
		if r := &s.of[set][way]; s.used[set]>>way&1 != 0 && w.now >= r.until {
			w.suppress(int(r.in), ProxyFlowSilent)
			s.forget(set, way)
		}
	}
}

// answerRequests notifies the senders of a batch's data packets whose flows have a request.
func (w *Worker) answerRequests(b *batch) {
	s := &w.requests
	hits := mask(0)
	flows := w.flow[:min(len(b.frames), len(w.flow))]
	for i := range flows {
		if s.used[flows[i].Index%requestSets] != 0 {
			hits |= 1 << i
		}
	}
	for left := hits &^ (b.gone | b.flowless); left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left)) % burst.MaxSize
		w.inHand = uint8(i)
		way, ok := s.find(flows[i])
		if !ok || !w.records[i].CarriesData() {
			continue
		}
		set := flows[i].Index % requestSets
		s.forget(set, way)
		w.translate(b, i, s.of[set][way].level)
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
