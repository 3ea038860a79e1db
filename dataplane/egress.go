package dataplane

import (
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
)

// egress is one worker's part of the queues in front of one port: notifications first, then the classes in strict priority. Its depths are
// exact; the port's are the sum of these and the other workers' published depths.
type egress struct {
	line          *line
	link          *link            // nil: no flow control
	flows         *flowtable.Table // the worker's
	notifications ring
	classes       []ring
	depth         []uint64      // bytes waiting, by class
	others        []uint64      // bytes waiting at the other workers, by class, at the start of this burst
	othersFrames  []int         // frames waiting there
	shares        []flowShares  // by class
	states        []classState  // by class
	pacer         *pacer        // nil: none
	list          []burst.Frame // empty: the backend's transmit list, for frames that don't lie side by side in one ring

	offered  [offeredClasses + account.MaxClasses]int // number of frames in Batch.Tx by origin
	paused   classSet                                 // at the last offer
	since    int64                                    // frames that wait may start from this time on, ns; 0: none have waited since the last offer
	fraction uint64                                   // of a nanosecond, see line.take
}

// Origins of the frames in Batch.Tx, in the order in which they leave.
const (
	offeredPFC = iota // 1 or 0
	offeredNotifications
	offeredClasses // and the classes that follow
)

func (q *egress) init(l *line, p *PortConfig, a *account.Table, c *Config) (err error) {
	*q = egress{line: l, flows: a.Flows, classes: make([]ring, p.Classes), depth: make([]uint64, p.Classes),
		others: make([]uint64, p.Classes), othersFrames: make([]int, p.Classes), shares: make([]flowShares, p.Classes), states: make([]classState, p.Classes)}
	if q.notifications, err = c.ring(notificationFrames); err != nil {
		return err
	}
	for i := range q.classes {
		if q.classes[i], err = c.ring(p.Frames); err != nil {
			return err
		}
		memory, err := c.Allocate(8 * (1 + p.Frames))
		if err != nil {
			return err
		}
		q.shares[i] = newFlowShares(memory, a, i)
	}
	if p.Paced == 0 {
		return nil
	}
	frames := PacedFrames(p.Paced)
	memory, err := c.Allocate(pacerSize(frames))
	if err != nil {
		return err
	}
	held := newPacer(memory, frames, p.Paced, a.Flows, c.Seed)
	q.pacer = &held
	return nil
}

func (c *Config) ring(frames int) (ring, error) {
	memory, err := c.Allocate(frames * entrySize)
	if err != nil {
		return ring{}, err
	}
	return newRing(memory), nil
}

// queued counts the waiting data frames.
func (q *egress) queued() int {
	n := 0
	for i := range q.classes {
		n += q.classes[i].n
	}
	return n
}

func (q *egress) empty() bool { return q.notifications.n == 0 && q.queued() == 0 }

// sendable counts the frames that wait and are not paused.
func (q *egress) sendable() (n int) {
	if !q.paused.has(ofNotifications) {
		n = q.notifications.n
	}
	for class := range q.classes {
		if !q.paused.has(class) {
			n += q.classes[class].n
		}
	}
	return n
}

// offer appends the frames that may start by now to tx, which may have a PFC frame, in the order in which they leave; they stay queued
// until completeTransmits. While all frames of a port are paused its line is idle, and can't catch up later.
func (q *egress) offer(now int64, tx []burst.Frame) []burst.Frame {
	q.offered = [offeredClasses + account.MaxClasses]int{offeredPFC: len(tx)}
	sendable := q.sendable()
	if sendable == 0 {
		q.since = 0
		return tx
	}
	floor := q.floor(now)
	q.since = floor
	if q.line.busy(now) {
		return tx
	}
	shaped := len(tx)
	tx, bytes := q.waiting(tx)
	n := q.line.take(now, floor, tx[shaped:], bytes, &q.fraction)
	if n == sendable {
		q.since = now // those that come next have not waited
	}
	q.divide(n)
	return tx[:shaped+n]
}

// floor is the time from which on the frames that wait may start. An idle line saves no credit: a frame that finds it idle starts now. If frames were
// offered at the last step, those that have come since may have come right after it. Frames that have waited for a late worker catch up.
func (q *egress) floor(now int64) int64 {
	switch {
	case q.othersWait():
		return now - maxLateness
	case q.since == 0:
		return now
	}
	return max(q.since, now-maxLateness)
}

// waiting appends the frames that may be sent, in order, to tx as far as it has space, and returns their bytes. The frames of one class that
// lie side by side, the usual case, are not copied: it returns them where they are.
func (q *egress) waiting(tx []burst.Frame) (list []burst.Frame, bytes uint64) {
	before := len(tx)
	if class := q.only(); class >= 0 && before == 0 {
		r := &q.classes[class]
		n := min(r.n, cap(tx))
		if front, _ := r.front(n); len(front) == n {
			return front, q.bytes(class, n)
		}
	}
	if !q.paused.has(ofNotifications) {
		tx = q.notifications.list(tx)
	}
	for i := range q.classes {
		if !q.paused.has(i) {
			tx = q.classes[i].list(tx)
		}
	}
	return tx, bytesOf(tx[before:])
}

// bytes is the total length of the first n frames of a class.
func (q *egress) bytes(class, n int) uint64 {
	if n == q.classes[class].n {
		return q.depth[class]
	}
	return q.classes[class].bytes(n)
}

// only is the class that has all frames which may be sent; below 0 if there are several, or notifications.
func (q *egress) only() int {
	only := -1
	if q.notifications.n > 0 {
		return only
	}
	for i := range q.classes {
		if q.classes[i].n > 0 && !q.paused.has(i) {
			if only >= 0 {
				return -1
			}
			only = i
		}
	}
	return only
}

// othersWait reports whether frames were waiting for the line at another worker: then the line has not been idle, and a new frame here must
// not use the time that the other worker may still use.
func (q *egress) othersWait() bool {
	for class, frames := range q.othersFrames {
		if frames > 0 && !q.paused.has(class) {
			return true
		}
	}
	return false
}

// divide records the origins of the first n listed frames, without the PFC frame.
func (q *egress) divide(n int) {
	if !q.paused.has(ofNotifications) {
		q.offered[offeredNotifications] = min(n, q.notifications.n)
		n -= q.offered[offeredNotifications]
	}
	for i := range q.classes {
		if !q.paused.has(i) {
			q.offered[offeredClasses+i] = min(n, q.classes[i].n)
			n -= q.offered[offeredClasses+i]
		}
	}
}

// leave removes the first frame of a class from the queue.
func (q *egress) leave(class int) entry {
	e := q.classes[class].pop()
	q.depth[class] -= uint64(e.frame.Len)
	if s := &q.shares[class]; s.tracked {
		s.remove(e.tag, e.frame.Len)
	}
	return e
}

// leaveAll removes the first n frames of a class from the queue and returns their bytes.
func (q *egress) leaveAll(class, n int) (bytes uint64) {
	r, s := &q.classes[class], &q.shares[class]
	if q.untrack(class, r.n-n) {
		bytes = q.bytes(class, n)
		r.drop(n)
		q.depth[class] -= bytes
		return bytes
	}
	q.unrank(class, r.n-n)
	for n > 0 {
		frames, tags := r.front(n)
		for i, t := range tags {
			bytes += uint64(frames[i].Len)
			s.remove(t, frames[i].Len)
		}
		n -= len(tags)
		r.drop(len(tags))
	}
	q.depth[class] -= bytes
	return bytes
}

// enterAll appends frames of flows, with their total bytes, to a class. The caller has checked that the ring has enough free entries.
func (q *egress) enterAll(class int, frames []burst.Frame, flows []flowtable.Ref, bytes uint64) {
	r, s := &q.classes[class], &q.shares[class]
	if r.n+len(frames) > someFrames {
		q.track(class)
	}
	r.pushAll(frames, flows)
	if s.tracked {
		for i, f := range flows {
			s.add(f.Index, s.accounts.Get(f.Index), frames[i].Len)
		}
	}
	q.depth[class] += bytes
	q.states[class].entered += uint64(len(frames))
}
