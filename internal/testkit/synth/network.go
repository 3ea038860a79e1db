package synth

import (
	"github.com/cnpgate/cnpgate/internal/cm"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/splitmix"
	"github.com/cnpgate/cnpgate/internal/transport"
)

// kind is the function of a packet.
type kind uint8

const (
	request kind = iota
	ack
	answer // READ response, ATOMIC Acknowledge
	cnp
	mad
)

// flight is a packet on the path.
type flight struct {
	conn, to int32 // of the sender; of the receiver, which differs for UD only
	psn      uint32
	number   uint32 // of the requester's message, from 0; of responses, the MSN
	left     uint32 // bytes of the message from here on: the DMA length
	mad      int32  // index in mads
	aeth     packet.AETH
	octets   uint16
	port     uint16
	from     End
	kind     kind
	op       packet.Opcode
	dscp     uint8
	ecn      uint8
	ackReq   bool
	resent   bool
	lost     bool // after the tap
	marked   bool // CE after the tap
}

// launch sends a packet towards the tap.
func (t *Traffic) launch(l *live, f flight) {
	f.port = t.port(&f)
	if f.ecn == 2 && f.op.HasPayload() && t.rng.hit(t.c.CE) {
		if t.rng.Next()&1 == 0 {
			f.ecn = 3
		} else {
			f.marked = true
		}
	}
	before, after := t.lost(&f)
	if before {
		return
	}
	f.lost = after
	at := t.now + t.c.Delay[f.from] + l.offset + t.rng.upTo(t.c.PathJitter)
	if t.rng.hit(t.c.Reorder) {
		at += t.rng.upTo(t.c.ReorderDelay)
	} else {
		s := &l.sides[f.from]
		at = max(at, s.lastTap+1)
		s.lastTap = at
	}
	t.fly(f, at)
}

// fly schedules a packet to pass the tap.
func (t *Traffic) fly(f flight, at int64) { t.queue.push(at, taskTap, t.flights.put(f)) }

// lost decides at random whether a packet is lost before or after the tap.
func (t *Traffic) lost(f *flight) (before, after bool) {
	if t.rng.hit(t.c.LossBefore[f.from]) {
		return true, false
	}
	after = t.rng.hit(t.c.LossAfter[f.from])
	if f.kind > answer { // CNPs and MADs are neither requests nor responses
		return false, after
	}
	l := &t.c.RequestLoss
	if f.kind != request {
		l = &t.c.ResponseLoss
	}
	before = t.rng.hit(l.Before[f.from])
	return before, t.rng.hit(l.After[f.from]) || after
}

// tap passes a packet through the tap; true if it is seen there.
func (t *Traffic) tap(i uint32, e *Event) bool {
	f := &t.flights.items[i]
	queued := int64(0)
	if t.c.Bottleneck.Rate > 0 && f.from == t.c.Bottleneck.From && !f.lost {
		fits := false
		queued, fits = t.enqueue(f)
		f.lost = !fits
	}
	c := &t.conns[f.conn]
	seen := c.Seen[f.from] && t.now >= t.c.TapStart && t.rng.hit(t.c.Sampled)
	if seen {
		t.show(f, e)
		c.Packets[f.from]++
		if t.rng.hit(t.c.Attack.OnPath) {
			t.mimic(e)
		}
		if f.kind == mad && t.c.Attack.Managers.REP > 0 {
			t.answerFirst(f, e)
		}
	}
	if f.lost || f.idle() {
		t.flights.take(i)
		return seen
	}
	to := 1 - f.from
	at := t.now + queued + t.c.Delay[to] + t.rng.upTo(t.c.PathJitter)
	l := t.live[f.conn]
	if l != nil {
		at += l.offset
	}
	if t.rng.hit(t.c.Reorder) {
		at += t.rng.upTo(t.c.ReorderDelay)
	} else if l != nil {
		s := &l.sides[f.from]
		at = max(at, s.lastArrival+1)
		s.lastArrival = at
	}
	t.queue.push(at, taskArrive, i)
	return seen
}

// idle reports whether the packet's arrival would change nothing.
func (f *flight) idle() bool {
	service := transport.Service(f.op &^ 0x1f)
	unreliable := service == transport.UC || service == transport.UD
	return f.kind == cnp || unreliable && f.kind != mad && f.ecn != 3 && !f.marked
}

// arrive delivers a packet to its receiver, if that still exists.
func (t *Traffic) arrive(i uint32) {
	f := t.flights.take(i)
	to := 1 - f.from
	l := t.live[f.to]
	if l == nil || !l.up && f.kind != mad {
		return
	}
	if f.ecn == 3 || f.marked {
		l.sides[to].congested(&f)
	}
	switch f.kind {
	case mad:
		l.sides[to].managed(t.mads[f.mad])
	case request:
		l.sides[to].requested(&f)
	default:
		l.sides[to].acknowledged(&f)
	}
}

// congested is the receiver's notification point (IBTA Annex A17): it sends a CNP for a CE-marked packet, at a limited rate.
func (s *side) congested(f *flight) {
	if s.dead || s.t.now-s.lastCNP < s.t.c.CNPInterval {
		return
	}
	s.lastCNP = s.t.now
	s.t.launch(s.l, flight{conn: s.l.id, to: f.conn, from: s.end, kind: cnp, op: packet.CNP, dscp: cnpDSCP, octets: cnpReserved})
}

const (
	cnpReserved = 16 // bytes of zeros after the BTH of a CNP
	cnpDSCP     = 48
	dataDSCP    = 26  // of all packets except CNPs and MADs
	ackDelay    = 500 // from request to response, ns
)

// choosePorts sets a connection's source ports.
func (t *Traffic) choosePorts(c *Conn, l *live) {
	l.source = uint16(32768 + l.rng.Below(28232))
	random := [2]uint16{packet.LowestSourcePort | uint16(l.rng.Below(1<<14)), packet.LowestSourcePort | uint16(l.rng.Below(1<<14))}
	for end := range c.Port {
		switch {
		case t.c.Ports == PortsRandom || t.c.Ports == PortsSpray:
			c.Port[end] = random[0]
		case t.c.Ports == PortsAsymmetric:
			c.Port[end] = random[end]
		case t.c.Ports == PortsEqual:
			c.Port[end] = packet.LowestSourcePort
		case c.Transport == UD:
			c.Port[end] = packet.SoftRoCEPort(c.QP[end])
		case t.c.Ports == PortsFlowLabel && (c.ByCM || !t.c.CM):
			c.Port[end] = packet.LabelPort(cm.FlowLabel(l.source, cmService))
		case t.c.Ports == PortsBorrowed && len(t.conns) > 0:
			other := &t.conns[len(t.conns)-1]
			c.Port[end] = packet.SourcePort(c.QP[Fabric], other.QP[WAN])
		default:
			c.Port[end] = packet.SourcePort(c.QP[Fabric], c.QP[WAN])
		}
	}
}

// port is a packet's source port.
func (t *Traffic) port(f *flight) uint16 {
	switch {
	case f.kind == mad:
		return packet.SoftRoCEPort(packet.GSIQP)
	case f.kind == cnp:
		return 0 // as ConnectX sends it
	case t.c.Ports == PortsSpray:
		return packet.LowestSourcePort | uint16(splitmix.Mix(uint64(f.conn)<<34|uint64(f.from)<<33|uint64(f.number)|uint64(min(f.kind, ack))<<32)>>50)
	}
	return t.conns[f.conn].Port[f.from]
}

// templates are the common fields of all of a connection's packets, by sending end.
func (t *Traffic) templates(c *Conn) (both [2]packet.Parsed) {
	for end := range both {
		p := &both[end]
		*p = packet.Parsed{
			Kind: packet.RoCEv2, Family: 4, Proto: packet.ProtoUDP, EtherType: packet.EtherTypeIPv4,
			L3: packet.EthernetLen, DstPort: packet.RoCEv2Port,
			Src: c.Host[end], Dst: c.Host[1-end], DestQP: c.QP[1-end],
		}
		if c.VID != 0 {
			p.Tags, p.OuterTag = 1, packet.MakeTag(c.TPID, c.VID)
			p.L3 += packet.VLANTagLen
		}
		p.Outer, p.L4 = p.L3, p.L3+packet.IPv4Len
		if !p.Src.Is4() {
			p.Family, p.EtherType = 6, packet.EtherTypeIPv6
			p.L4 = p.L3 + packet.IPv6Len
		}
		p.BTH = p.L4 + packet.UDPLen
	}
	return both
}

// enqueue puts a packet that passes the tap now into the bottleneck. It returns how long the packet waits and is sent, in ns; false if the
// packet doesn't fit and is lost.
func (t *Traffic) enqueue(f *flight) (delay int64, fits bool) {
	b := &t.c.Bottleneck
	length := t.length(f)
	wait := max(0, t.idleAt-t.now)
	waiting := float64(wait) * float64(b.Rate) / 8e9 // bytes
	if waiting+float64(length) > float64(b.Capacity) {
		return 0, false
	}
	delay = wait + int64(float64(length)*8e9/float64(b.Rate))
	t.idleAt = t.now + delay
	return delay, true
}

// length is the length of a packet's frame in bytes without FCS.
func (t *Traffic) length(f *flight) int {
	headers := t.shown[f.conn][f.from].Ext() + f.op.HeadersLen()
	return headers + (int(f.octets)+3)&^3 + packet.ICRCLen
}
