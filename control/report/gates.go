package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/dataplane/respond"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// GateState says whether a gate lets notifications about a flow through.
type GateState string

// The states of a gate.
const (
	Passes  GateState = "pass"
	Stops   GateState = "stop"
	Waits   GateState = "wait"    // it holds the next one back for now; the sender was notified lately
	Unknown GateState = "unknown" // the decision ended at an earlier gate
)

// Gate is one step of the decision to notify a sender.
type Gate struct {
	Name   string    `json:"gate" doc:"Step of the decision."`
	State  GateState `json:"result" enum:"pass,stop,wait,unknown" doc:"pass, stop, wait (holds the next one back for now; the sender was notified lately) or unknown (the decision ended at an earlier gate)."`
	Reason string    `json:"reason,omitempty" doc:"Reason by which the gateway counts what the gate stops (notifications_suppressed_total)."`
	Text   string    `json:"text" doc:"What was found, in words."`
	Key    string    `json:"key,omitempty" doc:"What to change in the configuration."`
}

// FirstStop is the place of the first gate that stops notifications, -1 if none does. That a flow is silent comes after what no packet of it could pass.
func FirstStop(gates []Gate) int {
	stops := func(g Gate) bool { return g.State == Stops }
	first := slices.IndexFunc(gates, stops)
	if first == 0 {
		lasting := gates[1:max(1, slices.IndexFunc(gates, func(g Gate) bool { return g.Name == gateQueue }))]
		first += slices.IndexFunc(lasting, stops) + 1
	}
	return first
}

// The gates, in the order of the decision: what the configuration and the flow decide first, then what the queue decides.
const (
	gateFlow      = "flow"
	gatePath      = "path"
	gateRecipient = "recipient"
	gateGrant     = "grant"
	gateFormat    = "format"
	gateSourceQP  = "source-qp"
	gateMode      = "mode"
	gateQueue     = "queue"
	gateShare     = "share"
	gateLimits    = "limits"
	gateReaction  = "reaction"
	gateLast      = "last"
)

// gateOf is the gate at which each reason stops a notification.
var gateOf = map[counters.Suppression]string{
	counters.FlowUnknown: gateFlow, counters.ManagementQP: gateRecipient, counters.Encapsulated: gateRecipient,
	counters.Suppression(congestion.NotUnicast):       gateRecipient,
	counters.Suppression(congestion.NoEndpoint):       gateGrant,
	counters.Suppression(congestion.NothingAccepted):  gateGrant,
	counters.Suppression(congestion.NotEnabled):       gateFormat,
	counters.Suppression(congestion.WrongFamily):      gateFormat,
	counters.Suppression(congestion.NoGatewayAddress): gateFormat,
	counters.Suppression(congestion.NotExpressible):   gateFormat,
	counters.Suppression(congestion.OptionRefused):    gateFormat,
	counters.Suppression(congestion.SourceQPUnknown):  gateSourceQP,
	counters.Stopping:       gateMode,
	counters.LargestNotRoCE: gateShare,
	counters.FlowLimit:      gateLimits, counters.DestinationLimit: gateLimits, counters.DestinationsFull: gateLimits,
	counters.PortLimit: gateLimits, counters.NoBuffer: gateLimits, counters.NotificationQueueFull: gateLimits,
	counters.SlowingDown: gateReaction, counters.Draining: gateReaction, counters.AlreadySlower: gateReaction,
	counters.NotifiedElsewhere: gateReaction,
	counters.NotBuilt:          gateLast, counters.NotSent: gateLast, counters.Shutdown: gateLast,
	counters.ProxyFlowSilent: gateLast, counters.ProxyRepeated: gateLast, counters.ProxyRequestsFull: gateLast,
}

// Explained is what the gates of a flow are made from.
type Explained struct {
	Config   *config.Config
	Policy   *dataplane.Policy
	Flow     *dataplane.FlowRecord
	Standing *respond.Standing
	NoSlot   uint64                     // times that a flow found the pairing table full
	Returns  int                        // flows of the opposite direction in the same VLAN or tunnel
	Apart    []packet.Scope             // the others in which there are flows of the opposite direction between the two hosts
	Rate     *uint64                    // of the flow now, bit/s; nil: not measured
	Last     *notify.NotificationRecord // the last one about the flow; nil: none is recorded
	Held     *notify.NotificationRecord // the last one that was suppressed; nil: none is recorded
}

// lately is how long a sender counts as notified after a notification, ns.
const lately = int64(10 * time.Second)

// idle is the time without a packet after which a flow counts as silent, ns.
const idle = int64(time.Second)

// Notified reports whether the sender was notified lately, or would have been in observe mode.
func (e *Explained) Notified() bool {
	at := e.notified()
	return at != 0 && e.Standing.Now-at < lately
}

// notified is when the sender was last notified, Unix time in ns, 0 for never: of a queue here, or of a packet that arrived with CE.
func (e *Explained) notified() int64 {
	at := e.Standing.Notified
	if n := e.Last; n != nil && n.Cause == congestion.ByArrival {
		at = max(at, n.Time)
	}
	return at
}

// Gates are the gates of a flow in the order of the decision.
func (e *Explained) Gates() []Gate {
	all := []Gate{e.flow(), e.path()}
	if e.Standing.FromWAN {
		return all
	}
	all = append(all, e.recipient(), e.grant(), e.format(), e.sourceQP(), e.mode(), e.queue(), e.share(), e.limits(), e.reaction())
	return append(all, e.last(FirstStop(all) >= 0))
}

// passing is a gate about the present moment: it only waits if the sender was notified lately.
func (e *Explained) passing(name, text string, passes bool) Gate {
	g := Gate{Name: name, State: Stops, Text: text}
	switch {
	case passes:
		g.State = Passes
	case e.Notified():
		g.State = Waits
	}
	return g
}

// choice is a gate of the choice of recipient and format: the choice's reason stops it, or one of an earlier gate left it undecided.
func (e *Explained) choice(name, text string) Gate {
	g, reason := Gate{Name: name, State: Passes, Text: text}, e.Standing.Choice
	if reason == 0 {
		return g
	}
	for _, gate := range []string{gateRecipient, gateGrant, gateFormat, gateSourceQP} {
		switch {
		case gate == name && name == gateOf[reason]:
			g.State, g.Reason = Stops, reason.String()
			g.Text, g.Key = e.refusal(reason)
			return g
		case gate == name:
			return g
		case gate == gateOf[reason]:
			g.State = Unknown
			return g
		}
	}
	return g
}

func (e *Explained) source() string { return e.Flow.Key.Src.Netip().String() }

// refusal explains a reason of the choice, and names the key that changes it.
func (e *Explained) refusal(reason counters.Suppression) (text, key string) {
	src := e.source()
	switch reason {
	case counters.ManagementQP:
		return "its QP is 0 or 1: management datagrams have no rate to reduce", ""
	case counters.Encapsulated:
		return "the flow is in a tunnel, no proxy is known for " + src + ", and no paired packets of the opposite direction, which have labels at most, " +
			"show what brings a frame there", "proxy.senders: add {prefix: " + e.hostPrefix() + ", proxy: ADDRESS}"
	case counters.Suppression(congestion.NotUnicast):
		return "source or destination is not a host's address", ""
	case counters.Suppression(congestion.NoEndpoint):
		return "no prefix of endpoints contains " + src, "endpoints: add {prefix: " + e.hostPrefix() + ", accepts: [standard-cnp]}"
	case counters.Suppression(congestion.NothingAccepted):
		return "the entry of endpoints that contains " + src + " accepts no format", "endpoints[].accepts"
	case counters.Suppression(congestion.SourceQPUnknown):
		return e.missingQP(), "qp_map, or give a hint by cnpgate hint"
	}
	return e.considered(), formatKey(reason, e.mentioned(reason))
}

// hostPrefix is the prefix of the sender alone.
func (e *Explained) hostPrefix() string {
	if e.Flow.Key.Src.Is4() {
		return e.source() + "/32"
	}
	return `"` + e.source() + `/128"`
}

// accepted are the formats that the sender accepts, each with the reason why it isn't used.
func (e *Explained) accepted() []congestion.Considered {
	if e.Standing.Format == packet.ProxyNotification {
		return []congestion.Considered{{Kind: packet.ProxyNotification, Reason: congestion.Reason(e.Standing.Choice)}}
	}
	return e.Policy.Who.Consider(e.Flow.Key.Src, e.Flow.View.Usable(), e.Standing.Refused, e.Standing.Action)
}

// considered lists the formats, with the reasons.
func (e *Explained) considered() string {
	var all []string
	for _, f := range e.accepted() {
		text := f.Kind.String()
		if f.Reason != 0 {
			text += ": " + f.Reason.String()
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// mentioned is the first format with a reason.
func (e *Explained) mentioned(reason counters.Suppression) packet.Notification {
	for _, f := range e.accepted() {
		if counters.Suppression(f.Reason) == reason {
			return f.Kind
		}
	}
	return 0
}

// formatKey is the key that lets a format be used.
func formatKey(reason counters.Suppression, f packet.Notification) string {
	switch reason {
	case counters.Suppression(congestion.NotEnabled):
		return f.Section() + ".enabled: true"
	case counters.Suppression(congestion.NoGatewayAddress):
		return "gateway.ipv4 and gateway.ipv6"
	case counters.Suppression(congestion.NotExpressible):
		return "profiles.NAME.policy, or endpoints[].accepts"
	}
	return "endpoints[].accepts"
}

// elsewhere says where the opposite direction's packets are, if not in the flow's VLAN or tunnel.
func (e *Explained) elsewhere() string {
	switch len(e.Apart) {
	case 0:
		return "the rules compare both"
	case 1:
		return fmt.Sprintf("too few flows prove that those in %s belong to %s (pairing.scopes can state it), or which two are a connection",
			scopeText(e.Apart[0]), scopeText(e.Flow.Key.Scope().Tenant()))
	}
	return fmt.Sprintf("nothing shows whether those in %s or in %d others belong to it", scopeText(e.Apart[0]), len(e.Apart)-1)
}

// scopeText names a VLAN or tunnel, as in pairing.scopes.
func scopeText(s packet.Scope) string {
	var f Flow
	switch f.SetScope(s); {
	case f.Tunnel != "" && len(f.VLAN) > 0:
		return fmt.Sprintf("VLAN %d of tunnel %s:%d", f.VLAN[0], f.Tunnel, f.TunnelID)
	case f.Tunnel != "":
		return fmt.Sprintf("tunnel %s:%d", f.Tunnel, f.TunnelID)
	case len(f.VLAN) > 0:
		return "VLAN " + strings.Trim(strings.ReplaceAll(fmt.Sprint(f.VLAN), " ", "/"), "[]")
	}
	return "no VLAN"
}

// missingQP says what keeps the source QP from being confirmed.
func (e *Explained) missingQP() string {
	v, parts := &e.Flow.View, []string{}
	switch {
	case v.Ended() != pairing.Open:
		return fmt.Sprintf("the connection has ended (%v)", v.Ended())
	case v.State() == pairing.Candidate:
		parts = append(parts, fmt.Sprintf("QP %d is a candidate by %v", v.SourceQP(), v.Evidence()))
	default:
		parts = append(parts, "no evidence for the sender's QP")
	}
	if e.Returns > 0 {
		parts = append(parts, fmt.Sprintf("packets so far: %d; flows of the opposite direction, which don't prove one yet: %d", e.Flow.Traffic.Packets, e.Returns))
	} else {
		parts = append(parts, "no packets of the opposite direction pass the gateway in this VLAN or tunnel, and "+e.elsewhere())
	}
	if e.NoSlot > 0 {
		parts = append(parts, fmt.Sprintf("the pairing table was full %d times when a flow needed a place (flows.paired; cnpgate show health)", e.NoSlot))
	}
	if v.Contradictions > 0 {
		parts = append(parts, fmt.Sprintf("%d contradictions make it need more evidence", v.Contradictions))
	}
	return strings.Join(parts, "; ")
}
