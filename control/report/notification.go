package report

import (
	"cmp"
	"fmt"
	"net/netip"
	"time"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/units"
)

// Notification is a notification that the gateway sent, or one that it suppressed and why.
type Notification struct {
	Time    time.Time `json:"time" doc:"When it happened, RFC 3339." column:"TIME,Time,clock"`
	Worker  int       `json:"worker" doc:"Number of the worker, from 0."`
	Number  uint64    `json:"number" doc:"Number of the notification at its worker."`
	Outcome string    `json:"outcome" doc:"Result of a notification: sent, observed or suppressed." column:",Outcome,outcome"`
	Reason  string    `json:"reason,omitempty" doc:"Why the notification was suppressed."`
	Why     string    `json:"why" doc:"Why the sender was notified, as text." column:"WHY,Why,long"`
	Port    string    `json:"port" column:"PORT,,,4"` // with the congested queue
	Class   string    `json:"class" column:"CLASS,Queue,queue,3"`
	SentBy  string    `json:"sent_by" doc:"Egress port of the notification."`

	Kind      string `json:"kind,omitempty" doc:"Kind of the notification." column:"KIND,Kind,,5"` // the next four only where it wasn't suppressed
	Action    string `json:"action,omitempty" doc:"What the notification asks for." column:"ACTION,Asks for,asks,6"`
	Parameter uint16 `json:"parameter,omitempty" doc:"Parameter of the action: percent of rate-reduce, microseconds of pause."` // rate-reduce: percent; pause: microseconds; resume: percent of the reduction
	Level     uint8  `json:"level" doc:"Congestion Level of the notification, 0 to 255." column:"LEVEL,,count,1"`

	Proxy string `json:"proxy,omitempty" doc:"Proxy that was notified in place of the sender."`

	SourceIP      netip.Addr `json:"source_ip" column:"SOURCE,Sender,host"` // of the flow: the sender that is notified
	DestinationIP netip.Addr `json:"destination_ip" column:"DESTINATION,Receiver,host"`
	SourceQP      *uint32    `json:"source_qp" column:"SOURCE_QP,QP,qp"` // null unless it is confirmed
	DestinationQP uint32     `json:"destination_qp" column:"DESTINATION_QP,QP,id"`
	QPState       string     `json:"qp_state"`
	QPEvidence    *string    `json:"qp_evidence" doc:"Evidence for the source QP." column:"EVIDENCE,,,2"`
	VLAN          []uint16   `json:"vlan,omitempty" column:",VLAN or tunnel,place"`
	Tunnel        string     `json:"tunnel,omitempty"`    // as in Flow
	TunnelID      uint32     `json:"tunnel_id,omitempty"` // as in Flow
	FlowBytes     uint64     `json:"flow_bytes" doc:"Bytes of the flow that have arrived so far."`
	FlowQueued    uint64     `json:"flow_queued_bytes" doc:"Queued bytes of the flow when its sender was notified."`
	FlowRate      *uint64    `json:"flow_rate_bps" doc:"Rate of the flow when its sender was notified, over 10 to 200 ms; null if it was not measured." column:",Flow's rate,rate"`
	FairRate      *uint64    `json:"fair_rate_bps,omitempty" doc:"Rate that the law allowed the flow."`
	Trigger       string     `json:"trigger,omitempty" doc:"Cause of a notification."` // depth, marking, growth, ce-on-arrival or proxy; none of a Resume
	Raised        bool       `json:"level_raised,omitempty" doc:"Whether the level is above that for the queue's state alone, as the queue has grown since an earlier request."`
	Threshold     uint64     `json:"threshold" doc:"Threshold of the trigger: bytes, millionths of the packets, or bytes per millisecond."`
	DepthBytes    uint64     `json:"queue_depth_bytes" column:",Depth,bytes"` // of the queue
	Growth        int64      `json:"growth_bytes_per_millisecond" doc:"How fast the queue grows."`
	Marking       float64    `json:"marking_percent" doc:"Percentage of packets that were marked."`

	Length int    `json:"length,omitempty" doc:"Bytes of the notification."`
	Frame  []byte `json:"frame,omitempty" doc:"Bytes of the notification, base64."`
}

// MakeNotification describes a record of a worker. It includes the frame only if that is wanted.
func MakeNotification(c *config.Config, worker int, r *notify.NotificationRecord, frame bool) Notification {
	out, flow := &c.Ports[r.Out], Flow{}
	flow.setPlace(&r.Key)
	n := Notification{
		Time: unix(r.Time), Worker: worker, Number: r.Number, Outcome: r.Outcome.String(),
		Port: out.Name, Class: out.ClassNames[r.Class], SentBy: c.Ports[r.In].Name, Level: r.Decision.Level,
		SourceIP: r.Key.Src.Netip(), DestinationIP: r.Key.Dst.Netip(), DestinationQP: r.Key.DestQP, QPState: r.QP.State().String(), SourceQP: confirmed(r.QP), QPEvidence: evidence(r.QP), VLAN: flow.VLAN,
		Tunnel: flow.Tunnel, TunnelID: flow.TunnelID,
		FlowBytes: r.FlowBytes, FlowQueued: r.Queued, Raised: r.Raised, Threshold: r.Threshold, DepthBytes: r.Metrics.Depth, Growth: r.Metrics.Growth,
		Marking: float64(r.Metrics.Marking) / millionthsPerPercent, Length: int(r.Length),
	}
	if r.Outcome == counters.Suppressed {
		n.Reason = r.Reason.String()
	} else {
		n.Kind, n.Action, n.Parameter = r.Format.String(), r.Decision.Action.String(), r.Decision.Parameter
		if r.Format == packet.ProxyNotification {
			n.Proxy = r.To.Netip().String()
		}
	}
	if r.FlowRate > 0 {
		rate := ofPort(c, int(r.In), r.FlowRate*bitsPerSecond)
		n.FlowRate = &rate
	}
	if r.FairRate > 0 {
		fair := r.FairRate * bitsPerSecond
		n.FairRate = &fair
	}
	if r.Cause != 0 {
		n.Trigger = congestion.CauseName(r.Cause.First())
	}
	if n.Threshold == 0 && out.Policy.Law.On() && n.Trigger == congestion.CauseName(congestion.ByDepth.First()) {
		n.Threshold = uint64(out.Policy.Law.NotifiesAbove()) // the worker doesn't record it
	}
	if frame {
		n.Frame = r.Captured()
	}
	n.Why = n.why()
	return n
}

const (
	millionthsPerPercent = 1e4
	bitsPerSecond        = 8 * 1000 // of a byte per millisecond
)

// ofPort bounds the rate (bit/s) at which a flow arrives at a port by the port's: what waits while a worker is kept from its core comes to it at once.
func ofPort(c *config.Config, port int, rate uint64) uint64 {
	return min(rate, cmp.Or(c.Ports[port].Rate, rate))
}

// why describes the cause of the notification, the flow's share of it, and the outcome.
func (n *Notification) why() string {
	queue := "queue " + n.Port + "/" + n.Class
	var text string
	switch n.Trigger {
	case "ce-on-arrival":
		return "a packet of the flow arrived at " + n.SentBy + " with CE" + n.held()
	case "proxy":
		return "another gateway asked this one, a proxy, to notify the sender" + n.held()
	case "":
		return fmt.Sprintf("%s has stayed below %s; it holds %s", queue, units.Size(n.Threshold), units.Size(n.DepthBytes)) + n.held()
	case "depth":
		text = fmt.Sprintf("%s holds %s; senders are notified above %s", queue, units.Size(n.DepthBytes), units.Size(n.Threshold))
	case "marking":
		text = fmt.Sprintf("%g %% of the packets into %s were marked; the threshold is %g %%", n.Marking, queue, float64(n.Threshold)/millionthsPerPercent)
	case "growth":
		text = fmt.Sprintf("%s grew by %s; the threshold is %s", queue, units.Rate(bitsPerSecond*n.Growth), units.Rate(bitsPerSecond*n.Threshold))
	}
	switch {
	case n.FairRate != nil && n.FlowRate != nil:
		text = fmt.Sprintf("%s; the flow arrives at %s, its fair rate is %s", text, units.Rate(*n.FlowRate), units.Rate(*n.FairRate))
	case n.FlowQueued > 0:
		text = fmt.Sprintf("%s; the flow has %s in it", text, units.Size(n.FlowQueued))
	}
	if n.Raised {
		text += "; level raised, as the queue has grown since an earlier request"
	}
	return text + n.held()
}

// held describes why nobody was notified, or that it was the sender's proxy; "" if it was the sender.
func (n *Notification) held() string {
	switch n.Outcome {
	case counters.Suppressed.String():
		return "; not sent: " + n.Reason
	case counters.Observed.String():
		return "; not sent: observe mode"
	}
	if n.Proxy != "" {
		return "; to the sender's proxy " + n.Proxy
	}
	return ""
}

// Comment is the notification's comment in a capture.
func (n *Notification) Comment() string {
	qp := "not confirmed"
	if n.SourceQP != nil {
		qp = fmt.Sprint(*n.SourceQP)
	}
	evidence := "none"
	if n.QPEvidence != nil {
		evidence = *n.QPEvidence
	}
	return fmt.Sprintf("%s: %s. Flow %v to %v, destination QP %d, source QP %s (evidence: %s). Congestion Level %d.",
		n.Kind+" "+n.Asks(), n.Why, n.SourceIP, n.DestinationIP, n.DestinationQP, qp, evidence, n.Level)
}

// Asks is what the notification asks for: the action with its parameter.
func (n *Notification) Asks() string { return asks(n.Action, n.Parameter) }

// asks is an action with its parameter.
func asks(action string, parameter uint16) string {
	switch {
	case action == congestion.RateReduce.String():
		return fmt.Sprintf("%s %d %%", action, parameter)
	case action == congestion.Pause.String() && parameter > 0:
		return fmt.Sprintf("%s %d us", action, parameter)
	}
	return action
}
