package dataplane

import (
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// init makes the lists of what was sent and suppressed.
func (n *notifier) init(c *Config) error {
	memory, err := c.Allocate(historySize(historyRecords))
	if err != nil {
		return err
	}
	n.sent = newHistory(memory, historyRecords)
	if memory, err = c.Allocate(historySize(suppressedRecords)); err != nil {
		return err
	}
	n.suppressed = newHistory(memory, suppressedRecords)
	return nil
}

// recordSent keeps what was sent, or is only observed, with its frame.
func (n *notifier) recordSent(m *note, frame []byte, o Outcome) {
	c := n.common
	if c.trace != nil {
		c.trace.sent(c.inHand, m, o)
	}
	r := n.sent.record()
	if r == nil {
		return
	}
	r.Decision, r.Format, r.To, r.Outcome, r.Reason = m.decision, m.format, m.to, o, allowed
	r.FlowBytes, r.FlowRate, r.Length = m.flowBytes, m.flowRate, uint16(len(frame))
	copy(r.Frame[:], frame)
	r.In, r.Out, r.Class, r.Cause, r.Raised = m.in, m.out, m.class, m.cause, m.raised
	n.recordState(r, m.flow, m.account, m.state)
}

// recordSuppressed keeps that the sender of a flow, which has an account, was not notified, unless a record of the same reason was made
// lately.
func (n *notifier) recordSuppressed(r *response, x flowtable.Index, s Suppression) {
	if x == flowtable.None || n.now < n.suppressedNext[s] {
		return
	}
	n.suppressedNext[s] = n.now + suppressedInterval
	to := n.suppressed.record()
	if to == nil {
		return
	}
	to.Decision, to.Format, to.To, to.Outcome, to.Reason = congestion.Decision{}, 0, packet.Addr{}, Suppressed, s
	to.FlowBytes, to.FlowRate, to.Length = n.learner.Bytes(x), 0, 0
	to.In, to.Out, to.Class, to.Cause, to.Raised = uint8(r.in), uint8(r.out), uint8(r.class), r.cause, false
	n.recordState(to, x, n.accounts.Known(x), r.state)
}

// recordState notes the time, the flow, and the state of the queue.
func (n *notifier) recordState(r *recordSlot, x flowtable.Index, a *account.Flow, q *classState) {
	c := n.common
	r.Time = c.now + c.plane.wallClock.Load()
	state := c.flows.State(x)
	r.Key, r.Flow, r.QP = *c.flows.Key(x), flowtable.Ref{Index: x, Generation: state.Generation()}, c.learner.Answer(x, state.Answer())
	r.Metrics, r.Threshold, r.Queued = q.metrics, q.threshold, uint64(c.accounts.Share(x, a, r.Class).Queued)
}

// arrived is the state of the queue for a notification about a packet that arrived with CE: it says nothing about a queue here.
var arrived classState

// Suppression is why a sender was not notified of congestion above K_max. The first ones are congestion's reasons.
type Suppression uint8

// The worker's own reasons.
const (
	allowed     = Suppression(congestion.OK)
	FlowUnknown = Suppression(congestion.Reasons) + iota - 1 // the flow table was full of flows that must not be evicted
	LargestNotRoCE
	ManagementQP
	FlowLimit
	DestinationLimit
	DestinationsFull
	PortLimit
	NoBuffer
	NotificationQueueFull
	NotBuilt
	NotSent       // its egress port dropped it
	SlowingDown   // its flow's arrival rate fell, see congestion.SlowingDown
	Draining      // it was notified, and the queue has shrunk since
	AlreadySlower // its flow's arrival rate fell, and no notification was sent to it
	Shutdown
	ProxyFlowSilent   // a congested node asked for it, and no data packet of the flow followed
	ProxyRepeated     // a congested node asked for it again before a data packet of the flow followed
	ProxyRequestsFull // a congested node asked for it, and too many other requests were waiting
	Encapsulated      // its flow is in a tunnel, and no proxy is known for it
	Stopping          // the gateway is to stop, see Policy.Drain
	NotifiedElsewhere // another gateway of the fleet has just notified it
	suppressionsEnd
)

// Suppressions is the number of reasons; they are 1 to Suppressions.
const Suppressions = suppressionsEnd - 1

var suppressionNames = [...]string{"flow-unknown", "largest-not-roce", "management-qp", "flow-limit", "destination-limit",
	"destinations-full", "port-limit", "no-buffer", "notification-queue-full", "not-built", "not-sent",
	"slowing-down", "draining", "already-slower", "shutdown",
	"proxy-flow-silent", "proxy-repeated", "proxy-requests-full", "encapsulated", "stopping", "notified-elsewhere"}

// String returns the name in reports and metrics.
func (s Suppression) String() string {
	if s < Suppression(congestion.Reasons) {
		return congestion.Reason(s).String()
	}
	return suppressionNames[s-Suppression(congestion.Reasons)]
}

// restrained returns the suppression for the congestion.Restraint of a sender that a notification has reached, or not.
func restrained(r congestion.Restraint, reached bool) Suppression {
	switch {
	case r == congestion.Draining:
		return Draining
	case reached:
		return SlowingDown
	}
	return AlreadySlower
}
