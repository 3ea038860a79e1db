package synth

import (
	"math"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/splitmix"
	"github.com/cnpgate/cnpgate/internal/transport"
)

// Transport services, in the order of Transports.
const (
	RC  = transport.RC
	UC  = transport.UC
	UD  = transport.UD
	XRC = transport.XRC
)

// Conn is the truth about a connection. It is live from Start to End; its packets may pass the tap for some time after End. A UD
// "connection" is one UD QP on each side; each sends to all QPs of the other side.
type Conn struct {
	Transport transport.Service
	Host      [2]packet.Addr // by End, as QP, StartPSN and Port
	QP        [2]uint32
	StartPSN  [2]uint32
	Port      [2]uint16 // UDP source port of the end's packets, unless PortsSpray
	VID       uint16    // 0: untagged
	TPID      uint16    // of the tag; 0: untagged
	ByCM      bool      // set up by RDMA-CM
	Active    End       // which end set it up
	Requests  [2]bool   // which end sends requests
	Seen      [2]bool   // by sending end: its packets pass the tap
	Start     int64     // ns; math.MaxInt64: not yet, or it was never established
	End       int64     // ns, when the hosts' state ends; packets may still be on the path; math.MaxInt64: not yet
	NextPSN   [2]uint32 // by sending end, once the connection has ended: one past the highest PSN that it sent
	Packets   [2]uint32 // by sending end: packets that the tap has seen, including MADs
	Before    int32     // the connection that it replaced, -1 for none
	Refused   bool      // by a REJ
	Failed    bool      // it failed after many time-outs, perhaps before it was established
	near      [2]uint32 // by sending end: the PSN that StartPSN is close to, with PSNNear
	place     [2]int32  // of the hosts
	slot      int32     // its number among the simultaneous connections
	age       int32     // generations before it
}

// live is the state of a live connection. It is reused for later connections.
type live struct {
	t       *Traffic
	id      int32
	rng     rng
	service transport.Service
	up      bool // data may flow
	closing bool
	offset  int64   // fixed delay of its packets on each half of the path, ns
	speed   float64 // of its clock
	sides   [2]side
	source  uint16 // the active side's RDMA-CM port
	leaving bool   // one end has sent DREQ
}

// side is an end of a live connection.
type side struct {
	t   *Traffic
	l   *live
	end End
	cm  manager
	sender
	answerer
	requester            transport.Requester
	responder            transport.Responder
	dead                 bool  // it sends nothing more
	lastTap, lastArrival int64 // of its packets: they never overtake each other
	lastCNP              int64
}

// nextPSN is one past the highest PSN that the side sent.
func (s *side) nextPSN() uint32 {
	una, n := s.requester.InFlight()
	return (una + n) & packet.PSNMask
}

// open makes the first connection of a slot.
func (t *Traffic) open(slot int) {
	r := newRNG(t.c.Seed ^ splitmix.Mix(uint64(slot)+1))
	w := t.c.Transports
	service := []transport.Service{RC, UC, UD, XRC}[r.weighted([]int{w.RC, w.UC, w.UD, w.XRC})]
	c := Conn{Transport: service, Before: -1, slot: int32(slot)}
	tenant := 0
	if t.c.Tenants > 0 {
		tenant = slot % t.c.Tenants
		slot /= t.c.Tenants
	}
	fabric := slot % t.c.Hosts[Fabric]
	wan := slot / t.c.Hosts[Fabric] % t.c.Hosts[WAN]
	c.place = [2]int32{int32(tenant*t.c.Hosts[Fabric] + fabric), int32(tenant*t.c.Hosts[WAN] + wan)}
	c.QP = [2]uint32{t.newQP(Fabric, c.place[Fabric]), t.newQP(WAN, c.place[WAN])}
	start := r.upTo(t.c.Spread)
	if t.c.Schedule == Lockstep {
		start += int64(c.slot) * max(1, t.c.Gap/int64(t.c.Connections))
	}
	t.add(c, r, start)
}

// add adds a connection that starts at a time.
func (t *Traffic) add(c Conn, r rng, start int64) {
	id := int32(len(t.conns))
	for end := range End(2) {
		h := &t.hosts[end][c.place[end]]
		c.Host[end], c.TPID, c.VID = h.addr, h.tag.tpid, h.tag.vid
	}
	c.Start, c.End = math.MaxInt64, math.MaxInt64
	c.Active = End(r.Below(2))
	t.chooseRequesters(&c, &r)
	t.chooseStartPSNs(&c, &r)
	t.chooseSight(&c, &r)
	c.ByCM = t.c.CM && r.hit(t.c.Managers.Share)
	l := t.newLive(id, &c, r)
	t.choosePorts(&c, l)
	t.conns = append(t.conns, c)
	t.live = append(t.live, l)
	t.shown = append(t.shown, t.templates(&c))
	if c.Transport == UD {
		t.datagram = append(t.datagram, id)
	}
	t.queue.push(start, taskStart, uint32(id))
	if ahead := t.c.Attack.Managers.Ahead; ahead > 0 && start-ahead >= t.now {
		t.queue.push(start-ahead, taskForesee, uint32(id))
	}
}

func (t *Traffic) chooseRequesters(c *Conn, r *rng) {
	switch {
	case c.Transport == UD || c.Transport != XRC && t.c.Requesters == FromBoth:
		c.Requests = [2]bool{true, true}
		return
	case c.Transport == XRC:
		c.Requests[c.Active] = true
		return
	case t.c.Requesters == FromEither:
		c.Requests[r.Below(2)] = true
		return
	}
	c.Requests[t.c.Requesters] = true // FromFabric and FromWAN have the numbers of the ends
}

func (t *Traffic) chooseStartPSNs(c *Conn, r *rng) {
	for end := range c.StartPSN {
		switch t.c.StartPSN {
		case PSNRandom:
			c.StartPSN[end] = uint32(r.Below(1 << 24))
		case PSNWrap:
			c.StartPSN[end] = 1<<24 - 1 - uint32(r.Below(64))
		case PSNEqual:
			c.StartPSN[end] = uint32(r.Below(1 << 24))
			c.StartPSN[1-end] = c.StartPSN[end]
		case PSNNear:
			near := t.c.Near
			c.StartPSN[end] = (c.near[end] - near[0] + uint32(r.Below(uint64(near[0]+near[1])+1))) & packet.PSNMask
			if c.Before < 0 {
				c.StartPSN[end] = uint32(r.Below(1 << 24))
			}
		}
	}
}

func (t *Traffic) chooseSight(c *Conn, r *rng) {
	sight := t.c.Sight
	if sight == SeeMixed {
		sight = Sight(r.Below(3))
	}
	forward := c.Active
	if c.Requests[0] != c.Requests[1] {
		forward = Fabric
		if c.Requests[WAN] {
			forward = WAN
		}
	}
	c.Seen = [2]bool{true, true}
	switch sight {
	case SeeForward:
		c.Seen[1-forward] = false
	case SeeReverse:
		c.Seen[forward] = false
	}
}

func (t *Traffic) newLive(id int32, c *Conn, r rng) *live {
	var l *live
	if n := len(t.spare); n > 0 {
		l = t.spare[n-1]
		t.spare = t.spare[:n-1]
	} else {
		l = new(live)
	}
	*l = live{t: t, id: id, rng: r, service: c.Transport, speed: 1}
	l.offset = l.rng.upTo(t.c.ConnJitter)
	if t.c.Drift > 0 {
		l.speed += t.c.Drift * (2*float64(l.rng.Below(1<<32))/(1<<32) - 1)
	}
	for end := range l.sides {
		s := &l.sides[end]
		s.t, s.l, s.end = t, l, End(end)
		s.requester.Start(&t.transport, &t.counted, l.service, c.StartPSN[end], nil)
		s.responder.Start(&t.transport, &t.counted, l.service, c.StartPSN[1-end])
		s.sends = c.Requests[end]
		s.lastCNP = math.MinInt64 / 2
	}
	return l
}

// start sets a connection up, by its communication managers or by means that the tap doesn't see.
func (t *Traffic) start(id int32) {
	l := t.live[id]
	if t.conns[id].ByCM {
		l.connect()
		return
	}
	l.sides[Fabric].establish()
	l.sides[WAN].establish()
}

// establish lets an end send.
func (s *side) establish() {
	if !s.l.up {
		s.l.up = true
		s.t.conns[s.l.id].Start = s.t.now
		if s.t.c.Lifetime > 0 {
			s.t.queue.push(s.t.now+s.t.c.Lifetime, taskClose, uint32(s.l.id))
		}
	}
	if s.sends && !s.ready {
		s.ready = true
		s.due = s.t.now
		if s.t.c.Schedule == Free {
			s.due += s.l.rng.upTo(s.t.c.Period)
		}
		s.armDepart(s.due)
	}
}

// doneIfDone ends a connection that has nothing left to send, once its last packets have arrived.
func (l *live) doneIfDone() {
	for end := range l.sides {
		if s := &l.sides[end]; s.sends && (!s.ready || s.posted < l.t.c.Messages || !s.requester.Done()) {
			return
		}
	}
	if !l.closing {
		l.closing = true
		l.t.queue.push(l.t.now+2*(l.t.c.Delay[0]+l.t.c.Delay[1]), taskClose, uint32(l.id))
	}
}
