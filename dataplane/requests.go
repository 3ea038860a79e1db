package dataplane

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/frames"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/dataplane/mailbox"
	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/proxy"
)

// lostRequests are the reasons for which no sender is notified as a congested node has asked.
var lostRequests = [...]counters.Suppression{host.FlowSilent: counters.ProxyFlowSilent, host.Repeated: counters.ProxyRepeated, host.NoSlot: counters.ProxyRequestsFull}

// requests is the stage that notifies senders as congested nodes ask the gateway as their proxy.
type requests struct {
	*stage.State
	host.Requests
	peers    []*requests // of all workers
	notifier *notify.Notifier
	listener *listener
	passed   []mailbox.Box[host.Request] // by other workers, by the worker that writes
}

// pass passes a request to a worker that has its flow, this one first. This gateway carries it out, too, if it enforces notifications.
func (q *requests) pass(f *host.Frame, r *proxy.Request) proxy.Refusal {
	in := f.Port // the sender's data arrives from the fabric
	if f.WAN {
		in = q.Ports[in].Peer
	}
	k := flowtable.Key{Src: r.Sender, Dst: r.Receiver, DestQP: r.DestQP, SourceQP: r.SourceQP}
	k.SetScope(packet.ScopeOf(uint16(in), f.Parsed))
	if q.Locate(&k) {
		return proxy.Ambiguous
	}
	worker, flow := q.Find(&k)
	waiting := host.Request{Flow: flow, In: uint8(k.Port), Level: r.Level, Scope: k.Scope(), Until: q.Now + host.RequestTime}
	switch {
	case worker < 0:
		return proxy.FlowUnknown
	case worker == q.ID:
		q.lose(q.Put(waiting, q.Now))
	case !q.peers[worker].passed[q.ID].Put(waiting):
		q.lose(host.NoSlot, waiting.In)
	}
	q.listener.enforceForProxy(&k)
	return proxy.Accepted
}

// lose counts a request that is given up, if it is.
func (q *requests) lose(lost host.Lost, in uint8) {
	if lost != host.NotLost {
		q.Suppress(int(in), lostRequests[lost])
	}
}

// step takes the requests that other workers have passed on, and gives up those whose flows have sent no data packet in time, a few
// slots a step.
func (q *requests) step() {
	for from := range q.passed {
		for range mailbox.Size {
			r, ok := q.passed[from].Take()
			if !ok {
				break
			}
			q.lose(q.Put(r, q.Now))
		}
	}
	for range host.RequestsSwept {
		q.lose(q.Sweep(q.Now))
	}
}

// answer notifies the senders of a batch's data packets whose flows have a request.
func (q *requests) answer(b *frames.Batch) {
	hits := frames.Mask(0)
	flows := b.Flow[:min(len(b.Frames), len(b.Flow))]
	for i := range flows {
		if q.May(flows[i]) {
			hits |= 1 << i
		}
	}
	for left := hits &^ (b.Gone | b.Flowless); left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left)) % burst.MaxSize
		b.InHand = uint8(i)
		if !b.Records[i].CarriesData() {
			continue
		}
		if level, ok := q.Take(flows[i]); ok {
			q.translate(b, i, level)
		}
	}
	b.InHand = frames.NotInHand
}

// translate notifies the sender of a data packet on behalf of the congested node that has sent a level, in a format that the sender
// accepts. The limits are those of the gateway's own notifications.
func (q *requests) translate(b *frames.Batch, i int, level uint8) {
	x, out := b.Flow[i].Index, q.Ports[b.Port].Peer
	a, policy := q.Accounts.Get(x), &q.Policy.Ports[out]
	r := notify.Queue{In: b.Port, Out: out, Class: b.ClassAt(i), Cause: congestion.ByProxy, State: &notify.Arrived}
	n := q.notifier
	if !n.Due(policy, x, a) {
		n.SuppressFlow(&r, x, counters.FlowLimit)
		return
	}
	n.About(&r)
	n.Note.Decision, n.Note.FlowBytes, n.Note.FlowRate, n.Note.FairRate = policy.Relayed(level), q.Learner.Bytes(x), 0, 0
	if n.Ask(&r, b, i, a, &n.Target) {
		a.SetNotified(q.Now)
		q.Counters.Add(b.Port, counters.ProxyTranslatedFirst+counters.Counter(n.Note.Format), 1)
	}
}
