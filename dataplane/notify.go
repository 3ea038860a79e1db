package dataplane

import (
	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// managementQPs are QP 0 (SMI) and QP 1 (GSI): they carry management datagrams and have no rate to reduce (IBTA 3.9.3).
const managementQPs = 2

// qpUnknown is that the sender's QP isn't known, or not yet.
const qpUnknown = Suppression(congestion.SourceQPUnknown)

// groupMAC is the bit of a group's MAC address in its first octet.
const groupMAC = 1

// notify notifies the sender of a data packet that entered a congested queue, if its flow is one of those with the largest shares of that
// queue (draft-tian 5.5). Every reason not to is counted.
func (w *Worker) notify(r *response, b *batch, i int) {
	x := w.flow[i].Index
	if x == flowtable.None {
		w.suppress(r.in, FlowUnknown)
		return
	}
	account := w.accounts.Begun(w.flow[i])
	if uint64(w.accounts.Share(x, account, uint8(r.class)).Queued) < r.least {
		if w.trace != nil {
			w.trace.skips(i, SmallShare)
		}
		return // another flow's packet causes that flow's notification
	}
	if r.mostlyOther { // frames without a sender to notify fill the queue: it would be wrong to notify an RDMA flow
		w.suppressFlow(r, x, LargestNotRoCE)
		return
	}
	if w.records[i].DestQP() < managementQPs {
		w.suppressFlow(r, x, ManagementQP)
		return
	}
	n := &w.note
	n.decision = r.decision
	reason := w.choose(b, i)
	if reason != allowed && reason != qpUnknown { // a QP that isn't known yet may be known soon: then the sender's past rates matter
		w.suppressFlow(r, x, reason)
		return
	}
	sender := w.senders.watch(x, account, r)
	bytes := w.learner.Bytes(x)
	sender.Observe(&r.policy.Response, w.now, bytes, r.metrics.Depth)
	sender.throughput.Observe(w.now, bytes)
	if !w.due(r.policy, x, account) {
		w.suppressFlow(r, x, FlowLimit)
		return
	}
	restraint, stricter := sender.Next(&r.policy.Response, r.metrics.Depth, w.now)
	if restraint != congestion.Unrestrained {
		w.suppressFlow(r, x, restrained(restraint, sender.reached))
		return
	}
	if r.state.sent >= r.policy.FlowsPerRound && r.policy.Interval > 0 {
		if w.trace != nil {
			w.trace.skips(i, RoundOver)
		}
		return // in a later round, if it is still among the largest
	}
	if reason != allowed {
		w.suppressFlow(r, x, reason)
		return
	}
	n.flowBytes, n.flowRate, n.raised = bytes, sender.throughput.Rate(w.now, bytes), false
	if stricter {
		n.decision = sender.Stricter(&r.policy.Response, r.metrics, r.cause)
		n.raised = n.decision.Level > r.decision.Level
		if reason := w.choose(b, i); reason != allowed { // not every format expresses every action
			w.suppressFlow(r, x, reason)
			return
		}
	}
	if reason := w.send(b, i, account, &sender.target); reason != allowed {
		w.suppressFlow(r, x, reason)
		return
	}
	r.state.sent++
	account.SetNotified(w.now)
	w.senders.notified(sender, n, r.metrics.Depth)
}

// about sets what all notifications about a queue have in common, until the next call.
func (w *Worker) about(in, out, class int, state *classState, c congestion.Cause) {
	n := &w.note
	n.raised = false
	w.request.Port, w.request.RTT = uint16(out), w.policy.Ports[out].RTT
	n.in, n.out, n.class, n.state, n.cause, n.queue = uint8(in), uint8(out), uint8(class), state, c, &w.egress[in].Notifications
}

// choose chooses the recipient of the decision in w.note, which is about a queue, and the format: the proxy of the sender of a data packet, if it
// has one, otherwise the sender itself, in the format that its endpoint prefers. Or it says why neither may be notified. A proxy at the gateway's
// own address is the gateway: it notifies the sender itself, and so does the proxy that another gateway has asked: two proxies never notify each
// other.
func (w *Worker) choose(b *batch, i int) Suppression {
	return w.note.choose(w, w.flow[i].Index, flowtable.KeyOf(&w.records[i]), w.batch.Bytes(b.frames[i])[0]&groupMAC != 0)
}

// choose is Worker.choose for a packet of a flow; group: the packet goes to a group's MAC address.
func (n *note) choose(w *Worker, x flowtable.Index, k *flowtable.Key, group bool) Suppression {
	answer := w.learner.Answer(x, w.flows.State(x).Answer())
	n.sourceQP = answer.SourceQP()
	if w.policy.Drain && n.decision.Action != congestion.Resume {
		return Stopping
	}
	if answer.Usable() && n.sourceQP < managementQPs {
		return ManagementQP
	}
	// The packet must go to one station and one host: a notification has its destination MAC address as its source, and a standard CNP the
	// destination IP address, too. Neither may be a group's (IEEE 802.3 3.2.3, RFC 1122 3.2.1.3). What is in a tunnel has no part in that.
	if group || !k.Encapsulated() && !k.Dst.Unicast() {
		return Suppression(congestion.NotUnicast)
	}
	if to, behind := w.policy.Proxies.Lookup(k.Src); behind && n.cause != congestion.ByProxy && !w.isOwn(to) {
		n.format, n.to = packet.ProxyNotification, to
		return Suppression(w.policy.Who.ToProxy(k.Src, to, n.decision.Action))
	}
	if k.Encapsulated() { // a plain notification could reach another tenant's host, or none
		return Encapsulated
	}
	n.to = k.Src
	format, reason := w.policy.Who.ChooseWith(&w.recent, &k.Src, answer.Usable(), w.plane.host.Refusals.Has(packet.Host{Addr: k.Src, Scope: k.Scope()}, w.now), n.decision.Action)
	n.format = format
	return Suppression(reason)
}

// ask chooses the recipient of the decision in w.note, and sends it.
func (w *Worker) ask(b *batch, i int, a *account.Flow, target *cnpgen.Target) Suppression {
	if reason := w.choose(b, i); reason != allowed {
		return reason
	}
	return w.send(b, i, a, target)
}

// send sends the decision in w.note to the recipient that choose has chosen, or says why it can't. It writes the target once nothing but the
// building of the notification can fail.
func (w *Worker) send(b *batch, i int, a *account.Flow, target *cnpgen.Target) Suppression {
	n := &w.note
	n.flow, n.account, n.target = w.flow[i].Index, a, target
	if reason := w.admit(n); reason != allowed {
		return reason
	}
	if b.whole>>i&1 == 0 && n.format != packet.ProxyNotification {
		if n.packet != nil {
			n.frame, n.packet = nil, nil
		}
		target.SetPlain(w.batch.Bytes(b.frames[i]), &w.records[i])
	} else if !w.setTarget(n, b, i) {
		return NotBuilt
	}
	if reason := w.emit(n); reason != allowed {
		return reason
	}
	if n.format == packet.FastCNP && (!n.observed || w.policy.observesAt(int(n.out))) { // if only Fast CNP is observed, the packet is really marked
		b.byFastCNP |= 1 << i
	}
	if !n.observed {
		a.Notified[n.format]++
	}
	return allowed
}

// setTarget sets the target of a notification about a data packet, and gives it the packet with all its headers. Those of a plain frame are
// needed only if the notification carries them.
func (w *Worker) setTarget(n *note, b *batch, i int) (ok bool) {
	n.frame, n.packet = w.batch.Bytes(b.frames[i]), w.headers(b, i)
	if n.format == packet.ProxyNotification {
		n.target = &w.target // no Resume follows, which would need the sender's own
	}
	*n.target, ok = cnpgen.TargetOf(n.frame, n.packet)
	return ok
}

func (w *Worker) isOwn(a packet.Addr) bool {
	return w.policy.Build.Owns(a) || w.policy.Proxy.Owns(a)
}

func (w *Worker) suppress(in int, s Suppression) {
	w.counters.add(in, SuppressedFirst+Counter(s-1), 1)
	if w.trace != nil {
		w.trace.suppressed(w.inHand, s)
	}
}

// suppressFlow is suppress for a flow whose sender was to be notified of congestion.
func (w *Worker) suppressFlow(r *response, x flowtable.Index, s Suppression) {
	w.recordSuppressed(r, x, s)
	w.suppress(r.in, s)
}

// due reports whether the flow's sender was not notified within the minimum interval (draft-tian 5.5), by this worker or by another one
// that received packets of the flow.
func (w *Worker) due(p *PortPolicy, x flowtable.Index, a *account.Flow) bool {
	return p.PerFlow.Ready(a.LastNotified.Load(), w.now) && (len(w.plane.workers) == 1 || w.dueElsewhere(p, x))
}

// dueElsewhere is due for the other workers.
func (w *Worker) dueElsewhere(p *PortPolicy, x flowtable.Index) bool {
	for _, other := range w.plane.workers {
		if other == w {
			continue
		}
		y, state, found := other.flows.Find(w.flows.Key(x))
		if found && !p.PerFlow.Ready(other.accounts.LastNotifiedOf(y, state.Generation()), w.now) {
			return false
		}
	}
	return true
}

// note is a notification to be sent.
type note struct {
	// Of the queue that it is about, see Worker.about.
	in, out uint8            // its egress port, which is the flow's ingress port; and the congested port
	class   uint8            // of the congested queue, and its state
	cause   congestion.Cause // 0 for a Resume
	state   *classState
	queue   *egress.Ring // of notifications at its egress port

	format              packet.Notification
	observed            bool        // it is only counted
	raised              bool        // as in NotificationRecord
	to                  packet.Addr // the sender, or its proxy
	flow                flowtable.Index
	account             *account.Flow // of the flow
	decision            congestion.Decision
	flowBytes, flowRate uint64 // as in NotificationRecord
	target              *cnpgen.Target
	sourceQP            uint32         // of the flow, if the format names it
	frame               []byte         // the data packet; nil for a Resume, and for a plain frame, unless the format carries it
	packet              *packet.Parsed // its headers
}

// admit reports whether a notification can be queued at the flow's ingress port, and the limits of the destination and the port allow it.
func (w *Worker) admit(n *note) Suppression {
	if reason := canQueue(w, n.queue); reason != allowed {
		return reason
	}
	if w.policy.PerDestination.Off() && w.policy.PerProxy.Off() && w.policy.PerPort.Off() {
		return allowed
	}
	return w.limits(n)
}

// canQueue returns why a worker can't queue a notification, or allowed.
func canQueue(w *Worker, q *egress.Ring) Suppression {
	if q.Full() {
		return NotificationQueueFull
	}
	if len(w.batch.Spare) == 0 {
		return NoBuffer
	}
	return allowed
}

// emit builds a notification that was admitted in a spare buffer, and queues it, ahead of data, at the flow's ingress port. In observe mode
// it is only counted.
func (w *Worker) emit(n *note) Suppression {
	spare := &w.batch.Spare[len(w.batch.Spare)-1]
	out := w.batch.Bytes(*spare)
	size := w.build(n, out)
	if size == 0 {
		return NotBuilt
	}
	if n.cause != 0 {
		w.counters.add(int(n.in), TriggeredFirst+Counter(n.cause.First()), 1)
	}
	n.observed = w.policy.observes(int(n.out), n.format)
	if n.observed {
		w.counters.add(int(n.in), ObservedFirst+Counter(n.format), 1)
		w.recordSent(n, out[:size], Observed)
		return allowed
	}
	w.recordSent(n, out[:size], Emitted)
	w.push(n.queue, size, flowtable.Index(n.format))
	return allowed
}

// push queues, ahead of data, the frame in the last spare buffer. The tag is its type: a packet.Notification, or from tagHost on a host.Verdict.
func (w *Worker) push(q *egress.Ring, size int, tag flowtable.Index) {
	last := len(w.batch.Spare) - 1
	spare := &w.batch.Spare[last]
	q.Push(burst.Frame{Buf: spare.Buf, Data: spare.Data, Len: uint32(size), Head: uint32(size)}, flowtable.Ref{Index: tag, Generation: stamp(w.now)})
	w.batch.Spare = w.batch.Spare[:last]
}

// limits takes a token of the notification's destination and one of the port that it leaves by, or none.
func (w *Worker) limits(n *note) Suppression {
	each, host := limitOf(w, n)
	if !each.Off() {
		if reason := limitReason(w.plane.toDestination.Allow(each, host, w.now)); reason != allowed {
			return reason
		}
	}
	if !w.policy.PerPort.Off() && !w.policy.PerPort.Allow(&w.plane.toPort[n.in], w.now) {
		w.plane.toDestination.Refund(each, host)
		return PortLimit
	}
	return allowed
}

// limitOf is the limit of a notification's destination. A proxy counts once for each scope of its senders: those of a tenant must not use up the
// notifications about another tenant's.
func limitOf(w *Worker, n *note) (each ratelimit.Rate, host packet.Host) {
	each = w.policy.PerDestination
	if n.format == packet.ProxyNotification {
		each = w.policy.PerProxy
	}
	return each, packet.Host{Addr: n.to, Scope: w.flows.Key(n.flow).Scope()}
}

// limitReason is the suppression for a destination's verdict.
func limitReason(v ratelimit.Verdict) Suppression {
	switch v {
	case ratelimit.Limited:
		return DestinationLimit
	case ratelimit.Busy:
		return DestinationsFull
	}
	return allowed
}
