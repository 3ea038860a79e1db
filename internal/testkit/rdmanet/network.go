package rdmanet

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"
)

// Host is an end of paths. It sends one packet after the other.
type Host struct {
	Addr netip.Addr
	MAC  [6]byte
	Rate float64 // bits/s
	Down int64   // when it stops answering, ns; 0: never

	busy int64
	ids  uint16
}

func (h *Host) down(now int64) bool { return h.Down != 0 && now >= h.Down }

// Path connects two hosts. Segments[e][0] is where packets of end e pass before they come to the capture, Segments[e][1] is what follows.
type Path struct {
	Segments [2][2]*Segment
}

// Conn is a connection.
type Conn struct {
	NIC   *NIC
	Host  [2]*Host
	QP    [2]uint32
	Port  [2]uint16 // UDP source port of what an end sends
	Path  *Path
	Half  [2]*Half // by requester
	Scene *Scene   // what is wrong with it
	After int64    // of a QP's second connection: how long after all others have ended it begins, ns

	notified [2]int64 // when an end sent its latest CNP
	pace     [2]pacer
}

// Again reports whether a connection is a later one of another one's QPs.
func (c *Conn) Again(first *Conn) bool {
	return c.After > 0 && c.Scene == first.Scene && c.QP == first.QP
}

// start begins to send.
func (c *Conn) start() {
	for _, h := range c.Half {
		for i := range h.requests {
			if c.After > 0 {
				h.requests[i].at += h.Net.now + c.After
			}
		}
		h.Start()
	}
}

// Network runs connections.
type Network struct {
	clock
	Random *rand.Rand
	Conns  []*Conn
	Tap    func(p *Packet, now int64) // each packet that passes the capture
	Sent   int                        // packets
}

// transmit puts a packet on its host's line.
func (n *Network) transmit(p *Packet) {
	c := p.Half.Conn
	h := c.Host[p.From]
	bits := c.bits(p)
	h.busy = max(h.busy, n.now) + int64(bits/h.Rate*1e9) + 1
	n.Sent++
	p.order, p.Sent, p.Passed, p.Arrived = n.Sent, h.busy, never, never
	if c.NIC.Identified {
		h.ids++
		p.id = h.ids
	}
	if h.down(n.now) {
		return
	}
	n.at(h.busy, func() { n.enter(p) })
}

func (c *Conn) bits(p *Packet) float64 { return float64(p.Payload+c.NIC.NetworkBytes) * 8 }

// enter moves a packet along the path.
func (n *Network) enter(p *Packet) {
	c := p.Half.Conn
	first := c.Path.Segments[p.From][0]
	exit, lost, corrupted := first.pass(n.Random, p, n.now, c.bits(p))
	if lost {
		p.Fate = LostBefore
		return
	}
	if corrupted {
		p.Fate = CorruptedBefore
	}
	n.at(exit, func() { n.middle(p) })
	if first.CopyOneIn > 0 && n.Random.Float64()*first.CopyOneIn < 1 {
		q := *p
		q.CopyOf = p
		n.at(exit+1+n.Random.Int64N(3*usec), func() { n.middle(&q) })
	}
}

func (n *Network) middle(p *Packet) {
	p.Passed = n.now
	n.Tap(p, n.now)
	c := p.Half.Conn
	exit, lost, corrupted := c.Path.Segments[p.From][1].pass(n.Random, p, n.now, c.bits(p))
	switch {
	case p.Fate == CorruptedBefore:
	case lost:
		p.Fate = LostBehind
		return
	case corrupted:
		p.Fate = CorruptedBehind
	}
	n.at(exit, func() { n.arrive(p) })
}

func (n *Network) arrive(p *Packet) {
	c := p.Half.Conn
	to := p.From ^ 1
	switch {
	case p.Fate != InFlight:
		return
	case c.Host[to].down(n.now):
		p.Fate = Ignored
		return
	}
	p.Fate, p.Arrived = Delivered, n.now
	if p.CE && p.data() && c.NIC.Notifies && (c.notified[to] == 0 || n.now-c.notified[to] >= c.NIC.NotifyEvery) {
		c.notified[to] = n.now
		n.transmit(&Packet{Half: p.Half, From: to, Kind: Notification, Opcode: 0x81, Payload: 16})
	}
	switch p.Kind {
	case Request:
		p.Half.request(p)
	case Response:
		p.Half.response(p)
	default:
		if c.NIC.Obeys {
			c.pace[to].slow(n.now, c.NIC.Rate)
		}
	}
}

// Run runs until nothing is left to do, a time, or so many packets.
func (n *Network) Run(until int64, packets int) {
	for n.now < until && n.Sent < packets && n.step() {
	}
}

// pacer is the rate of a sender that obeys CNPs, in the manner of DCQCN's reaction point.
type pacer struct {
	rate, target float64 // bits/s; 0: unlimited
	cut, raised  int64   // when
	next         int64   // when it may send
}

func (p *pacer) slow(now int64, line float64) {
	if p.rate == 0 {
		p.rate, p.target = line, line
	}
	if p.cut != 0 && now-p.cut < 50*usec {
		return
	}
	p.target = p.rate
	p.rate = max(p.rate/2, line/1000)
	p.cut, p.raised = now, now
}

// after is when a sender may send next, after a packet of so many bits.
func (p *pacer) sent(now int64, bits float64, line float64) {
	if p.rate == 0 {
		p.next = now
		return
	}
	const every = 300 * usec
	for now-p.raised >= every && p.rate < line {
		p.raised += every
		p.target = min(p.target+line/200, line)
		p.rate = (p.rate + p.target) / 2
	}
	p.next = max(now, p.next) + int64(bits/p.rate*1e9)
}

// String describes a connection.
func (c *Conn) String() string {
	n := c.NIC
	return fmt.Sprintf("%v QP %d, %v QP %d: %s, PSNs from %#x and %#x, ports %v, round trip %v, time-out %v (doubling %v), window %d, READs %d, MTU %d, selective %v (tolerance %v), identified %v, AckEvery %d, AckEach %v, AckDelay %v, rate %.3g; requests %d and %d; gave up %v %v",
		c.Host[0].Addr, c.QP[0], c.Host[1].Addr, c.QP[1], n.Name, c.Half[0].First, c.Half[1].First, c.Port, time.Duration(c.Path.Trip()), time.Duration(n.TimeOut), n.Doubling,
		n.Window, n.MaxReads, n.MTU, n.Selective, time.Duration(n.Tolerance), n.Identified, n.AckEvery, n.AckEach, time.Duration(n.AckDelay), n.Rate,
		len(c.Half[0].requests), len(c.Half[1].requests), c.Half[0].GaveUp, c.Half[1].GaveUp)
}
