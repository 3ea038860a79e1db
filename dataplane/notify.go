package dataplane

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/dataplane/pacing"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// qpUnknown is that the sender's QP isn't known, or not yet.
const qpUnknown = Suppression(congestion.SourceQPUnknown)

// notifier sends a worker's notifications: it chooses recipient and kind, applies the limits, builds, queues, counts and records. Those who
// decide that a sender is to be notified set note.decision, and call ask.
type notifier struct {
	*common
	note      note              // the one that is being sent
	target    cnpgen.Target     // of note, if its sender gets no Resume
	recent    congestion.Recent // of choices of a format
	request   cnpgen.Request    // of note
	limits    *limits
	extension cnpgen.Extension // of request

	sent, suppressed History
	suppressedNext   [suppressionsEnd]int64 // ns, the time from which on a suppressed notification is recorded again
}

// newNotifier makes a worker's notifier. allocate returns zeroed memory, 8-byte aligned.
func newNotifier(s *common, l *limits, allocate func(bytes int) ([]byte, error)) (*notifier, error) {
	n := &notifier{common: s, limits: l}
	memory, err := allocate(historySize(historyRecords))
	if err != nil {
		return nil, err
	}
	n.sent = newHistory(memory, historyRecords)
	if memory, err = allocate(historySize(suppressedRecords)); err != nil {
		return nil, err
	}
	n.suppressed = newHistory(memory, suppressedRecords)
	return n, nil
}

// limits are those of all workers' notifications.
type limits struct {
	toPort        []atomic.Int64 // by port
	toDestination *ratelimit.Destinations
}

// destinations is the number of senders whose limits are kept at once.
const destinations = 65536

// newLimits makes the limits of a dataplane with this number of ports.
func newLimits(ports int, seed uint64, allocate func(bytes int) ([]byte, error)) (*limits, error) {
	memory, err := allocate(ratelimit.Size(destinations))
	if err != nil {
		return nil, err
	}
	l := &limits{toPort: make([]atomic.Int64, ports)}
	l.toDestination, err = ratelimit.New(memory, destinations, seed)
	return l, err
}

// note is a notification to be sent.
type note struct {
	// Of the queue that it is about, see about.
	in, out uint8            // its egress port, which is the flow's ingress port; and the congested port
	class   uint8            // of the congested queue, and its state
	cause   congestion.Cause // 0 for a Resume
	state   *queueState
	queue   *egress.Ring // of notifications at its egress port

	format              packet.Notification
	observed            bool        // it is only counted
	raised              bool        // as in NotificationRecord
	to                  packet.Addr // the sender, or its proxy
	flow                flowtable.Index
	account             *account.Flow // of the flow
	decision            congestion.Decision
	flowBytes, flowRate uint64         // as in NotificationRecord
	sourceQP            uint32         // of the flow, if the format names it
	frame               []byte         // the data packet; nil for a Resume, and for a plain frame, unless the format carries it
	packet              *packet.Parsed // its headers
}

// congested is a class of a port's queue that notifications are about, for the frames of one port.
type congested struct {
	in, out, class int
	policy         *PortPolicy
	state          *queueState
	metrics        congestion.Metrics
	cause          congestion.Cause
}

// about sets what all notifications about a queue have in common, until the next call.
func (n *notifier) about(r *congested) {
	m := &n.note
	m.raised = false
	m.in, m.out, m.class, m.state, m.cause = uint8(r.in), uint8(r.out), uint8(r.class), r.state, r.cause
	m.queue = &n.egress[r.in].Notifications
	n.request.Port, n.request.RTT = uint16(r.out), n.policy.Ports[r.out].RTT
}

// ask notifies the sender of a packet with the decision in the note, or counts why not. a is the account of the packet's flow.
func (n *notifier) ask(r *congested, b *batch, i int, a *account.Flow, target *cnpgen.Target) bool {
	if reason := n.choose(b, i); reason != allowed {
		n.suppressFlow(r, b.flow[i].Index, reason)
		return false
	}
	return n.askChosen(r, b, i, a, target)
}

// askChosen is ask where choose has chosen the recipient.
func (n *notifier) askChosen(r *congested, b *batch, i int, a *account.Flow, target *cnpgen.Target) bool {
	reason := n.send(b, i, a, target)
	if reason != allowed {
		n.suppressFlow(r, b.flow[i].Index, reason)
	}
	return reason == allowed
}

// choose chooses the recipient of the decision in the note, which is about a queue, and the format: the proxy of the sender of a data
// packet, if it has one, otherwise the sender itself, in the format that its endpoint prefers. Or it says why neither may be notified. A
// proxy at the gateway's own address is the gateway: it notifies the sender itself, and so does the proxy that another gateway has asked:
// two proxies never notify each other.
func (n *notifier) choose(b *batch, i int) Suppression {
	return n.chooseFor(&n.note, b.flow[i].Index, flowtable.KeyOf(&b.records[i]), b.toGroup(i))
}

// chooseFor is choose for a packet of a flow; group: the packet goes to a group's MAC address.
func (n *notifier) chooseFor(m *note, x flowtable.Index, k *flowtable.Key, group bool) Suppression {
	c := n.common
	answer := c.learner.Answer(x, c.flows.State(x).Answer())
	m.sourceQP = answer.SourceQP()
	if c.policy.Drain && m.decision.Action != congestion.Resume {
		return Stopping
	}
	if answer.Usable() && m.sourceQP < packet.ManagementQPs {
		return ManagementQP
	}
	// The packet must go to one station and one host: a notification has its destination MAC address as its source, and a standard CNP the
	// destination IP address, too. Neither may be a group's (IEEE 802.3 3.2.3, RFC 1122 3.2.1.3). What is in a tunnel has no part in that.
	if group || !k.Encapsulated() && !k.Dst.Unicast() {
		return Suppression(congestion.NotUnicast)
	}
	if to, behind := c.policy.Proxies.Lookup(k.Src); behind && m.cause != congestion.ByProxy && !c.policy.owns(to) {
		m.format, m.to = packet.ProxyNotification, to
		return Suppression(c.policy.Who.ToProxy(k.Src, to, m.decision.Action))
	}
	if k.Encapsulated() { // a plain notification could reach another tenant's host, or none
		return Encapsulated
	}
	m.to = k.Src
	refused := c.host.Refusals.Has(pacing.SenderOf(k), c.now)
	format, reason := c.policy.Who.ChooseWith(&n.recent, &k.Src, answer.Usable(), refused, m.decision.Action)
	m.format = format
	return Suppression(reason)
}

// send sends the decision in the note to the recipient that choose has chosen, or says why it can't. It writes the target once nothing but
// the building of the notification can fail.
func (n *notifier) send(b *batch, i int, a *account.Flow, target *cnpgen.Target) Suppression {
	c := n.common
	m := &n.note
	m.flow, m.account, n.request.Target = b.flow[i].Index, a, target
	if reason := n.admit(m); reason != allowed {
		return reason
	}
	if b.whole>>i&1 == 0 && m.format != packet.ProxyNotification {
		if m.packet != nil {
			m.frame, m.packet = nil, nil
		}
		target.SetPlain(b.data(i), &b.records[i])
	} else if !n.setTarget(m, b, i) {
		return NotBuilt
	}
	if reason := n.emit(m); reason != allowed {
		return reason
	}
	// If only Fast CNP is observed, the packet is really marked.
	if m.format == packet.FastCNP && (!m.observed || c.policy.observesAt(int(m.out))) {
		b.byFastCNP |= 1 << i
	}
	return allowed
}

// setTarget sets the target of a notification about a data packet, and gives it the packet with all its headers. Those of a plain frame are
// needed only if the notification carries them.
func (n *notifier) setTarget(m *note, b *batch, i int) (ok bool) {
	m.frame, m.packet = b.data(i), b.headers(i)
	if m.format == packet.ProxyNotification {
		n.request.Target = &n.target // no Resume follows, which would need the sender's own
	}
	*n.request.Target, ok = cnpgen.TargetOf(m.frame, m.packet)
	return ok
}

// suppressFlow is suppress for a flow whose sender was to be notified of congestion.
func (n *notifier) suppressFlow(r *congested, x flowtable.Index, s Suppression) {
	n.recordSuppressed(r, x, s)
	n.suppress(r.in, s)
}

// due reports whether the flow's sender was not notified within the minimum interval (draft-tian 5.5), by this worker or by another one
// that received packets of the flow.
func (n *notifier) due(p *PortPolicy, x flowtable.Index, a *account.Flow) bool {
	return p.PerFlow.Ready(a.LastNotified.Load(), n.now) && (len(n.peers) == 1 || n.dueElsewhere(p, x))
}

// dueElsewhere is due for the other workers.
func (n *notifier) dueElsewhere(p *PortPolicy, x flowtable.Index) bool {
	for _, other := range n.peers {
		if other.id == n.id {
			continue
		}
		y, state, found := other.flows.Find(n.flows.Key(x))
		if found && !p.PerFlow.Ready(other.accounts.LastNotifiedOf(y, state.Generation()), n.now) {
			return false
		}
	}
	return true
}

// admit reports whether a notification can be queued at the flow's ingress port, and the limits of the destination and the port allow it.
// If they do, it takes a token of each.
func (n *notifier) admit(m *note) Suppression {
	c := n.common
	if reason := n.canQueue(m.queue); reason != allowed {
		return reason
	}
	if c.policy.PerDestination.Off() && c.policy.PerProxy.Off() && c.policy.PerPort.Off() {
		return allowed
	}
	each, host := n.limitOf(m)
	if !each.Off() {
		if reason := limitReason(n.limits.toDestination.Allow(each, host, c.now)); reason != allowed {
			return reason
		}
	}
	if !c.policy.PerPort.Off() && !c.policy.PerPort.Allow(&n.limits.toPort[m.in], c.now) {
		n.limits.toDestination.Refund(each, host)
		return PortLimit
	}
	return allowed
}

// emit builds a notification that was admitted in a spare buffer, and queues it, ahead of data, at the flow's ingress port. In observe mode
// it is only counted.
func (n *notifier) emit(m *note) Suppression {
	c := n.common
	spare := &c.batch.Spare[len(c.batch.Spare)-1]
	out := c.batch.Bytes(*spare)
	size := n.build(m, out)
	if size == 0 {
		return NotBuilt
	}
	if m.cause != 0 {
		c.counters.add(int(m.in), TriggeredFirst+Counter(m.cause.First()), 1)
	}
	m.observed = c.policy.observes(int(m.out), m.format)
	if m.observed {
		c.counters.add(int(m.in), ObservedFirst+Counter(m.format), 1)
		n.recordSent(m, out[:size], Observed)
		return allowed
	}
	n.recordSent(m, out[:size], Emitted)
	c.push(m.queue, size, flowtable.Index(m.format))
	m.account.Notified[m.format]++
	return allowed
}

// limitOf is the limit of a notification's destination. A proxy counts once for each scope of its senders: those of a tenant must not use
// up the notifications about another tenant's.
func (n *notifier) limitOf(m *note) (each ratelimit.Rate, host packet.Host) {
	each = n.policy.PerDestination
	if m.format == packet.ProxyNotification {
		each = n.policy.PerProxy
	}
	return each, packet.Host{Addr: m.to, Scope: n.flows.Key(m.flow).Scope()}
}

// limited returns why admit would refuse a notification, without taking a token.
func (n *notifier) limited(m *note) Suppression {
	if reason := n.canQueue(m.queue); reason != allowed {
		return reason
	}
	each, host := n.limitOf(m)
	if reason := limitReason(n.limits.toDestination.Check(each, host, n.now)); reason != allowed {
		return reason
	}
	if n.policy.PerPort.Reached(&n.limits.toPort[m.in], n.now) {
		return PortLimit
	}
	return allowed
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
