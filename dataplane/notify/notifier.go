// Package notify sends notifications: it chooses recipient and kind, applies the limits, builds, queues, counts and records. It keeps the
// senders that were notified, for their Resume. Who decides that a sender is to be notified, and of what, is package respond.
package notify

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/dataplane/frames"
	"github.com/cnpgate/cnpgate/dataplane/pacing"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// QpUnknown is that the sender's QP isn't known, or not yet.
const QpUnknown = counters.Suppression(congestion.SourceQPUnknown)

// Notifier sends a worker's notifications: it chooses recipient and kind, applies the limits, builds, queues, counts and records. Those who
// decide that a sender is to be notified set note.decision, and call ask.
type Notifier struct {
	*stage.State
	Note      Note              // the one that is being sent
	Target    cnpgen.Target     // of note, if its sender gets no Resume
	recent    congestion.Recent // of choices of a format
	request   cnpgen.Request    // of note
	limits    *Limits
	extension cnpgen.Extension // of request

	Sent, Suppressed History
	suppressedNext   [counters.SuppressionsEnd]int64 // ns, the time from which on a suppressed notification is recorded again
}

// New makes a worker's notifier. allocate returns zeroed memory, 8-byte aligned.
func New(s *stage.State, l *Limits, allocate func(bytes int) ([]byte, error)) (*Notifier, error) {
	n := &Notifier{State: s, limits: l}
	memory, err := allocate(historySize(historyRecords))
	if err != nil {
		return nil, err
	}
	n.Sent = newHistory(memory, historyRecords)
	if memory, err = allocate(historySize(suppressedRecords)); err != nil {
		return nil, err
	}
	n.Suppressed = newHistory(memory, suppressedRecords)
	return n, nil
}

// Limits are those of all workers' notifications.
type Limits struct {
	toPort        []atomic.Int64 // by port
	toDestination *ratelimit.Destinations
}

// destinations is the number of senders whose limits are kept at once.
const destinations = 65536

// NewLimits makes the limits of a dataplane with this number of ports.
func NewLimits(ports int, seed uint64, allocate func(bytes int) ([]byte, error)) (*Limits, error) {
	memory, err := allocate(ratelimit.Size(destinations))
	if err != nil {
		return nil, err
	}
	l := &Limits{toPort: make([]atomic.Int64, ports)}
	l.toDestination, err = ratelimit.New(memory, destinations, seed)
	return l, err
}

// Note is a notification to be sent.
type Note struct {
	// Of the queue that it is about, see about.
	In, Out uint8            // its egress port, which is the flow's ingress port; and the congested port
	Class   uint8            // of the congested queue, and its state
	Cause   congestion.Cause // 0 for a Resume
	state   *stage.QueueState
	Queue   *egress.Ring // of notifications at its egress port

	Format              packet.Notification
	Observed            bool        // it is only counted
	Raised              bool        // as in NotificationRecord
	To                  packet.Addr // the sender, or its proxy
	Flow                flowtable.Index
	account             *account.Flow // of the flow
	Decision            congestion.Decision
	FlowBytes, FlowRate uint64         // as in NotificationRecord
	sourceQP            uint32         // of the flow, if the format names it
	frame               []byte         // the data packet; nil for a Resume, and for a plain frame, unless the format carries it
	packet              *packet.Parsed // its headers
}

// Queue is a class of a port's queue that notifications are about, for the frames of one port.
type Queue struct {
	In, Out, Class int
	Policy         *stage.PortPolicy
	State          *stage.QueueState
	Metrics        congestion.Metrics
	Cause          congestion.Cause
}

// About sets what all notifications about a queue have in common, until the next call.
func (n *Notifier) About(r *Queue) {
	m := &n.Note
	m.Raised = false
	m.In, m.Out, m.Class, m.state, m.Cause = uint8(r.In), uint8(r.Out), uint8(r.Class), r.State, r.Cause
	m.Queue = &n.Egress[r.In].Notifications
	n.request.Port, n.request.RTT = uint16(r.Out), n.Policy.Ports[r.Out].RTT
}

// Ask notifies the sender of a packet with the decision in the note, or counts why not. a is the account of the packet's flow.
func (n *Notifier) Ask(r *Queue, b *frames.Batch, i int, a *account.Flow, target *cnpgen.Target) bool {
	if reason := n.Choose(b, i); reason != counters.Allowed {
		n.SuppressFlow(r, b.Flow[i].Index, reason)
		return false
	}
	return n.AskChosen(r, b, i, a, target)
}

// AskChosen is ask where choose has chosen the recipient.
func (n *Notifier) AskChosen(r *Queue, b *frames.Batch, i int, a *account.Flow, target *cnpgen.Target) bool {
	reason := n.Send(b, i, a, target)
	if reason != counters.Allowed {
		n.SuppressFlow(r, b.Flow[i].Index, reason)
	}
	return reason == counters.Allowed
}

// Choose chooses the recipient of the decision in the note, which is about a queue, and the format: the proxy of the sender of a data
// packet, if it has one, otherwise the sender itself, in the format that its endpoint prefers. Or it says why neither may be notified. A
// proxy at the gateway's own address is the gateway: it notifies the sender itself, and so does the proxy that another gateway has asked:
// two proxies never notify each other.
func (n *Notifier) Choose(b *frames.Batch, i int) counters.Suppression {
	return n.ChooseFor(&n.Note, b.Flow[i].Index, flowtable.KeyOf(&b.Records[i]), b.ToGroup(i))
}

// ChooseFor is choose for a packet of a flow; group: the packet goes to a group's MAC address.
func (n *Notifier) ChooseFor(m *Note, x flowtable.Index, k *flowtable.Key, group bool) counters.Suppression {
	c := n.State
	answer := c.Learner.Answer(x, c.Flows.State(x).Answer())
	m.sourceQP = answer.SourceQP()
	if c.Policy.Drain && m.Decision.Action != congestion.Resume {
		return counters.Stopping
	}
	if answer.Usable() && m.sourceQP < packet.ManagementQPs {
		return counters.ManagementQP
	}
	// The packet must go to one station and one host: a notification has its destination MAC address as its source, and a standard CNP the
	// destination IP address, too. Neither may be a group's (IEEE 802.3 3.2.3, RFC 1122 3.2.1.3). What is in a tunnel has no part in that.
	if group || !k.Encapsulated() && !k.Dst.Unicast() {
		return counters.Suppression(congestion.NotUnicast)
	}
	if to, behind := c.Policy.Proxies.Lookup(k.Src); behind && m.Cause != congestion.ByProxy && !c.Policy.Owns(to) {
		m.Format, m.To = packet.ProxyNotification, to
		return counters.Suppression(c.Policy.Who.ToProxy(k.Src, to, m.Decision.Action))
	}
	if k.Encapsulated() { // a plain notification could reach another tenant's host, or none
		return counters.Encapsulated
	}
	m.To = k.Src
	refused := c.Host.Refusals.Has(pacing.SenderOf(k), c.Now)
	format, reason := c.Policy.Who.ChooseWith(&n.recent, &k.Src, answer.Usable(), refused, m.Decision.Action)
	m.Format = format
	return counters.Suppression(reason)
}

// Send sends the decision in the note to the recipient that choose has chosen, or says why it can't. It writes the target once nothing but
// the building of the notification can fail.
func (n *Notifier) Send(b *frames.Batch, i int, a *account.Flow, target *cnpgen.Target) counters.Suppression {
	c := n.State
	m := &n.Note
	m.Flow, m.account, n.request.Target = b.Flow[i].Index, a, target
	if reason := n.admit(m); reason != counters.Allowed {
		return reason
	}
	if b.Whole>>i&1 == 0 && m.Format != packet.ProxyNotification {
		if m.packet != nil {
			m.frame, m.packet = nil, nil
		}
		target.SetPlain(b.Data(i), &b.Records[i])
	} else if !n.setTarget(m, b, i) {
		return counters.NotBuilt
	}
	if reason := n.emit(m); reason != counters.Allowed {
		return reason
	}
	// If only Fast CNP is observed, the packet is really marked.
	if m.Format == packet.FastCNP && (!m.Observed || c.Policy.ObservesAt(int(m.Out))) {
		b.ByFastCNP |= 1 << i
	}
	return counters.Allowed
}

// setTarget sets the target of a notification about a data packet, and gives it the packet with all its headers. Those of a plain frame are
// needed only if the notification carries them.
func (n *Notifier) setTarget(m *Note, b *frames.Batch, i int) (ok bool) {
	m.frame, m.packet = b.Data(i), b.Headers(i)
	if m.Format == packet.ProxyNotification {
		n.request.Target = &n.Target // no Resume follows, which would need the sender's own
	}
	*n.request.Target, ok = cnpgen.TargetOf(m.frame, m.packet)
	return ok
}

// SuppressFlow is suppress for a flow whose sender was to be notified of congestion.
func (n *Notifier) SuppressFlow(r *Queue, x flowtable.Index, s counters.Suppression) {
	n.recordSuppressed(r, x, s)
	n.Suppress(r.In, s)
}

// Due reports whether the flow's sender was not notified within the minimum interval (draft-tian 5.5), by this worker or by another one
// that received packets of the flow.
func (n *Notifier) Due(p *stage.PortPolicy, x flowtable.Index, a *account.Flow) bool {
	return p.PerFlow.Ready(a.LastNotified.Load(), n.Now) && (len(n.Peers) == 1 || n.dueElsewhere(p, x))
}

// dueElsewhere is due for the other workers.
func (n *Notifier) dueElsewhere(p *stage.PortPolicy, x flowtable.Index) bool {
	for _, other := range n.Peers {
		if other.ID == n.ID {
			continue
		}
		y, state, found := other.Flows.Find(n.Flows.Key(x))
		if found && !p.PerFlow.Ready(other.Accounts.LastNotifiedOf(y, state.Generation()), n.Now) {
			return false
		}
	}
	return true
}

// admit reports whether a notification can be queued at the flow's ingress port, and the limits of the destination and the port allow it.
// If they do, it takes a token of each.
func (n *Notifier) admit(m *Note) counters.Suppression {
	c := n.State
	if reason := n.CanQueue(m.Queue); reason != counters.Allowed {
		return reason
	}
	if c.Policy.PerDestination.Off() && c.Policy.PerProxy.Off() && c.Policy.PerPort.Off() {
		return counters.Allowed
	}
	each, host := n.limitOf(m)
	if !each.Off() {
		if reason := limitReason(n.limits.toDestination.Allow(each, host, c.Now)); reason != counters.Allowed {
			return reason
		}
	}
	if !c.Policy.PerPort.Off() && !c.Policy.PerPort.Allow(&n.limits.toPort[m.In], c.Now) {
		n.limits.toDestination.Refund(each, host)
		return counters.PortLimit
	}
	return counters.Allowed
}

// emit builds a notification that was admitted in a spare buffer, and queues it, ahead of data, at the flow's ingress port. In observe mode
// it is only counted.
func (n *Notifier) emit(m *Note) counters.Suppression {
	c := n.State
	spare := &c.IO.Spare[len(c.IO.Spare)-1]
	out := c.IO.Bytes(*spare)
	size := n.build(m, out)
	if size == 0 {
		return counters.NotBuilt
	}
	if m.Cause != 0 {
		c.Counters.Add(int(m.In), counters.TriggeredFirst+counters.Counter(m.Cause.First()), 1)
	}
	m.Observed = c.Policy.Observes(int(m.Out), m.Format)
	if m.Observed {
		c.Counters.Add(int(m.In), counters.ObservedFirst+counters.Counter(m.Format), 1)
		n.recordSent(m, out[:size], counters.Observed)
		return counters.Allowed
	}
	n.recordSent(m, out[:size], counters.Emitted)
	c.Push(m.Queue, size, flowtable.Index(m.Format))
	m.account.Notified[m.Format]++
	return counters.Allowed
}

// limitOf is the limit of a notification's destination. A proxy counts once for each scope of its senders: those of a tenant must not use
// up the notifications about another tenant's.
func (n *Notifier) limitOf(m *Note) (each ratelimit.Rate, host packet.Host) {
	each = n.Policy.PerDestination
	if m.Format == packet.ProxyNotification {
		each = n.Policy.PerProxy
	}
	return each, packet.Host{Addr: m.To, Scope: n.Flows.Key(m.Flow).Scope()}
}

// Limited returns why admit would refuse a notification, without taking a token.
func (n *Notifier) Limited(m *Note) counters.Suppression {
	if reason := n.CanQueue(m.Queue); reason != counters.Allowed {
		return reason
	}
	each, host := n.limitOf(m)
	if reason := limitReason(n.limits.toDestination.Check(each, host, n.Now)); reason != counters.Allowed {
		return reason
	}
	if n.Policy.PerPort.Reached(&n.limits.toPort[m.In], n.Now) {
		return counters.PortLimit
	}
	return counters.Allowed
}

// limitReason is the suppression for a destination's verdict.
func limitReason(v ratelimit.Verdict) counters.Suppression {
	switch v {
	case ratelimit.Limited:
		return counters.DestinationLimit
	case ratelimit.Busy:
		return counters.DestinationsFull
	}
	return counters.Allowed
}
