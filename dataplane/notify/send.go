package notify

import (
	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/frames"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/ratelimit"
)

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

// Send sends the decision in the note to the recipient that choose has chosen, or says why it can't. It writes the target once nothing but
// the building of the notification can fail.
func (n *Notifier) Send(b *frames.Batch, i int, a *account.Flow, target *cnpgen.Target) counters.Suppression {
	m := &n.Note
	m.Flow, n.request.Target = b.Flow[i].Index, target
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
	if reason := n.emit(m, a); reason != counters.Allowed {
		return reason
	}
	// If only Fast CNP is observed, the packet is really marked.
	if m.Format == packet.FastCNP && (!m.Observed || m.observes) {
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
	target := n.request.Target
	*target, ok = cnpgen.TargetOf(m.frame, m.packet)
	if target.Encapsulated && m.Format != packet.ProxyNotification { // direct replaces the Ethernet header
		target.Encapsulated, target.Tags = false, 0
	}
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
	if m.unlimited {
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
func (n *Notifier) emit(m *Note, a *account.Flow) counters.Suppression {
	c := n.State
	spare := &c.IO.Spare[len(c.IO.Spare)-1]
	out := c.IO.Bytes(*spare)
	size := n.build(m, out)
	if size == 0 {
		return counters.NotBuilt
	}
	if m.Cause != 0 {
		c.Counters.Add(int(m.In), m.triggered, 1)
	}
	a.Notified[m.Format]++
	m.Observed = m.observes || c.Policy.ObserveKind[m.Format]
	if m.Observed {
		c.Counters.Add(int(m.In), counters.ObservedFirst+counters.Counter(m.Format), 1)
		n.recordSent(m, a, out[:size], counters.Observed)
		return counters.Allowed
	}
	n.recordSent(m, a, out[:size], counters.Emitted)
	c.Push(m.Queue, size, flowtable.Index(m.Format))
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
	if !n.Policy.PerPort.Check(&n.limits.toPort[m.In], n.Now) {
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

// build writes a notification to out and returns its length in bytes, 0 if it can't be built.
func (n *Notifier) build(m *Note, out []byte) int {
	r, policy := &n.request, n.Policy
	if m.Format != packet.FastCNP { // it carries nothing of it
		m.Decision.Content(&r.LongHaul)
		r.SourceQP = m.sourceQP
	}
	if m.packet != nil || r.Packet != nil {
		r.Frame, r.Packet, r.To = m.frame, m.packet, m.To
	}
	if extension := policy.Extension; extension != r.Extension || extension != nil {
		r.Extension = n.timed(extension)
	}
	size := cnpgen.Build(out, m.Format, &policy.Build, r)
	if size != 0 && r.Trace == cnpgen.TraceTooLong {
		n.Counters.Add(int(m.In), counters.FastCNPTraceTooLong, 1)
	}
	if size != 0 && n.Learner.Apart(m.Flow) && m.Format != packet.ProxyNotification {
		return n.direct(m, out, size)
	}
	return size
}

// direct gives a notification to a sender what frames of the other direction have before their IP header. It returns the frame's length, 0 if
// that isn't known.
func (n *Notifier) direct(m *Note, out []byte, size int) int {
	length := n.Learner.Back(m.Flow, &n.head)
	l3 := packet.EthernetLen + packet.VLANTagLen*int(n.request.Target.Tags)
	if length == 0 || length+size-l3 > len(out) {
		return 0
	}
	copy(out[length:], out[l3:size])
	copy(out, n.head[:length])
	return length + size - l3
}

// timed returns the Extension Objects of a Long-haul CNP that is sent now.
func (n *Notifier) timed(extension *cnpgen.Extension) *cnpgen.Extension {
	if extension == nil || !n.Policy.Timestamp {
		return extension
	}
	n.extension = *extension
	n.extension.Timestamp = packet.NTPTime(n.UnixTime())
	return &n.extension
}
