// Package attach connects a fleet.Member to a dataplane: the gateway's on devices, and the simulator's.
package attach

import (
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/dataplane/respond"
	"github.com/cnpgate/cnpgate/fleet"
	"github.com/cnpgate/cnpgate/fleet/wire"
	"github.com/cnpgate/cnpgate/flowtable"
)

// Queue is a class of a port's queue whose F is learned or shared.
type Queue struct {
	Port, Class int
	Name        string // of the port
	Bottleneck  string // that it shares with other gateways; "": none
}

// Plane is a fleet.Plane.
type Plane struct {
	plane  *dataplane.Dataplane
	queues []Queue
	unix   func() int64
	read   []uint64 // notifications, by worker
	piece  []notify.NotificationRecord
}

// New connects to a dataplane. unix is the time in ns by the clock of its notifications.
func New(d *dataplane.Dataplane, queues []Queue, unix func() int64) *Plane {
	return &Plane{plane: d, queues: queues, unix: unix, read: make([]uint64, d.Workers()), piece: make([]notify.NotificationRecord, 32)}
}

// Notified appends the notifications that were sent since the last call: some of each worker, and if there are more, the latest.
func (p *Plane) Notified(to []wire.Notice) []wire.Notice {
	now := p.unix()
	for i := range p.read {
		history := p.plane.Worker(i).Notifications()
		if end := history.Recorded(); end-p.read[i] > uint64(len(p.piece)) {
			p.read[i] = end - uint64(len(p.piece))
		}
		n, next := history.Read(p.read[i], p.piece)
		p.read[i] = next
		for j := range p.piece[:n] {
			r := &p.piece[j]
			if r.Outcome != counters.Emitted || r.Cause == 0 {
				continue
			}
			to = append(to, wire.Notice{
				Hosts: wire.Hosts{From: r.Key.Src, To: r.Key.Dst, Scope: r.Key.Scope().Named()}, QP: r.Key.DestQP,
				Kind: uint8(r.Format), Action: uint8(r.Decision.Action), Parameter: r.Decision.Parameter,
				Age: uint32(min(max(now-r.Time, 0)/1000, 1<<31)), Rate: float32(p.plane.Shared().FairRate(int(r.Out), int(r.Class))),
			})
		}
	}
	return to
}

// Elsewhere says that another gateway has notified a sender, and of what rate.
func (p *Plane) Elsewhere(n *wire.Notice) {
	k := flowtable.Key{Src: n.From, Dst: n.To, DestQP: n.QP}
	k.SetScope(n.Scope)
	p.plane.NotifiedElsewhere(&k, p.unix()-int64(n.Age)*1000, n.Rate)
}

// Bottlenecks appends what arrives at the shared queues.
func (p *Plane) Bottlenecks(to []wire.Arrival) []wire.Arrival {
	for _, q := range p.queues {
		if q.Bottleneck == "" {
			continue
		}
		a := p.plane.Shared().Arrivals(q.Port, q.Class)
		to = append(to, wire.Arrival{
			Bottleneck: fleet.Bottleneck(q.Bottleneck), Class: uint8(q.Class), Flows: a.Flows, Depth: p.plane.Port(q.Port).Depth[q.Class],
			Largest: float32(a.Largest), Line: float32(p.plane.Policy().Ports[q.Port].Law.Line),
		})
	}
	return to
}

// Share gives the queues of a bottleneck what others do there.
func (p *Plane) Share(bottleneck uint64, class uint8, s fleet.Sum) {
	for _, q := range p.queues {
		if q.Bottleneck == "" || q.Class != int(class) || fleet.Bottleneck(q.Bottleneck) != bottleneck {
			continue
		}
		if s.Members == 0 {
			p.plane.Shared().SetShare(q.Port, q.Class, nil)
			continue
		}
		p.plane.Shared().SetShare(q.Port, q.Class, &respond.Share{Flows: s.Flows, Depth: s.Depth, Line: s.Line, Largest: s.Largest, Late: s.Late})
	}
}

// Delays appends the delays that were measured.
func (p *Plane) Delays(to []wire.Delay) []wire.Delay {
	for _, q := range p.queues {
		if a := p.plane.Shared().Arrivals(q.Port, q.Class); a.Loop > 0 {
			to = append(to, wire.Delay{Queue: q.hash(), Class: uint8(q.Class), Loop: uint64(a.Loop)})
		}
	}
	return to
}

// Learn takes a delay of another gateway, for a queue with the same name.
func (p *Plane) Learn(d *wire.Delay) {
	for _, q := range p.queues {
		if q.hash() == d.Queue && q.Class == int(d.Class) && d.Loop > 0 {
			p.plane.Shared().LearnLoop(q.Port, q.Class, int64(d.Loop))
		}
	}
}

func (q *Queue) hash() uint64 {
	if q.Bottleneck != "" {
		return fleet.Bottleneck(q.Bottleneck)
	}
	return fleet.Bottleneck(q.Name)
}
