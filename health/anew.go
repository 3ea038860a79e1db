package health

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// silent is how long nothing must have come of a connection, of either end, before its QPs may serve another one, ns. A job that begins again
// takes longer, as it creates and connects its QPs first.
const silent = 200 * ms

// anew reports whether a request begins another connection of the same QPs. A requester sends again only what isn't acknowledged (IBTA 9.7.5.1.1), and goes on
// with the next PSN (9.7.2). So a message that begins at another PSN, after a silence in which nothing was outstanding, and farther from the latest one than
// packets of this requester ever were outstanding, is of a QP that was connected again. A lost ACK has the last few sent again: those are nearer.
func (c *Connection) anew(from int, p *Packet) bool {
	if p.Time-c.Last < silent || placeOf(p.Opcode)&first == 0 {
		return false
	}
	switch p.Opcode.Role() {
	case packet.Request, packet.ReadRequest:
	default:
		return false
	}
	h := &c.Half[from&1]
	if h.flags&(started|answered) != started|answered || h.flags&oneWay != 0 || h.loose != 0 || h.holes.n+h.reads.holes.n > 0 || h.answers.acked != h.next {
		return false
	}
	if s := h.recent.find(p.PSN); s != nil && s.read {
		return false // its responses may have been lost behind
	}
	d := ahead(p.PSN, h.next)
	return max(d, -d) > max(h.most, int32(h.psnsOf(p)))
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
