package fleet

import (
	"hash/fnv"
	"math"

	"github.com/cnpgate/cnpgate/fleet/wire"
)

// This file is about what gateways on one path, or in front of one bottleneck, tell each other: which senders were notified, and what
// arrives.

// Plane is what a Member needs of the dataplane. Its methods are for any goroutine, and none waits for a worker.
type Plane interface {
	// Notified appends the notifications that were sent since the last call.
	Notified(to []wire.Notice) []wire.Notice
	// Elsewhere says that another gateway has notified the sender of a flow.
	Elsewhere(n *wire.Notice)
	// Bottlenecks appends what arrives at the queues that the gateway shares with others.
	Bottlenecks(to []wire.Arrival) []wire.Arrival
	// Share says what the others do at such a queue. The zero Sum: nothing.
	Share(bottleneck uint64, class uint8, s Sum)
	// Delays appends delays of control loops that the gateway has measured, and Learn takes one of another, for a queue that has measured none.
	Delays(to []wire.Delay) []wire.Delay
	Learn(d *wire.Delay)
}

// Sum is what other gateways do at a shared bottleneck.
type Sum struct {
	Flows   float64 // number of flows that obey F
	Depth   float64 // bytes queued
	Line    float64 // rate of their lines, bytes/ns
	Largest float64 // rate of their fastest flow, bytes/ns
	Late    int64   // age of the oldest of these, ns
	Members int
}

// Bottleneck is the hash by which gateways name a bottleneck.
func Bottleneck(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}

const (
	arrivalsEvery = 2e6  // ns
	arrivalsFor   = 20e6 // what a silent member said of a bottleneck counts for so long
	delaysEvery   = 10e9
	maxShares     = 4096
	flowsUnit     = 1 << 20 // a part of a flow: sums of whole ones don't depend on the order
)

type shareKey struct {
	member     string
	bottleneck uint64
	class      uint8
}

// share is what one member said of a bottleneck.
type share struct {
	last     wire.Arrival
	sent, at int64 // when, by its clock and by this one's
	flows    float64
}

type shares struct {
	*core
	of           map[shareKey]*share
	own          []wire.Arrival
	notices      []wire.Notice
	body         []byte
	nextArrivals int64
	nextDelays   int64
}

// tick sends what is due about notifications and bottlenecks.
func (s *shares) tick() {
	if s.Plane == nil {
		return
	}
	s.notices, s.body = s.Plane.Notified(s.notices[:0]), s.body[:0]
	for i := range s.notices {
		s.body = s.notices[i].Append(s.body)
	}
	s.sendRecords(wire.Notified, "", s.body, wire.NoticeSize)
	if s.now >= s.nextArrivals {
		s.nextArrivals = s.now + arrivalsEvery
		s.own, s.body = s.Plane.Bottlenecks(s.own[:0]), s.body[:0]
		for i := range s.own {
			s.body = s.own[i].Append(s.body)
		}
		s.sendRecords(wire.Arrivals, "", s.body, wire.ArrivalSize)
		s.sum()
	}
	if s.now >= s.nextDelays {
		s.nextDelays = s.now + delaysEvery
		s.body = s.body[:0]
		for _, d := range s.Plane.Delays(nil) {
			s.body = d.Append(s.body)
		}
		s.sendRecords(wire.Learned, "", s.body, wire.DelaySize)
	}
}

// sum gives the dataplane what the others do at each bottleneck of its own.
func (s *shares) sum() {
	for i := range s.own {
		own, sum := &s.own[i], Sum{}
		for k, o := range s.of {
			if k.bottleneck != own.Bottleneck || k.class != own.Class || s.now-o.at > arrivalsFor {
				continue
			}
			sum.Flows += o.flows
			sum.Late = max(sum.Late, s.now-o.at+arrivalsEvery)
			sum.Depth += float64(o.last.Depth)
			sum.Line += float64(o.last.Line)
			sum.Largest = max(sum.Largest, float64(o.last.Largest))
			sum.Members++
		}
		s.Plane.Share(own.Bottleneck, own.Class, sum)
	}
}

// takeArrival takes what a member says of a bottleneck. The number of flows is by its own clock, so that delays of messages don't matter.
func (s *shares) takeArrival(h *wire.Header, a *wire.Arrival) {
	k := shareKey{h.Sender, a.Bottleneck, a.Class}
	o := s.of[k]
	if o == nil {
		if len(s.of) >= maxShares {
			s.stats.Full++
			return
		}
		o = &share{}
		s.of[k] = o
	}
	if elapsed := h.Time - o.sent; o.at != 0 && elapsed > 0 && elapsed < 1e9 && a.Flows >= o.last.Flows {
		o.flows = math.Round(float64(a.Flows-o.last.Flows)/float64(elapsed)*flowsUnit) / flowsUnit
	}
	o.last, o.sent, o.at = *a, h.Time, s.now
}

func (s *shares) takeNotice(n *wire.Notice) {
	if s.Plane != nil && n.Age < 1e6 {
		s.Plane.Elsewhere(n)
	}
}

func (s *shares) takeDelay(d *wire.Delay) {
	if s.Plane != nil {
		s.Plane.Learn(d)
	}
}

func (s *shares) expire() {
	for k, o := range s.of {
		if s.now-o.at > 10e9 {
			delete(s.of, k)
		}
	}
}
