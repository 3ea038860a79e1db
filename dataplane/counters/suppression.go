package counters

import "github.com/cnpgate/cnpgate/congestion"

// Suppression is why a sender was not notified of congestion. The first ones are congestion's reasons.
type Suppression uint8

// The worker's own reasons.
const (
	Allowed     = Suppression(congestion.OK)
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
	SuppressionsEnd
)

// Suppressions is the number of reasons; they are 1 to Suppressions.
const Suppressions = SuppressionsEnd - 1

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

// Restrained returns the suppression for the congestion.Restraint of a sender that a notification has reached, or not.
func Restrained(r congestion.Restraint, reached bool) Suppression {
	switch {
	case r == congestion.Draining:
		return Draining
	case reached:
		return SlowingDown
	}
	return AlreadySlower
}

// Outcome says what became of a notification.
type Outcome uint8

const (
	Emitted    Outcome = iota // it was put into the queue of the port that it leaves by
	Observed                  // it was built and not sent, as the policy only observes
	Suppressed                // it was not sent, for Reason
)

// Outcomes is the number of outcomes.
const Outcomes = 3

// String is the outcome's name in the API.
func (o Outcome) String() string {
	return [...]string{"sent", "observed", "suppressed", "unknown"}[min(o, Outcomes)]
}
