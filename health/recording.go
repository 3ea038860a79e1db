package health

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/flowtable"
)

// Recording has the packets of one connection that a worker follows, from which a Trace is made later, outside the worker. Its memory is its owner's: the
// worker adds a packet to it while there is space, and allocates nothing.
type Recording struct {
	Of       Ends  // the connection
	Duration int64 // ns

	id    id // 0: the worker doesn't follow it
	start Connection
	began int64 // and when it ends, ns
	until int64
	list  []recorded
	full  atomic.Bool
}

// recorded is a packet of a recording, or something else that happened to the connection.
type recorded struct {
	packet Packet
	what   happening
	side   uint8 // that the packet comes from, or to which a CNP goes
	missed bool  // packets before it were not observed
}

type happening uint8

const (
	passes happening = iota
	notified
	isDropped
)

// MostRecorded bounds the packets of a recording, of 56 bytes each.
const MostRecorded = 1 << 15

// NewRecording makes a recording of a connection that ends after a time, ns.
func NewRecording(of Ends, duration int64) *Recording {
	return &Recording{Of: of, Duration: duration, list: make([]recorded, 0, MostRecorded)}
}

// Full reports whether nothing more is recorded. Any goroutine may ask.
func (r *Recording) Full() bool { return r.full.Load() }

// Begun reports whether the worker follows the connection. It is valid once the worker has answered.
func (r *Recording) Begun() bool { return r.id != 0 }

// add adds a packet of a connection.
func (r *Recording) add(e end, what happening, missed bool, p Packet) {
	switch {
	case e.id() != r.id:
	case len(r.list) == cap(r.list), p.Time > r.until:
		r.full.Store(true)
	default:
		r.list = append(r.list, recorded{p, what, uint8(e.side()), missed})
	}
}

// Record begins a recording. It reports false if another one is under way.
func (f *Follower) Record(r *Recording, now int64) bool {
	if f.recording != nil && now < f.recording.until {
		return false
	}
	f.recording, r.began, r.until = nil, now, now+r.Duration
	for side := range r.Of.End {
		e := &r.Of.End[side]
		if e.QP == 0 {
			continue
		}
		if found := f.find(e.Addr, e.QP, r.Of.Scope); found != 0 && f.at(found.id()).Ends == r.Of {
			r.id, r.start, f.recording = found.id(), *f.at(found.id()), r
			break
		}
	}
	return true
}

// EndRecording ends a recording, unless it has ended.
func (f *Follower) EndRecording(r *Recording) {
	if f.recording == r {
		f.recording = nil
	}
}

// Trace makes a trace of the requests of one end. The worker must not write the recording any more.
func (r *Recording) Trace(requester int) *Trace {
	c := r.start
	t := &Trace{Requester: requester & 1, Points: []Point{}, offset: -r.began, last: map[string]int{}, found: &c}
	t.tally = tallyOf(&c.Half[t.Requester])
	for i := range r.list {
		o := &r.list[i]
		side := int(o.side)
		if o.missed {
			c.missed()
		}
		switch o.what {
		case notified:
			c.notify(side, o.packet.Time)
			t.add(Point{PointCNP, o.packet.Time + t.offset, t.at, 1, 1})
		case isDropped:
			if side == t.Requester {
				t.add(Point{PointDropped, o.packet.Time + t.offset, t.place(o.packet.PSN), 1, 1})
			}
		default:
			t.before(side, &o.packet)
			c.Observe(side, &o.packet)
			t.after(side, &o.packet)
		}
	}
	t.settle(nil)
	t.sort()
	return t
}

// recordDrop adds a packet that the gateway has dropped; side is the requester's.
func (f *Follower) recordDrop(flow flowtable.Ref, side int, psn uint32, now int64) {
	if r := f.recording; r != nil {
		r.add(end(uint32(f.slots[flow.Index].id())<<1|uint32(side)), isDropped, false, Packet{Time: now, PSN: psn})
	}
}
