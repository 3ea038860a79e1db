// Package notify sends notifications: it chooses recipient and kind, applies the limits, builds, queues, counts and records. It keeps the
// senders that were notified, for their Resume. Who decides that a sender is to be notified, and of what, is package respond.
package notify

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/dataplane/frames"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/dataplane/pacing"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/store"
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
	refusals  *host.Refusals
	extension cnpgen.Extension // of request
	head      [store.PathLen]byte

	Sent, Suppressed History
	suppressedNext   [counters.SuppressionsEnd]int64 // ns, the time from which on a suppressed notification is recorded again
}

// New makes a worker's notifier. allocate returns zeroed memory, 8-byte aligned.
func New(s *stage.State, l *Limits, allocate func(bytes int) ([]byte, error)) (*Notifier, error) {
	n := &Notifier{State: s, limits: l, refusals: &s.Host.Refusals}
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

// Destinations is the number of senders whose limits count now, ns, and how many there are places for. Any goroutine may call it.
func (l *Limits) Destinations(now int64) (used, size int) { return l.toDestination.Used(now) }

// Note is a notification to be sent.
type Note struct {
	Message
	Flow     flowtable.Index
	Observed bool // it is only counted

	// Of the queue that it is about, see About.
	state     *stage.QueueState
	Queue     *egress.Ring     // of notifications at its egress port
	triggered counters.Counter // of the cause
	observes  bool             // notifications are only counted
	unlimited bool             // no limit is set

	sourceQP uint32         // of the flow, if the format names it
	frame    []byte         // the data packet; nil for a Resume, and for a plain frame, unless the format carries it
	packet   *packet.Parsed // its headers
}

// Queue is a class of a port's queue that notifications are about, for the frames of one port. State: Arrived's where no queue here is the cause.
type Queue struct {
	In, Out, Class int
	State          *stage.QueueState
	Cause          congestion.Cause
}

// About sets what all notifications about a queue have in common, until the next call.
func (n *Notifier) About(r *Queue) {
	m := &n.Note
	m.Raised = false
	m.In, m.Out, m.Class, m.state, m.Cause = uint8(r.In), uint8(r.Out), uint8(r.Class), r.State, r.Cause
	m.Queue = &n.Egress[r.In].Notifications
	m.triggered = counters.TriggeredFirst + counters.Counter(r.Cause.First())
	m.observes = n.Policy.ObservesAt(r.Out)
	m.unlimited = n.Policy.PerDestination.Off() && n.Policy.PerProxy.Off() && n.Policy.PerPort.Off()
	n.request.Port, n.request.RTT = uint16(r.Out), n.Policy.Ports[r.Out].RTT
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
	if c.Policy.Proxies != nil && m.Cause != congestion.ByProxy {
		if to, behind := n.proxyOf(k.Src); behind {
			m.Format, m.To = packet.ProxyNotification, to
			return counters.Suppression(c.Policy.Who.ToProxy(k.Src, to, m.Decision.Action))
		}
	}
	if k.Encapsulated() { // without the other direction's labels a notification could reach another tenant's host, or none
		if c.Learner.Back(x, &n.head) == 0 {
			return counters.Encapsulated
		}
	}
	m.To = k.Src
	refused := n.refusals.Has(pacing.SenderOf(k), c.Now)
	format, reason := c.Policy.Who.Choose(&n.recent, &k.Src, answer.Usable(), refused, m.Decision.Action)
	m.Format = format
	return counters.Suppression(reason)
}

// proxyOf returns the proxy that is notified instead of a sender, if it has one that isn't the gateway.
func (n *Notifier) proxyOf(sender packet.Addr) (to packet.Addr, behind bool) {
	if to, behind = n.Policy.Proxies.Lookup(sender); behind {
		behind = !n.Policy.Owns(to)
	}
	return to, behind
}
