package health

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Silent is how long nothing must have come of a connection, of either end, before its QPs may serve another one, ns. A job that begins again
// takes longer, as it creates and connects its QPs first.
const Silent = 200 * ms

// beginning is what a message is that follows a silence.
type beginning uint8

const (
	known   beginning = iota // of what went on before
	perhaps                  // it is sent again, or another connection of the same QPs begins with it
	anew                     // another connection begins with it
)

// begins says whether a request begins another connection of the same QPs. A requester sends again only what isn't acknowledged (IBTA 9.7.5.1.1), and goes on
// with the next PSN (9.7.2). So a message that begins at another PSN, after a silence in which nothing was outstanding, is of a QP that was connected again if
// that PSN is farther from the latest one than packets of this requester ever were outstanding, or, if the MSNs can't tell, if many answers to it have passed: they
// weren't all lost (but for those to a READ: a requester drops all behind one that is missing). The latest answer may be lost behind here: then more is outstanding
// than it seems.
// What comes again a third time after the same time is sent again after a time-out.
func (c *Connection) begins(from int, p *Packet) beginning {
	if p.Time-c.Last >= Silent {
		c.woke = p.Time
	}
	h := &c.Half[from&1]
	counted := c.woke != 0 && h.fell >= c.woke // the responder has: it counts anew, and its answers are recorded before their requests
	if c.woke <= h.sent || !counted && c.woke <= h.answers.at || h.flags&started == 0 || h.flags&oneWay != 0 {
		return known
	}
	switch p.Opcode.Role() {
	case packet.Request, packet.ReadRequest:
	default:
		return known
	}
	read, begins := p.Opcode.Role() == packet.ReadRequest, placeOf(p.Opcode)&first != 0
	s, d := h.recent.find(p.PSN), ahead(p.PSN, h.next)
	switch {
	case counted && d < 0 && begins:
		return perhaps
	case d >= 0 && d <= int32(h.loose), h.outstandingAt(p):
		return known
	case h.flags&answered == 0, h.flags&blind != 0:
		if d < 0 && begins {
			return perhaps
		}
		return known
	case (h.holes.n > 0 || ahead(h.answers.acked, h.next) < 0) && ahead(p.PSN, h.answers.acked) >= 0:
		return known
	case begins && h.loose == 0 && h.reads.holes.n == 0 && max(d, -d) > max(h.most, int32(h.psnsOf(p))) && (s == nil || !s.read) && (d > 0 || h.answersTo(p) > 1),
		d < 0 && !read && h.msn == 0 && h.answersTo(p) >= manyAnswers:
		if c.Half[from&1^1].sent >= c.woke {
			return perhaps // what the other end has sent since the silence counts with what was before it
		}
		return anew
	}
	return perhaps
}

// outstandingAt reports whether a requester has sent a packet again before, or another connection has begun with it as long ago as with this one.
func (h *Half) outstandingAt(p *Packet) bool {
	late := p.Time - h.Begun - h.after
	return h.repeat.latest != 0 && h.repeat.latestPSN == p.PSN || h.after != 0 && p.PSN == h.base && max(late, -late) < h.after/16
}

// answersTo is how many answers have passed to a request, and to what is behind it.
func (h *Half) answersTo(p *Packet) uint32 {
	if m := h.answers.mark(p.PSN); m != nil {
		return uint32(h.Responses.Packets) - m.n + 1
	}
	return uint32(h.Responses.Packets)
}

// again begins another connection of the same QPs, of which a flow's packet is the first. The flow of the other direction joins it with its next packet.
func (f *Follower) again(flow flowtable.Ref, s end) end {
	c := f.at(s.id())
	e, paired := c.Ends, c.Paired
	c.flows = [2]flowtable.Ref{}
	i := f.follow(e, paired)
	f.at(i).flows[s.side()] = flow
	f.slots[flow.Index] = end(uint32(i)<<1 | uint32(s.side()))
	return f.slots[flow.Index]
}
