package health

import (
	"fmt"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// A gateway observes packets before it queues them. What its own queues drop has passed here and does not arrive, but isn't lost on the path. It says so
// packet by packet (Follower.Dropped), so an episode that such a drop began is known to be the gateway's.

// ownDrops are the PSNs of requests and of READ and ATOMIC responses that the gateway has dropped, and that were not sent again since: the lowest ones, as
// requesters go back to these first.
type ownDrops struct {
	list [16]ownRun // in no order
	n    int
	// ack is the PSN after that of the latest ACK, if that was dropped, plus 1; 0: it was not.
	ack uint32
}

type ownRun struct {
	psn, end uint32
	at       int64 // ns
}

// ownAge is how long a drop may explain that something is sent again: no time-out in use is longer, and PSNs don't wrap so soon at the rate that is inspected.
const ownAge = 20_000_000_000 // ns

// add notes a drop.
func (o *ownDrops) add(psn uint32, now int64) {
	end := (psn + 1) & packet.PSNMask
	for i := range o.list[:o.n] {
		switch r := &o.list[i]; {
		case r.end == psn:
			r.end, r.at = end, now
			return
		case ahead(psn, r.psn) >= 0 && ahead(psn, r.end) < 0:
			r.at = now
			return
		}
	}
	o.put(ownRun{psn, end, now})
}

// put adds a run, in place of an old one or of the highest one if the list is full.
func (o *ownDrops) put(add ownRun) {
	if o.n < len(o.list) {
		o.list[o.n] = add
		o.n++
		return
	}
	to := &o.list[0]
	for i := range o.list {
		r := &o.list[i]
		if add.at-r.at > ownAge {
			*r = add
			return
		}
		if ahead(r.psn, to.psn) > 0 {
			to = r
		}
	}
	if ahead(to.psn, add.psn) > 0 {
		*to = add
	}
}

// has reports whether a PSN from psn to end, which isn't one of them, was dropped.
func (o *ownDrops) has(psn, end uint32, now int64) bool {
	for i := range o.list[:o.n] {
		if r := &o.list[i]; now-r.at < ownAge && ahead(r.end, psn) > 0 && ahead(end, r.psn) > 0 {
			return true
		}
	}
	return false
}

// sentAgain forgets the PSNs that a request has asked for or sent again at a time: they are on their way once more, unless they were dropped since.
func (o *ownDrops) sentAgain(psn, psns uint32, now int64) {
	end := (psn + psns) & packet.PSNMask
	for i := o.n - 1; i >= 0; i-- {
		r := o.list[i]
		if ahead(r.end, psn) <= 0 || ahead(end, r.psn) <= 0 || r.at >= now {
			continue
		}
		o.n--
		o.list[i] = o.list[o.n]
		if ahead(psn, r.psn) > 0 {
			o.put(ownRun{r.psn, psn, r.at})
		}
		if ahead(r.end, end) > 0 {
			o.put(ownRun{end, r.end, r.at})
		}
	}
}

// Dropped says that the gateway has dropped a packet of a flow which Packet was given: it went no further than here.
func (f *Follower) Dropped(flow flowtable.Ref, p *packet.Parsed, now int64) {
	if flow.Index == flowtable.None {
		return
	}
	s := f.slots[flow.Index]
	if s == 0 || s&waiting != 0 || f.at(s.id()).flows[s.side()] != flow {
		return
	}
	c := f.at(s.id())
	switch p.Opcode.Role() {
	case packet.Request, packet.ReadRequest:
		h := &c.Half[s.side()]
		h.DroppedHere[0]++
		h.own.add(p.PSN, now)
		f.recordDrop(flow, s.side(), p.PSN, now)
	case packet.Response:
		h := &c.Half[s.side()^1]
		h.DroppedHere[1]++
		f.recordDrop(flow, s.side()^1, p.PSN, now)
		switch end := (p.PSN + 1) & packet.PSNMask; {
		case carriesData(p.Opcode):
			h.own.add(p.PSN, now)
		case end == h.answers.acked:
			h.own.ack = end + 1
		}
	default:
		if c.Service == transportUD {
			c.Half[s.side()].DroppedHere[0]++
		}
	}
}

// byGateway reports whether the gateway's own drop explains that a requester goes back. A NAK says which packet is missing; a time-out goes back to the
// oldest one without an ACK, and any behind it may be the one that was dropped.
func (o *episode) byGateway(h *Half) bool {
	end := (o.psn + max(o.psns, 1)) & packet.PSNMask
	if o.nak == 0 && o.beyond == 0 {
		end = o.end
	}
	return h.own.has(o.psn, end, o.at) || o.nak == 0 && h.own.ack != 0 && ahead(h.own.ack-1, o.psn) > 0
}

// mostlyOwn reports whether so few losses may be drops of the gateway's that were not recognized: of more than ownDrops lists, it recognizes the first ones.
func (c *Counts) mostlyOwn(lost uint64) bool { return lost*64 < c.DroppedHere[0]+c.DroppedHere[1] }

func gatewayDrops(c *Connection, i int) (Verdict, bool) {
	h := &c.Half[i]
	requests, responses := h.DroppedHere[0], h.DroppedHere[1]
	if requests+responses == 0 {
		return Verdict{}, false
	}
	what, to := fmt.Sprintf("%d requests (%s)", requests, percent(requests, max(h.Requests.Packets, c.Datagram.Packets))), c.End[i^1].Addr.Netip()
	switch back := fmt.Sprintf("%d responses (%s)", responses, percent(responses, h.Responses.Packets)); {
	case requests == 0:
		what, to = back, c.End[i].Addr.Netip()
	case responses > 0:
		what += " and " + back
	}
	return Verdict{
		Weight: requests + responses, Evidence: fmt.Sprintf("this gateway's queues dropped %s; %s", what, h.sentAgain()),
		Advice: fmt.Sprintf("the queue towards %v is full: see whether its senders are notified and slow down, whether the port's rate is the link's, and whether "+
			"ports[].queue_capacity holds what arrives until they do", to),
	}, true
}

// inGateway replaces what only the owner of a capture can do: a gateway is on the path, or gets a mirror's frames.
func (v *Verdict) inGateway() {
	switch v.Name {
	case LossUpstream:
		v.Advice += "; see also whether this gateway's port missed frames (DROPPED)"
	case Incomplete:
		v.Name = PartialPath
		v.Advice = "a part of the connection takes another path past this gateway, or the mirror port drops frames: lead all of it through here, or count only what passes"
	case Asymmetric:
		v.Advice = "lead both directions through this gateway, or mirror both to it: round trips and the causes of retransmissions are unknown here, and the gateway can't " +
			"learn the QP"
	case Unexplained:
		v.Advice = "follow the connection as it begins, and in both directions; capture at its sender what doesn't pass here"
	case Duplication:
		v.Advice = "look for a loop, a device that copies packets, a bridge that forwards beside this gateway, or a mirror that has each frame twice"
	}
}
