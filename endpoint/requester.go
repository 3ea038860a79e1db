package endpoint

import (
	"github.com/cnpgate/cnpgate/internal/transport"
)

// canRequest reports whether the requester has a packet that it may send at now.
func (h *Host) canRequest(now int64, q *qp) bool {
	if q.dead || q.requester.Idle() && !h.post(now, q) {
		return false
	}
	if until := q.requester.HeldUntil(); until > now {
		h.arm(q, until)
		return false
	}
	return q.requester.Ready(now, h.limit(now, q))
}

// limit is how many PSNs the QP may have in flight.
func (h *Host) limit(now int64, q *qp) uint64 {
	limit := uint64(maxInFlight)
	if h.c.SelectiveRepeat {
		limit = transport.HeldPSNs
	}
	if h.c.Window > 0 {
		mtu := uint64(h.c.MTU)
		limit = min(limit, (h.window(now, q)+mtu-1)/mtu)
	}
	return limit
}

// window is how many bytes the QP may have in flight.
func (h *Host) window(now int64, q *qp) uint64 {
	w := uint64(h.c.Window)
	if h.c.VariableWindow {
		w = uint64(float64(h.c.Window) * q.flow.Rate(now) / float64(h.c.LineRate))
	}
	return max(1, w)
}

// request writes the next request packet of the QP to out.
func (h *Host) request(now int64, q *qp, out []byte) (n, length int) {
	p := q.requester.Send(now, h.limit(now, q))
	if q.Transport == RC && q.timer == 0 {
		h.arm(q, now+h.c.Timeout)
	}
	return h.putRequest(q, &p, out)
}

// arm makes the QP's timer expire at this time at the latest.
func (h *Host) arm(q *qp, at int64) {
	if q.timer != 0 && q.timerAt <= at {
		return
	}
	q.timerAt = at
	h.timers.set(q, &q.timer, at)
}

// timerEnds retransmits if nothing was acknowledged for Timeout, and posts messages that are due.
func (h *Host) timerEnds(now int64, q *qp) {
	q.timerAt = never
	if q.dead {
		return
	}
	next, failed := q.requester.Expire(now)
	if failed {
		h.fail(now, q)
		return
	}
	if next > 0 {
		h.arm(q, next)
	}
	h.schedule(now, q)
}

// Refusal is the syndrome of the NAK with which the peer refused a request of a QP for good (IBTA 9.7.5.2), 0 if it didn't.
func (h *Host) Refusal(number uint32) uint8 {
	if q := h.byNumber[number]; q != nil {
		return q.refused
	}
	return 0
}

// fail gives up a QP: all its messages fail.
func (h *Host) fail(now int64, q *qp) {
	q.dead = true
	q.requester.Fail(now)
	q.streams.Clear()
}
