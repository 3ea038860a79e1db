package host

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Request asks to notify the sender of a flow of this worker.
type Request struct {
	Flow  flowtable.Ref
	In    uint8 // the flow's ingress port
	Level uint8 // Congestion Level, 0 to 7
	Scope packet.Scope
	Until int64 // when it is given up, ns; it counts also while another worker has not read it yet
}

const (
	// requestSets and requestWays bound the waiting requests of a worker: those of a flow are in the set that its index names.
	requestSets = 64
	requestWays = 8
	// RequestTime is how long a request waits, ns. A flow that fills a queue sends a packet much sooner.
	RequestTime = 100e6
	// RequestsSwept is the number of slots that a step checks for requests to give up.
	RequestsSwept = 8
)

// Requests are the waiting requests of a worker: what congested nodes have asked of a proxy, until the flow's next data packet. The
// notification is built from that packet, as for a queue of this gateway: so it has the MAC addresses, the tags, the UDP port and the
// partition key that the sender uses now. Nothing in it comes from what the congested node has sent, except the Congestion Level. A sender
// that has stopped sending need not be notified.
type Requests struct {
	used [requestSets]uint8 // a bit for each request of a set, in one cache line: each packet reads its flow's while there are requests
	of   [requestSets][requestWays]Request
	hand int // the slot swept last
	N    int // requests that wait
}

// Lost is why a request is given up.
type Lost uint8

const (
	NotLost    Lost = iota
	FlowSilent      // the flow has sent no data packet in time
	Repeated        // a later one of the same flow replaces it
	NoSlot          // too many wait
)

// Put keeps a request until a data packet of its flow arrives. If the flow has one, the later level counts. A request that this makes the
// worker give up, which may be another one, is lost for a reason; in is its ingress port.
func (s *Requests) Put(r Request, now int64) (lost Lost, in uint8) {
	set := r.Flow.Index % requestSets
	if now >= r.Until { // the gateway has not been a proxy for a while
		return FlowSilent, r.In
	}
	if way, ok := s.find(r.Flow); ok {
		s.of[set][way] = r
		return Repeated, r.In
	}
	way := bits.TrailingZeros8(^s.used[set])
	if way == requestWays {
		var ok bool
		if way, ok = s.yielding(set, r.Scope); !ok {
			return NoSlot, r.In
		}
		lost, in = NoSlot, s.of[set][way].In
		s.forget(set, way)
	}
	s.used[set] |= 1 << way
	s.N++
	s.of[set][way] = r
	return lost, in
}

// May reports whether a flow may have a request.
func (s *Requests) May(flow flowtable.Ref) bool { return s.used[flow.Index%requestSets] != 0 }

// Take removes a flow's request, and returns its level; false if there is none.
func (s *Requests) Take(flow flowtable.Ref) (level uint8, ok bool) {
	way, ok := s.find(flow)
	if !ok {
		return 0, false
	}
	set := flow.Index % requestSets
	s.forget(set, way)
	return s.of[set][way].Level, true
}

// Sweep checks one slot, and gives up its request if the time is over; in is its ingress port.
func (s *Requests) Sweep(now int64) (lost Lost, in uint8) {
	s.hand = (s.hand + 1) % (requestSets * requestWays)
	set, way := flowtable.Index(s.hand/requestWays), s.hand%requestWays
	if r := &s.of[set][way]; s.used[set]>>way&1 != 0 && now >= r.Until {
		s.forget(set, way)
		return FlowSilent, r.In
	}
	return NotLost, 0
}

// find returns the way of a flow's request in its set.
func (s *Requests) find(f flowtable.Ref) (way int, ok bool) {
	set := f.Index % requestSets
	for left := s.used[set]; left != 0; left &= left - 1 {
		if way = bits.TrailingZeros8(left) % requestWays; s.of[set][way].Flow == f {
			return way, true
		}
	}
	return 0, false
}

// yielding returns the way of the oldest request, in a full set, of the VLAN or tunnel with the most of them, if a request of another one may
// take its place: that has at least two fewer. So no tenant's requests keep out another's.
func (s *Requests) yielding(set flowtable.Index, scope packet.Scope) (way int, ok bool) {
	ways, own, most := &s.of[set], 0, 0
	for i := range ways {
		if ways[i].Scope == scope {
			own++
		}
		n := 0
		for j := range ways {
			if ways[j].Scope == ways[i].Scope {
				n++
			}
		}
		if n > most || n == most && ways[i].Until < ways[way].Until {
			way, most = i, n
		}
	}
	return way, most >= own+2
}

// forget empties a slot.
func (s *Requests) forget(set flowtable.Index, way int) {
	s.used[set] &^= 1 << way
	s.N--
}
