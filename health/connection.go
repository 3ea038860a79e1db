package health

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Endpoint is one end of a connection.
type Endpoint struct {
	Addr packet.Addr
	QP   uint32 // 0: not known
	Port uint16 // where its packets come in
}

// Ends are the two ends of a connection, and the VLAN or tunnel that it is in. Of a pair of flows that isn't known, the packets of one are followed,
// and the second end has no QP that sends; of a UD flow, too.
type Ends struct {
	End   [2]Endpoint
	Scope packet.Scope // packet.Scope.Named
}

// Connection is what is known of a connection.
type Connection struct {
	Ends
	Half     [2]Half     // by requester
	Reaction [2]Reaction // by sender
	Datagram Amount      // of UD, from end 0
	First    int64       // time of the first packet, and of the last one
	Last     int64
	woke     int64 // when the first packet after a silence came
	How      Ending
	Service  uint8 // the three high bits of the opcodes
	Paired   bool  // both directions are known
	used     bool
	flows    [2]flowtable.Ref // from each end
	epoch    uint32           // of the table when the last packet came
}

// Ending says how a connection ended.
type Ending uint8

// Endings.
const (
	Open     Ending = iota
	Released        // RDMA-CM released it
	Failed          // the responder sent a NAK that ends a connection
	GaveUp          // the requester sent a packet again and again, and then nothing
	Idle            // no packet came for a while
)

func (e Ending) String() string {
	return [...]string{"open", "released", "failed", "gave-up", "idle"}[e%5]
}

// Observe follows a packet that end from sends. A CNP is notify's.
func (c *Connection) Observe(from int, p *Packet) {
	if c.First == 0 {
		c.First, c.Service = p.Time, uint8(p.Opcode>>5)
	}
	c.Last = p.Time
	switch p.Opcode.Role() {
	case packet.Request, packet.ReadRequest:
		h := &c.Half[from&1]
		again := h.repeat.active
		if o := &c.Half[from&1^1]; o.clean.n > 2 {
			h.back = o.clean.least
		}
		h.request(p)
		h.flags &^= mayBegin
		if again || h.repeat.active {
			c.Reaction[from&1].lost = true
		}
	case packet.Response:
		h := &c.Half[from&1^1]
		h.response(p)
	default:
		c.Datagram.add(p.Len)
		h := &c.Half[from&1]
		h.hops.latest[0] = p.Hops
		h.Goodput += uint64(p.Data)
		h.Messages[Send]++
		h.Sizes.add(uint64(p.Data))
		if p.CE {
			h.CE++
		}
	}
	r := &c.Reaction[from&1]
	if turn := &c.Half[from&1].turn; turn.n > 0 {
		r.loop = turn.least
	}
	r.window = max(c.Half[0].Window, c.Half[1].Window)
	r.sent(p.Time, p.Len, p.CE)
}

// notify follows a CNP to end to.
func (c *Connection) notify(to int, now int64) { c.Reaction[to&1].cnp(now) }

// missed says that packets may not have been observed: what follows isn't compared with what came before.
func (c *Connection) missed() {
	for i := range c.Half {
		h := &c.Half[i]
		h.holes, h.reads.holes = holes{}, holes{} // what is missing may have passed
		h.restart()
		c.Reaction[i].at = 0
	}
}

// snapshot completes a copy of a connection's counts; now is the time of the copy.
func (c *Connection) snapshot(now int64) {
	for i := range c.Half {
		if e := &c.Half[i].early; now-e.at < longestLead { // its request may be recorded yet
			e.at = 0
		}
		h := &c.Half[i]
		h.finish()
		h.withoutMissed(h.reads.known)
		if r := &c.Reaction[i]; r.run.at != 0 {
			r.judgeRun()
		}
	}
	if c.How != Open {
		return
	}
	for i := range c.Half {
		h := &c.Half[i]
		c.How = max(c.How, ending(h, now))
	}
	if c.How == Open && now-c.Last > idleAfter {
		c.How = Idle
	}
}

// unheard reports whether an end fell silent without an answer to what had asked for one, or in the midst of a message.
func (c *Connection) unheard() bool {
	for i := range c.Half {
		h := &c.Half[i]
		if h.flags&(answered|blind|oneWay) != answered || ahead(h.next, h.answers.acked) <= 0 {
			continue
		}
		if latest := h.recent.find((h.next - 1) & packet.PSNMask); h.probes.n > 0 || latest != nil {
			return c.How == Idle && c.Paired && c.notCaptured() == 0
		}
	}
	return false
}

const (
	idleAfter = 10e9 // ns
	gaveUp    = 5    // transmissions without an answer
	retries   = 7    // a requester sends a packet again at most so often without an answer (IBTA 9.9.2.4.1: three bits)
)

// ending says how a connection has ended, by the requests of one end.
func ending(h *Half, now int64) Ending {
	switch {
	case h.NAKs[1]+h.NAKs[2]+h.NAKs[3] > 0:
		return Failed
	case h.repeat.tries >= retries && ahead(h.answers.acked, h.repeat.latestPSN) <= 0:
		return GaveUp
	case h.repeat.tries >= gaveUp && ahead(h.answers.acked, h.repeat.latestPSN) <= 0 && h.big.attempts >= gaveUp && (h.big.attempts > retries || now-h.sent > 4*h.Interval.most):
		return GaveUp
	}
	return Open
}
