package endpoint

// schedule queues a QP that has something to send where Next finds it. It is called whenever that may have changed.
func (h *Host) schedule(now int64, q *qp) {
	h.scheduleControl(q)
	if q.inReady || q.pace != 0 || !h.canSend(now, q) {
		return
	}
	h.scheduleData(now, q)
}

// scheduleControl queues a QP that has an acknowledgement or a CNP to send.
func (h *Host) scheduleControl(q *qp) {
	if !q.inControl && (q.cnpDue || q.responder.Acknowledges()) {
		q.inControl = true
		h.control.Push(q)
	}
}

// scheduleData queues a QP that has data to send. If its pacing allows the packet before the line is free, it needs no timer.
func (h *Host) scheduleData(now int64, q *qp) {
	at := q.sendAt
	if until := q.flow.PausedUntil(); until > at {
		at = until
	}
	if at <= max(now, h.lineFree) {
		q.inReady = true
		h.ready.Push(q)
		return
	}
	h.pacing.set(q, &q.pace, at)
}

func (h *Host) canSend(now int64, q *qp) bool {
	return !q.dead && (q.responder.Answers() || h.canRequest(now, q))
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
			n, length = h.putCNP(q, out)
			h.counters.CNPsSent++
		case q.responder.Acknowledges():
			n, length = h.putACK(q, out)
		default:
			continue
		}
		h.scheduleControl(q)
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
		if !h.canSend(now, q) {
			continue
		}
		if max(q.sendAt, q.flow.PausedUntil()) > now { // slowed down or paused since it was queued
			h.scheduleData(now, q)
			continue
		}
		if q.responder.Answers() {
			n, length = h.putAnswer(q, out)
		} else {
			n, length = h.request(now, q, out)
		}
		h.pace(now, q, length)
		h.schedule(now, q)
		return n, length
	}
	return 0, 0
}

// pace computes when the QP's rate, which counts what a frame occupies on the line, allows its next packet.
func (h *Host) pace(now int64, q *qp, length int) {
	const bits = 8
	q.flow.Sent(now, length)
	q.sentAt, q.sentBits = now, float64((length+h.c.Overhead)*bits)
	q.sendAt = now + int64(q.sentBits*second/q.flow.Rate(now))
}

// repace computes that again after an instruction: a new limit applies from the last packet on, and a pause may have ended.
func (h *Host) repace(now int64, q *qp) {
	q.sendAt = q.sentAt + int64(q.sentBits*second/q.flow.Rate(now))
	h.pacing.remove(&q.pace)
	h.schedule(now, q)
}
