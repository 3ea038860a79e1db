package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/cnpgate/cnpgate/control/columns"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/trace"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/units"
	"github.com/cnpgate/cnpgate/pairing"
)

// Packet is a packet of a flow, as it arrived, and what was decided about it; or a frame that was dropped, as it was then.
type Packet struct {
	Time      time.Time  `json:"time" doc:"When its burst arrived."`
	Worker    int        `json:"worker" doc:"Number of the worker."`
	Port      string     `json:"port" doc:"Port by which it arrived."`
	Length    int        `json:"length" doc:"Bytes of the frame."`
	Frame     []byte     `json:"frame" doc:"Its first 256 bytes at most, as they arrived, base64."`
	Decisions []Decision `json:"decisions,omitempty" doc:"What each stage decided, in their order."`
}

// Decision is what a stage decided about a packet.
type Decision struct {
	Stage    string `json:"stage" doc:"Stage of the gateway."`
	Decision string `json:"decision" doc:"What it decided, in words."`
}

// MakePacket describes a record of a worker, with its decisions only if they are wanted.
func MakePacket(c *config.Config, worker int, r *trace.PacketRecord, decisions bool) Packet {
	p := Packet{Time: unix(r.Time), Worker: worker, Port: c.Ports[r.In].Name, Length: int(r.Length), Frame: r.Frame[:r.Bytes]}
	if !decisions {
		return p
	}
	say := func(stage, format string, args ...any) {
		p.Decisions = append(p.Decisions, Decision{stage, fmt.Sprintf(format, args...)})
	}
	say("parse", "%s", parsed(r))
	if r.Ended && !r.Queued && !r.Paced && r.Flow == trace.NoFlow {
		say("end", "%s", ending(r))
		return p
	}
	say("flow", "%s", flowFate(r, worker))
	if r.Flow == trace.FlowFound || r.Flow == trace.FlowBegan {
		say("pair", "%s", paired(r))
	}
	if r.Paced {
		say("pace", "held until its sender's rate allows it")
	}
	if r.Queued {
		out := &c.Ports[r.Out]
		say("queue", "%s/%s, which held %s", out.Name, out.ClassNames[r.Class], units.Size(r.Depth))
		say("notify", "%s", notified(c, r))
		say("mark", "%s", marked(r))
	}
	say("send", "%s", left(c, r))
	return p
}

// Comment is the decisions as the comment of a capture, a line each.
func (p *Packet) Comment() string {
	lines := make([]string, len(p.Decisions))
	for i, d := range p.Decisions {
		lines[i] = d.Stage + ": " + d.Decision
	}
	return strings.Join(lines, "\n")
}

func parsed(r *trace.PacketRecord) string {
	text := "not RoCEv2"
	switch {
	case r.Notification != packet.NotANotification:
		text = r.Notification.String()
	case r.Kind == packet.RoCEv2:
		text = r.Opcode.String()
	}
	path := "by all its headers"
	if r.Plain {
		path = "by the fast path"
	}
	return fmt.Sprintf("%s, DSCP %d, %s, %s", text, r.TOS>>2, [...]string{"not ECN-capable", "ECT(1)", "ECT(0)", "CE"}[r.TOS&3], path)
}

func flowFate(r *trace.PacketRecord, worker int) string {
	switch r.Flow {
	case trace.FlowFound:
		return fmt.Sprintf("known to worker %d", worker)
	case trace.FlowBegan:
		return fmt.Sprintf("began with this packet at worker %d", worker)
	case trace.FlowFull:
		return "unknown: the flow table is full of flows that must not be evicted"
	}
	return "none: the packet belongs to no flow"
}

func paired(r *trace.PacketRecord) string {
	switch a := r.QP; {
	case a.Usable():
		return fmt.Sprintf("source QP %d, by %v", a.SourceQP(), a.Evidence())
	case a.Ended() != pairing.Open:
		return fmt.Sprintf("no source QP: the connection has ended (%v)", a.Ended())
	case a.State() == pairing.Candidate:
		return fmt.Sprintf("no source QP: %d is only a candidate, by %v", a.SourceQP(), a.Evidence())
	}
	return "no source QP: nothing points to one yet"
}

func notified(c *config.Config, r *trace.PacketRecord) string {
	switch {
	case r.Notified && r.Outcome == counters.Observed:
		return fmt.Sprintf("%v to %v, which is not sent: observe mode", r.Format, r.To.Netip())
	case r.Notified:
		return fmt.Sprintf("%v to %v, by port %s", r.Format, r.To.Netip(), c.Ports[r.SentBy].Name)
	case r.Suppressed != 0:
		return fmt.Sprintf("no: %v", r.Suppressed)
	case r.Skip == trace.SmallShare:
		return "no: its flow's share of the queue is not among the largest"
	case r.Skip == trace.RoundOver:
		return "no: as many senders as a round allows were notified"
	case r.Skip == trace.NotDue:
		return "no: its flow is above its fair rate, and its sender is not due another request" + rates(c, r)
	case r.Law:
		return "no: the queue is short, or its flow is not above its fair rate" + rates(c, r)
	case r.Cause == 0:
		return "no: the queue is not congested"
	}
	return "no: the packet carries no data"
}

// rates are those of the law.
func rates(c *config.Config, r *trace.PacketRecord) string {
	if r.Rate == 0 {
		return fmt.Sprintf("; fair %s, and the flow's rate is not measured yet", units.Rate(r.Fair*8e9))
	}
	return fmt.Sprintf("; fair %s, flow %s", units.Rate(r.Fair*8e9), units.Rate(ofPort(c, int(r.In), uint64(r.Rate*8e9))))
}

func marked(r *trace.PacketRecord) string {
	switch {
	case r.Marked && r.MarkObserved:
		return "CE would be set: observe mode"
	case r.Marked:
		return "CE was set"
	case r.MarkAsked && r.TOS&3 == packet.CE:
		return "no: it arrived with CE"
	case r.MarkAsked:
		return "no: it is not ECN-capable"
	case r.Notified && r.Format == packet.FastCNP:
		return "no: a Fast CNP has notified its sender instead"
	case r.Law:
		return "no: the law notifies its sender in place of marking, or the queue is short"
	case r.Depth > r.KMin:
		return "no: the profile does not mark"
	}
	return fmt.Sprintf("no: the queue is not above K_min of %s", units.Size(r.KMin))
}

func left(c *config.Config, r *trace.PacketRecord) string {
	port := c.Ports[c.Ports[r.In].Peer].Name
	switch {
	case r.Ended:
		return ending(r)
	case r.Lost:
		return fmt.Sprintf("no: port %s dropped it: %s", port, [...]string{burst.TooLong: "longer than the port allows", burst.LinkDown: "no link", burst.Refused: "refused by the device"}[r.LostBy])
	case r.Left > 0:
		return fmt.Sprintf("by port %s, after %v", port, columns.Ago(r.Left))
	}
	return fmt.Sprintf("not yet: it waits for port %s", port)
}

// ending is why a frame was not forwarded, by its counter's name.
func ending(r *trace.PacketRecord) string {
	d := &counters.Catalogue[r.Reason]
	return fmt.Sprintf("not forwarded: %s{%s}", d.Name, d.Value)
}
