package dataplane

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// UnresponsiveSender is a sender that doesn't react to notifications.
type UnresponsiveSender struct {
	Host  packet.Host
	Port  int   // egress port of its flows
	Since int64 // when that was noticed first, ns by the workers' clock
	Last  int64 // and last
}

// maxUnresponsive bounds the unresponsive senders that are kept; the one that was noticed longest ago is replaced.
const maxUnresponsive = 256

// unresponsiveSenders are those of all workers. A worker never waits for the lock: what it can't note, it notes at the next window of a flow.
type unresponsiveSenders struct {
	found atomic.Uint64 // so far
	lock  sync.Mutex
	of    [maxUnresponsive]UnresponsiveSender
	n     int
}

// note adds or updates a sender. isNew is false if it was known; ok is false if another goroutine holds the lock.
func (u *unresponsiveSenders) note(host packet.Host, port int, now int64) (isNew, ok bool) {
	if !u.lock.TryLock() {
		return false, false
	}
	defer u.lock.Unlock()
	oldest := 0
	for i := range u.of[:u.n] {
		if u.of[i].Host == host {
			u.of[i].Last = now
			return false, true
		}
		if u.of[i].Last < u.of[oldest].Last {
			oldest = i
		}
	}
	if u.n < maxUnresponsive {
		oldest = u.n
		u.n++
	}
	u.of[oldest] = UnresponsiveSender{host, port, now, now}
	u.found.Add(1)
	return true, true
}

// remove forgets a sender that has reacted. It returns false if another goroutine holds the lock.
func (u *unresponsiveSenders) remove(host packet.Host) bool {
	if !u.lock.TryLock() {
		return false
	}
	defer u.lock.Unlock()
	for i := range u.of[:u.n] {
		if u.of[i].Host == host {
			u.n--
			u.of[i] = u.of[u.n]
			return true
		}
	}
	return true
}

// Unresponsive returns the senders that don't react to notifications, and how many were found so far. Any goroutine may call it.
func (d *Dataplane) Unresponsive() (senders []UnresponsiveSender, found uint64) {
	u := &d.unresponsive
	if found = u.found.Load(); found == 0 {
		return nil, 0
	}
	u.lock.Lock()
	defer u.lock.Unlock()
	return slices.Clone(u.of[:u.n]), found
}

// unresponsiveAgain is how often a sender that stays unresponsive is noted, ns.
const unresponsiveAgain = 100_000_000

// noteReaction notes whether a sender of flows that leave by a port is unresponsive.
func (w *Worker) noteReaction(host packet.Host, port int, s *lawSender) {
	switch {
	case s.reaction.Unresponsive():
		if s.noted != 0 && w.now-s.noted < unresponsiveAgain {
			return
		}
		isNew, ok := w.plane.unresponsive.note(host, port, w.now)
		if ok {
			s.noted = w.now
		}
		if isNew {
			w.counters.add(port, SendersUnresponsive, 1)
		}
	case s.noted != 0 && w.plane.unresponsive.remove(host):
		s.noted = 0
	}
}
