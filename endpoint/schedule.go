package endpoint

import (
	"container/heap"

	"github.com/cnpgate/cnpgate/internal/transport"
)

// schedule queues a QP that has something to send where Next finds it. It is called whenever that may have changed.
func (q *qp) schedule(now int64) {
	q.scheduleControl()
	if q.inReady || q.paceIndex != 0 || !q.canSend(now) {
		return
	}
	q.scheduleData(now)
}

// scheduleControl queues a QP that has an acknowledgement or a CNP to send.
func (q *qp) scheduleControl() {
	if !q.inControl && (q.cnpDue || q.responder.Acknowledges()) {
		q.inControl = true
		q.h.control.Push(q)
	}
}

// scheduleData queues a QP that has data to send. If its pacing allows the packet before the line is free, it needs no timer.
func (q *qp) scheduleData(now int64) {
	at := max(q.sendAt, q.flow.PausedUntil())
	if at <= max(now, q.h.lineFree) {
		q.inReady = true
		q.h.ready.Push(q)
		return
	}
	q.h.pacing.set(q, &q.paceIndex, at)
}

func (q *qp) canSend(now int64) bool {
	return !q.dead && (q.responder.Answers() || q.canRequest(now))
}

// nextControl writes the next message of the connection manager, acknowledgement or CNP.
func (h *Host) nextControl(out []byte) (n, length int) {
	if h.manager != nil && h.manager.Pending() {
		m := h.manager.Next()
		return h.putMAD(&m, out)
	}
	for h.control.Len() > 0 {
		q := h.control.Pop()
		q.inControl = false
		switch {
		case q.dead:
			continue
		case q.cnpDue:
			q.cnpDue = false
			n, length = q.putCNP(out)
			h.counters.CNPsSent++
		case q.responder.Acknowledges():
			n, length = q.putACK(out)
		default:
			continue
		}
		q.scheduleControl()
		return n, length
	}
	return 0, 0
}

// nextData writes the next data packet. QPs that may send now take turns.
func (h *Host) nextData(now int64, out []byte) (n, length int) {
	for q := h.pacing.popDue(now); q != nil; q = h.pacing.popDue(now) {
		q.inReady = true
		h.ready.Push(q)
	}
	for range h.ready.Len() { // each QP at most once
		q := h.ready.Pop()
		q.inReady = false
		if !q.canSend(now) {
			continue
		}
		if max(q.sendAt, q.flow.PausedUntil()) > now { // slowed down or paused since it was queued
			q.scheduleData(now)
			continue
		}
		if q.responder.Answers() {
			n, length = q.putAnswer(out)
		} else {
			n, length = q.request(now, out)
		}
		q.pace(now, length)
		q.schedule(now)
		return n, length
	}
	return 0, 0
}

// pace computes when the QP's rate, which counts what a frame occupies on the line, allows its next packet.
func (q *qp) pace(now int64, length int) {
	const bits = 8
	q.flow.Sent(now, length)
	q.sentAt, q.sentBits = now, float64((length+q.h.c.Overhead)*bits)
	q.sendAt = now + int64(q.sentBits*second/q.flow.Rate(now))
}

// repace computes that again after an instruction: a new limit applies from the last packet on, and a pause may have ended.
func (q *qp) repace(now int64) {
	q.sendAt = q.sentAt + int64(q.sentBits*second/q.flow.Rate(now))
	q.h.pacing.remove(&q.paceIndex)
	q.schedule(now)
}

// canRequest reports whether the requester has a packet that it may send at now.
func (q *qp) canRequest(now int64) bool {
	if q.requester.Idle() && !q.post(now) {
		return false
	}
	if until := q.requester.HeldUntil(); until > now {
		q.arm(until)
		return false
	}
	return q.requester.Ready(now, q.limit(now))
}

// limit is how many PSNs the QP may have in flight.
func (q *qp) limit(now int64) uint64 {
	c := &q.h.c
	limit := uint64(maxInFlight)
	if c.SelectiveRepeat {
		limit = transport.HeldPSNs
	}
	if c.Window == 0 {
		return limit
	}
	window := uint64(c.Window) // bytes
	if c.VariableWindow {
		window = uint64(float64(c.Window) * q.flow.Rate(now) / float64(c.LineRate))
	}
	mtu := uint64(c.MTU)
	return min(limit, (max(1, window)+mtu-1)/mtu)
}

// request writes the next request packet of the QP to out.
func (q *qp) request(now int64, out []byte) (n, length int) {
	p := q.requester.Send(now, q.limit(now))
	if q.timer == 0 {
		q.arm(now + q.h.c.Timeout)
	}
	return q.putRequest(&p, out)
}

// arm makes the QP's timer expire at this time at the latest.
func (q *qp) arm(at int64) {
	if q.timer != 0 && q.timerAt <= at {
		return
	}
	q.timerAt = at
	q.h.timers.set(q, &q.timer, at)
}

// timerEnds retransmits if nothing was acknowledged for Timeout, and posts messages that are due.
func (q *qp) timerEnds(now int64) {
	q.timerAt = never
	if q.dead {
		return
	}
	next, failed := q.requester.Expire(now)
	if failed {
		q.fail(now)
		return
	}
	if next > 0 {
		q.arm(next)
	}
	q.schedule(now)
}

// fail gives up a QP: all its messages fail.
func (q *qp) fail(now int64) {
	q.dead = true
	q.requester.Fail(now)
	q.streams.Clear()
}

// timerHeap holds QPs by time, each at most once. The QP stores its index, so that its time can be changed.
type timerHeap struct {
	entries []timerEntry
}

type timerEntry struct {
	at    int64
	place *int32 // the QP's field for the entry's index plus 1; 0 while it isn't in the heap
	qp    *qp
}

func (t *timerHeap) first() (at int64, ok bool) {
	if len(t.entries) == 0 {
		return never, false
	}
	return t.entries[0].at, true
}

// set puts a QP into the heap, or changes its time.
func (t *timerHeap) set(q *qp, place *int32, at int64) {
	i := int(*place) - 1
	if i < 0 {
		i = len(t.entries)
		t.entries = append(t.entries, timerEntry{at, place, q})
		*place = int32(i + 1)
	}
	t.entries[i].at = at
	heap.Fix(t, i)
}

// popDue removes and returns the QP with the earliest time if that time has come; else it returns nil.
func (t *timerHeap) popDue(now int64) *qp {
	if len(t.entries) == 0 || t.entries[0].at > now {
		return nil
	}
	q := t.entries[0].qp
	t.remove(t.entries[0].place)
	return q
}

// remove removes the entry at *place, if there is one.
func (t *timerHeap) remove(place *int32) {
	i := int(*place) - 1
	if i < 0 {
		return
	}
	last := len(t.entries) - 1
	t.Swap(i, last)
	t.entries[last] = timerEntry{}
	t.entries = t.entries[:last]
	*place = 0
	if i < last {
		heap.Fix(t, i)
	}
}

// Len, Less and Swap implement heap.Interface.
func (t *timerHeap) Len() int           { return len(t.entries) }
func (t *timerHeap) Less(i, j int) bool { return t.entries[i].at < t.entries[j].at }
func (t *timerHeap) Swap(i, j int) {
	e := t.entries
	e[i], e[j] = e[j], e[i]
	*e[i].place, *e[j].place = int32(i+1), int32(j+1)
}

// Push and Pop, of heap.Interface, aren't used: they would allocate.
func (t *timerHeap) Push(any) { panic("not used") }
func (t *timerHeap) Pop() any { panic("not used") }
