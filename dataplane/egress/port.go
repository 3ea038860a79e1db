// Package egress has the queues in front of a port: notifications, traffic classes with each flow's share of them, and the line, which
// shapes. It is pure: time and memory come from its caller, which also counts what enters and leaves.
package egress

import (
	"fmt"

	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
)

// Queue has the parameters of a port's queue. A policy can change it.
type Queue struct {
	Rate     uint64    // bit/s on the line, where a frame takes 24 bytes more than its length; at least 100,000
	Capacity uint64    // bytes of frames that may wait in a class; less than 4 GiB
	Frames   int       // frames that may wait in a class
	ClassOf  [64]uint8 // class of a DSCP; frames without one go by DSCP 0
}

// Validate returns an error if workers can't use a queue with this number of classes.
func (q *Queue) Validate(classes int) error {
	switch {
	case q.Rate < 100_000:
		return fmt.Errorf("rate of %d bit/s, expected at least 100000", q.Rate)
	case q.Frames < 1 || q.Capacity < 1 || q.Capacity >= 1<<32:
		return fmt.Errorf("a queue of %d bytes and %d frames, expected at least 1 of each and less than 4 GiB", q.Capacity, q.Frames)
	}
	for dscp, class := range q.ClassOf {
		if int(class) >= classes {
			return fmt.Errorf("DSCP %d is of class %d of %d", dscp, class, classes)
		}
	}
	return nil
}

// Port is one worker's part of the queues in front of one port: notifications first, then the classes in strict priority.
type Port struct {
	Line          *Line
	Notifications Ring
	Classes       []Class
	Offered       Offered // of the last Offer

	list     []burst.Frame // empty: the backend's transmit list, for frames that don't lie side by side in one ring
	paused   ClassSet      // at the last Offer
	since    int64         // frames that wait may start from this time on, ns; 0: none have waited since the last Offer
	fraction uint64        // of a nanosecond, see Line.take
}

// Offered has the numbers of the frames in a transmit list by origin, in the order in which they leave.
type Offered struct {
	Ahead         int // those that the list had before, a PFC frame
	Notifications int
	Classes       [account.MaxClasses]int
}

// NotificationFrames bounds the queued notifications for each port and worker.
const NotificationFrames = 256

// New makes a worker's part of a port's queues. allocate returns zeroed memory, 8-byte aligned; list is the empty transmit list.
func New(l *Line, q *Queue, classes int, a *account.Accounts, list []burst.Frame, allocate func(bytes int) ([]byte, error)) (Port, error) {
	p := Port{Line: l, Classes: make([]Class, classes), list: list}
	memory, err := allocate(NotificationFrames * entrySize)
	if err != nil {
		return p, err
	}
	p.Notifications = newRing(memory)
	for i := range p.Classes {
		if memory, err = allocate(q.Frames * entrySize); err != nil {
			return p, err
		}
		p.Classes[i].Ring, p.Classes[i].published = newRing(memory), new(published)
		if memory, err = allocate(8 * (1 + q.Frames)); err != nil {
			return p, err
		}
		p.Classes[i].Shares = newShares(memory, a, i)
	}
	return p, nil
}

// List is the port's empty transmit list.
func (p *Port) List() []burst.Frame { return p.list }

// Queued counts the waiting frames.
func (p *Port) Queued() int {
	n := p.Notifications.n
	for i := range p.Classes {
		n += p.Classes[i].n
	}
	return n
}

// End counts the waiting bytes of a flow, whose account is f, as those of an ended flow.
func (p *Port) End(x flowtable.Index, f *account.Flow) {
	switch {
	case f.Spread():
		for i := range p.Classes {
			p.Classes[i].Shares.end(x, f)
		}
	case f.Queued != 0:
		p.Classes[f.Class()].Shares.end(x, f)
	}
}

// sendable counts the frames that wait and are not paused.
func (p *Port) sendable() (n int) {
	if !p.paused.Has(Notifications) {
		n = p.Notifications.n
	}
	for class := range p.Classes {
		if !p.paused.Has(class) {
			n += p.Classes[class].n
		}
	}
	return n
}

// Due is the time when the next frame that isn't paused may start, false if none waits.
func (p *Port) Due() (at int64, waits bool) { return p.Line.free.Load(), p.sendable() > 0 }

// Departs is the time when a frame that enters a class now starts on the port's line, if the given bytes are ahead of it on the line
// besides those queued, and no frame overtakes it.
func (p *Port) Departs(now int64, class int, ahead uint64) int64 {
	waits := false
	for i := range p.Classes[:class+1] {
		c := &p.Classes[i]
		ahead += c.Waiting() + uint64(c.Frames())*LineOverhead
		waits = waits || c.Frames() > 0
	}
	start := max(p.Line.free.Load(), now)
	if waits {
		start = max(p.Line.free.Load(), now-maxLateness)
	}
	ns, _ := p.Line.cost(ahead)
	return max(start+ns, now)
}

// Offer appends the frames that may start by now, and are of no paused class, to tx, which is List or has a PFC frame, in the order in which
// they leave; they stay queued until Complete. While all frames of a port are paused its line is idle, and can't catch up later.
func (p *Port) Offer(now int64, paused ClassSet, tx []burst.Frame) []burst.Frame {
	p.paused, p.Offered = paused, Offered{Ahead: len(tx)}
	sendable := p.sendable()
	if sendable == 0 {
		p.since = 0
		return tx
	}
	floor := p.floor(now)
	p.since = floor
	if p.Line.Busy(now) {
		return tx
	}
	shaped := len(tx)
	tx, bytes := p.waiting(tx)
	n := p.Line.take(now, floor, tx[shaped:], bytes, &p.fraction)
	if n == sendable {
		p.since = now // those that come next have not waited
	}
	p.divide(n)
	return tx[:shaped+n]
}

// floor is the time from which on the frames that wait may start. An idle line saves no credit: a frame that finds it idle starts now. If frames were
// offered at the last step, those that have come since may have come right after it. Frames that have waited for a late worker catch up.
func (p *Port) floor(now int64) int64 {
	switch {
	case p.othersWait():
		return now - maxLateness
	case p.since == 0:
		return now
	}
	return max(p.since, now-maxLateness)
}

// waiting appends the frames that may be sent, in order, to tx as far as it has space, and returns their bytes. The frames of one class that
// lie side by side, the usual case, are not copied: it returns them where they are.
func (p *Port) waiting(tx []burst.Frame) (list []burst.Frame, bytes uint64) {
	before := len(tx)
	if class := p.only(); class >= 0 && before == 0 {
		c := &p.Classes[class]
		n := min(c.n, cap(tx))
		if front, _ := c.Front(n); len(front) == n {
			return front, c.bytes(n)
		}
	}
	if !p.paused.Has(Notifications) {
		tx = p.Notifications.list(tx)
	}
	for i := range p.Classes {
		if !p.paused.Has(i) {
			tx = p.Classes[i].list(tx)
		}
	}
	return tx, Bytes(tx[before:])
}

// only is the class that has all frames which may be sent; below 0 if there are several, or notifications.
func (p *Port) only() int {
	only := -1
	if p.Notifications.n > 0 {
		return only
	}
	for i := range p.Classes {
		if p.Classes[i].n > 0 && !p.paused.Has(i) {
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
func (p *Port) othersWait() bool {
	for i := range p.Classes {
		if p.Classes[i].OthersFrames > 0 && !p.paused.Has(i) {
			return true
		}
	}
	return false
}

// divide records the origins of the first n listed frames, without the PFC frame.
func (p *Port) divide(n int) {
	if !p.paused.Has(Notifications) {
		p.Offered.Notifications = min(n, p.Notifications.n)
		n -= p.Offered.Notifications
	}
	for i := range p.Classes {
		if !p.paused.Has(i) {
			p.Offered.Classes[i] = min(n, p.Classes[i].n)
			n -= p.Offered.Classes[i]
		}
	}
}

// Left is what a device has sent of the frames of the last Offer.
type Left struct {
	Ahead         bool   // the frame ahead of the queues
	Notifications int    // which are still queued: the caller removes them
	Frames        int    // of the classes, where they no longer are
	Bytes         uint64 // of these
}

// Complete removes the frames of classes that the device has sent of the list tx. Refused frames stay queued, in order, and their time on
// the line is returned.
func (p *Port) Complete(now int64, tx []burst.Frame, sent int) (l Left) {
	o := &p.Offered
	if sent < len(tx) {
		p.Line.giveBack(tx[max(sent, o.Ahead):], &p.fraction)
		p.since = now - maxLateness // they catch up, as if the device had not been asked
	}
	l.Ahead = sent > 0 && o.Ahead > 0
	sent = max(sent-o.Ahead, 0)
	l.Notifications = min(sent, o.Notifications)
	sent -= l.Notifications
	for class := range p.Classes {
		if n := min(sent, o.Classes[class]); n > 0 {
			l.Frames += n
			l.Bytes += p.Classes[class].leaveAll(n)
			sent -= n
		}
	}
	return l
}

// ClassSet has a bit for each class of a port, and one for its notifications.
type ClassSet uint16

// Notifications is the bit of notifications in a ClassSet.
const Notifications = account.MaxClasses

// Has reports whether a class, or Notifications, is in the set.
func (s ClassSet) Has(class int) bool { return s&(1<<(uint(class)%16)) != 0 }
