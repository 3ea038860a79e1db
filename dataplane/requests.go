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

// passRequest passes a request to a worker that has its flow, this one first. This gateway carries it out, too, if it enforces notifications.
func (w *Worker) passRequest(f *host.Frame, r *proxy.Request) proxy.Refusal {
	in := f.Port // the sender's data arrives from the fabric
	if f.WAN {
		in = w.ports[in].Peer
	}
	k := flowtable.Key{Src: r.Sender, Dst: r.Receiver, DestQP: r.DestQP, SourceQP: r.SourceQP}
	k.SetScope(packet.ScopeOf(uint16(in), f.Parsed))
	if w.locate(&k) == ambiguousScope {
		return proxy.Ambiguous
	}
	other, flow := find(w, &k)
	waiting := host.Request{Flow: flow, In: uint8(k.Port), Level: r.Level, Scope: k.Scope(), Until: w.now + host.RequestTime}
	switch {
	case other == nil:
		return proxy.FlowUnknown
	case other == w:
		w.loseRequest(w.requests.Put(waiting, w.now))
	case !other.proxyMail[w.id].put(waiting):
		w.loseRequest(host.NoSlot, waiting.In)
	}
	w.enforceForProxy(&k)
	return proxy.Accepted
}

// loseRequest counts a request that is given up, if it is.
func (w *Worker) loseRequest(lost host.Lost, in uint8) {
	if lost != host.NotLost {
		w.suppress(int(in), lostRequests[lost])
	}
}

// stepRequests takes the requests that other workers have passed on, and gives up those whose flows have sent no data packet in time, a few
// slots a step.
func (w *Worker) stepRequests() {
	for from := range w.proxyMail {
		for range mailboxSize {
			r, ok := w.proxyMail[from].take()
			if !ok {
				break
			}
			w.loseRequest(w.requests.Put(r, w.now))
		}
	}
	for range host.RequestsSwept {
		w.loseRequest(w.requests.Sweep(w.now))
	}
}

// answerRequests notifies the senders of a batch's data packets whose flows have a request.
func (w *Worker) answerRequests(b *batch) {
	hits := mask(0)
	flows := w.flow[:min(len(b.frames), len(w.flow))]
	for i := range flows {
		if w.requests.May(flows[i]) {
			hits |= 1 << i
		}
	}
	for left := hits &^ (b.gone | b.flowless); left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left)) % burst.MaxSize
		w.inHand = uint8(i)
		if !w.records[i].CarriesData() {
			continue
		}
		if level, ok := w.requests.Take(flows[i]); ok {
			w.translate(b, i, level)
		}
	}
	w.inHand = notInHand
}

// translate notifies the sender of a data packet on behalf of the congested node that has sent a level, in a format that the sender accepts. The limits
// are those of the gateway's own notifications.
func (w *Worker) translate(b *batch, i int, level uint8) {
	x, out := w.flow[i].Index, w.ports[b.port].Peer
	a, policy := w.accounts.Get(x), &w.policy.Ports[out]
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
	a.SetNotified(w.now)
	w.counters.add(b.port, ProxyTranslatedFirst+Counter(w.note.format), 1)
}
