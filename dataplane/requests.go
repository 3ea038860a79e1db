package dataplane

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/proxy"
)

// lostRequests are the reasons for which no sender is notified as a congested node has asked.
var lostRequests = [...]Suppression{host.FlowSilent: ProxyFlowSilent, host.Repeated: ProxyRepeated, host.NoSlot: ProxyRequestsFull}

// requests is the stage that notifies senders as congested nodes ask the gateway as their proxy.
type requests struct {
	*common
	host.Requests
	plane    *Dataplane
	notifier *notifier
	listener *listener
	passed   []mailbox[host.Request] // by other workers, by the worker that writes
}

// pass passes a request to a worker that has its flow, this one first. This gateway carries it out, too, if it enforces notifications.
func (q *requests) pass(f *host.Frame, r *proxy.Request) proxy.Refusal {
	in := f.Port // the sender's data arrives from the fabric
	if f.WAN {
		in = q.ports[in].Peer
	}
	k := flowtable.Key{Src: r.Sender, Dst: r.Receiver, DestQP: r.DestQP, SourceQP: r.SourceQP}
	k.SetScope(packet.ScopeOf(uint16(in), f.Parsed))
	if q.locate(&k) == ambiguousScope {
		return proxy.Ambiguous
	}
	worker, flow := q.find(&k)
	waiting := host.Request{Flow: flow, In: uint8(k.Port), Level: r.Level, Scope: k.Scope(), Until: q.now + host.RequestTime}
	switch {
	case worker < 0:
		return proxy.FlowUnknown
	case worker == q.id:
		q.lose(q.Put(waiting, q.now))
	case !q.plane.workers[worker].requests.passed[q.id].put(waiting):
		q.lose(host.NoSlot, waiting.In)
	}
	q.listener.enforceForProxy(&k)
	return proxy.Accepted
}

// lose counts a request that is given up, if it is.
func (q *requests) lose(lost host.Lost, in uint8) {
	if lost != host.NotLost {
		q.suppress(int(in), lostRequests[lost])
	}
}

// step takes the requests that other workers have passed on, and gives up those whose flows have sent no data packet in time, a few
// slots a step.
func (q *requests) step() {
	for from := range q.passed {
		for range mailboxSize {
			r, ok := q.passed[from].take()
			if !ok {
				break
			}
			q.lose(q.Put(r, q.now))
		}
	}
	for range host.RequestsSwept {
		q.lose(q.Sweep(q.now))
	}
}

// answer notifies the senders of a batch's data packets whose flows have a request.
func (q *requests) answer(b *batch) {
	hits := mask(0)
	flows := b.flow[:min(len(b.frames), len(b.flow))]
	for i := range flows {
		if q.May(flows[i]) {
			hits |= 1 << i
		}
	}
	for left := hits &^ (b.gone | b.flowless); left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left)) % burst.MaxSize
		b.inHand = uint8(i)
		if !b.records[i].CarriesData() {
			continue
		}
		if level, ok := q.Take(flows[i]); ok {
			q.translate(b, i, level)
		}
	}
	b.inHand = notInHand
}

// translate notifies the sender of a data packet on behalf of the congested node that has sent a level, in a format that the sender
// accepts. The limits are those of the gateway's own notifications.
func (q *requests) translate(b *batch, i int, level uint8) {
	x, out := b.flow[i].Index, q.ports[b.port].Peer
	a, policy := q.accounts.Get(x), &q.policy.Ports[out]
	r := congested{in: b.port, out: out, class: b.classAt(i), policy: policy, cause: congestion.ByProxy, state: &arrived}
	n := q.notifier
	if !n.due(policy, x, a) {
		n.suppressFlow(&r, x, FlowLimit)
		return
	}
	n.about(&r)
	n.note.decision, n.note.flowBytes, n.note.flowRate = policy.Relayed(level), q.learner.Bytes(x), 0
	if n.ask(&r, b, i, a, &n.target) {
		a.SetNotified(q.now)
		q.counters.add(b.port, ProxyTranslatedFirst+Counter(n.note.format), 1)
	}
}
