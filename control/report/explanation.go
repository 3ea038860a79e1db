package report

import (
	"cmp"
	"fmt"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/control/columns"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/units"
)

// This file words the gates of a flow that the worker knows. What each says is decided by package dataplane.

func (e *Explained) flow() Gate {
	f := e.Flow
	silent := max(f.At-f.LastSeen, 0)
	text := fmt.Sprintf("%d packets, the last one %v ago", f.Traffic.Packets, columns.Ago(silent))
	if e.Rate != nil {
		text = fmt.Sprintf("%d packets, %s now", f.Traffic.Packets, units.Rate(*e.Rate))
	}
	if silent > idle {
		text = fmt.Sprintf("no packet has come for %v", columns.Ago(silent))
	}
	return e.passing(gateFlow, text, silent <= idle)
}

func (e *Explained) path() Gate {
	in, out := e.Config.Ports[e.Flow.Key.Port].Name, e.Config.Ports[e.Standing.Out].Name
	if e.Standing.FromWAN {
		return Gate{Name: gatePath, State: Stops, Key: "ports[].role",
			Text: fmt.Sprintf("packets arrive at WAN port %s, and only senders behind a fabric port are notified; if %s is behind this gateway, the roles are swapped", in, e.source())}
	}
	return Gate{Name: gatePath, State: Passes, Text: "arrives at " + in + ", leaves by " + out}
}

func (e *Explained) recipient() Gate {
	text := "the sender itself"
	if e.Standing.Format == packet.ProxyNotification {
		text = "its proxy"
		if e.Standing.Choice == 0 {
			text += " " + e.Standing.To.Netip().String()
		}
	}
	return e.choice(gateRecipient, text)
}

func (e *Explained) grant() Gate {
	text := "the proxy knows what the sender accepts"
	if e.Standing.Format != packet.ProxyNotification {
		text = "accepts"
		for _, f := range e.accepted() {
			text += " " + f.Kind.String()
		}
	}
	return e.choice(gateGrant, text)
}

func (e *Explained) format() Gate {
	text := e.considered()
	if e.Standing.Choice == 0 {
		text = e.Standing.Format.String()
	}
	return e.choice(gateFormat, cmp.Or(text, "-"))
}

func (e *Explained) sourceQP() Gate {
	v := &e.Flow.View
	text := fmt.Sprintf("QP %d, %v by %v", v.SourceQP(), v.State(), v.Evidence())
	switch {
	case v.Usable():
	case e.Standing.Choice == 0:
		text = e.Standing.Format.String() + " does not name it"
	default:
		text = e.missingQP()
	}
	return e.choice(gateSourceQP, text)
}

func (e *Explained) mode() Gate {
	s := e.Standing
	g := Gate{Name: gateMode, State: Stops, Text: "observe: notifications are counted, and not sent", Key: "notifications.mode: send"}
	switch {
	case e.Config.Ports[s.Out].Tap:
		g.Text, g.Key = "mirror ports never send; notifications are only counted", "ports[].role"
	case s.Choice == counters.Stopping:
		g.Reason, g.Text, g.Key = s.Choice.String(), "the gateway is to stop, and notifies nobody any more", ""
	case e.Config.Dataplane.Policy.Observe && (e.Policy.Observe || e.Policy.Ports[s.Out].Observe):
	case e.Policy.Observe || e.Policy.Ports[s.Out].Observe:
		g.Key = "cnpgate set mode send"
	case s.Choice != 0:
		return Gate{Name: gateMode, State: Unknown, Text: "send"}
	case s.Observe:
		g.Text, g.Key = fmt.Sprintf("observe: a %v is counted, and not sent", s.Format), s.Format.Section()+".enabled: true"
	default:
		return Gate{Name: gateMode, State: Passes, Text: "send"}
	}
	return g
}

func (e *Explained) queue() Gate {
	s := e.Standing
	port := &e.Config.Ports[s.Out]
	name, by := "queue "+port.Name+"/"+port.ClassNames[s.Class], "K_max"
	if !s.ClassKnown {
		name = "the flow's class is not known; the longest queue, " + port.Name + "/" + port.ClassNames[s.Class] + ","
	}
	if s.Law {
		by = "half of the law's reference"
	}
	g := e.passing(gateQueue, fmt.Sprintf("%s holds %s; senders are notified above %s (%s); last resort: %s", name, units.Size(s.Depth), units.Size(s.Threshold), by,
		LastResort(e.Config, s.Out, s.Class)), s.Congested)
	if g.State == Stops {
		g.Text += "; if the WAN is congested behind this port, the port's rate is too high"
		g.Key = "ports[].rate"
	}
	return g
}

// LastResort says what a class of a port has besides notifications before a full queue drops.
func LastResort(c *config.Config, port, class int) string {
	p := &c.Ports[port]
	switch link := c.Ports[p.Peer].FlowControl; {
	case link != nil && link.Lossless[class].On:
		l := &link.Lossless[class]
		return fmt.Sprintf("PFC, which stops priority %d of the fabric above %s", l.Priority, units.Size(l.XOff))
	case p.Policy.Pacing != nil:
		return "pacing of the port's senders"
	}
	return "marks, then loss"
}

func (e *Explained) share() Gate {
	s := e.Standing
	text := fmt.Sprintf("the flow arrives at %s; those above the fair rate of %s are notified", units.Rate(ofPort(e.Config, int(e.Flow.Key.Port), s.Rate)), units.Rate(s.Fair))
	if !s.Law {
		text = fmt.Sprintf("the flow has %s in the queue; those with %s or more are notified", units.Size(s.Queued), units.Size(s.Least))
	}
	if s.Largest != 0 {
		text = "more than half of the queue belongs to no RDMA flow"
	}
	if !s.Congested {
		return Gate{Name: gateShare, State: Unknown, Text: "decided while the queue is congested"}
	}
	g := e.passing(gateShare, text, s.Fills && s.Largest == 0)
	if s.Largest != 0 {
		g.Reason = s.Largest.String()
	}
	return g
}

func (e *Explained) limits() Gate {
	s := e.Standing
	text, key := "not reached", ""
	reason := cmp.Or(s.Interval, s.Limit)
	if s.Choice != 0 && reason == 0 {
		return Gate{Name: gateLimits, State: Unknown, Text: "decided once there is a recipient and a format"}
	}
	switch {
	case reason == counters.FlowLimit:
		text, key = "per_flow: the last one is less than the interval ago", "notifications.limits.per_flow"
	case reason == counters.DestinationLimit && s.Format == packet.ProxyNotification:
		text, key = "per_proxy: reached for the proxy", "proxy.limits.per_proxy"
	case reason == counters.DestinationLimit:
		text, key = "per_destination: reached for the sender", "notifications.limits.per_destination"
	case reason == counters.PortLimit:
		text, key = "per_port: reached for port "+e.Config.Ports[e.Flow.Key.Port].Name, "notifications.limits.per_port"
	case reason == counters.DestinationsFull:
		text = "too many senders are notified at once to count for each"
	case reason == counters.NotificationQueueFull:
		text = "the queue of notifications is full: port " + e.Config.Ports[e.Flow.Key.Port].Name + " is busy"
	case reason == counters.NoBuffer:
		text = "no buffer is free"
	}
	g := e.passing(gateLimits, text, reason == 0)
	if reason != 0 {
		g.Reason, g.Key = reason.String(), key
	}
	return g
}

func (e *Explained) reaction() Gate {
	s := e.Standing
	text := "nothing holds a further notification back"
	switch {
	case s.Restraint == counters.SlowingDown:
		text = "the sender slows down since it was notified"
	case s.Restraint == counters.AlreadySlower:
		text = "the sender slows down without a notification from here"
	case s.Restraint == counters.Draining:
		text = "the queue drains since the sender was notified"
	case s.Ignores:
		text = fmt.Sprintf("the sender does not slow down although it is notified: does its NIC obey a %v? Its packets are marked, too", s.Format)
	}
	g := e.passing(gateReaction, text, s.Restraint == 0)
	if s.Restraint != 0 {
		g.Reason = s.Restraint.String()
	}
	return g
}

// last is the last notification and what the sender did, and the reason why the last decision was none, if no other gate explains it.
func (e *Explained) last(stopped bool) Gate {
	text := "the sender was never notified about this flow"
	if at := e.notified(); at != 0 {
		text = fmt.Sprintf("notified %v ago", columns.Ago(e.Standing.Now-at))
	}
	if n := e.Last; n != nil {
		text = fmt.Sprintf("%v %s %v ago%s", n.Format, asks(n.Decision.Action.String(), n.Decision.Parameter), columns.Ago(e.Standing.Now-n.Time), e.since(n))
		if n.Cause == congestion.ByArrival {
			text += ", as a packet arrived with CE"
		}
		if n.Outcome == counters.Observed {
			text = "observed: " + text
		}
	}
	switch h := e.Held; {
	case e.Notified():
		return Gate{Name: gateLast, State: Passes, Text: text}
	case stopped:
		return Gate{Name: gateLast, State: Unknown, Text: text}
	case h != nil && e.Standing.Now-h.Time < lately && h.Time > e.notified():
		return Gate{Name: gateLast, State: Stops, Reason: h.Reason.String(), Text: fmt.Sprintf("not sent %v ago: %v", columns.Ago(e.Standing.Now-h.Time), h.Reason)}
	}
	return Gate{Name: gateLast, State: Stops, Text: text}
}

// since compares the flow's rate before a notification with the present one.
func (e *Explained) since(n *notify.NotificationRecord) string {
	before := ofPort(e.Config, int(n.In), n.FlowRate*bitsPerSecond)
	switch {
	case e.Rate == nil:
		return ""
	case before == 0:
		return fmt.Sprintf("; now %s", units.Rate(*e.Rate))
	}
	return fmt.Sprintf("; %s before it, %s now (%+.0f %%)", units.Rate(before), units.Rate(*e.Rate), 100*(float64(*e.Rate)/float64(before)-1))
}
