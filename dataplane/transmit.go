package dataplane

import "github.com/cnpgate/cnpgate/congestion"

// completeTransmits removes what the device has sent from the queues. What it refused is still there, in order, and its time on the line is
// given back.
func (w *Worker) completeTransmits(port int) {
	q, b := &w.egress[port], &w.batch.Ports[port]
	if b.Unusable.Frames > 0 {
		w.countUnusable(port, b.Unusable)
	}
	if len(b.Tx) == 0 {
		return
	}
	if b.Sent < len(b.Tx) {
		q.line.giveBack(b.Tx[b.Sent:], &q.fraction)
	}
	w.work += b.Sent
	if len(b.Lost) > 0 {
		w.countLost(port)
	}
	left := b.Sent
	if n := min(left, q.offered[0]); n > 0 {
		w.notificationsSent(port, n)
		left -= n
	}
	for class := range q.classes {
		if n := min(left, q.offered[1+class]); n > 0 {
			w.counters.add(port, TxPackets, uint64(n))
			w.counters.add(port, TxBytes, q.leaveAll(class, n))
			q.waits[class].leave(w.now, n, q.classes[class].n)
			left -= n
		}
	}
	b.Tx, b.Sent = b.Tx[:0], 0
}

// notificationsSent removes the first n notifications of a port, which were sent, from its queue, and counts them.
func (w *Worker) notificationsSent(port, n int) {
	r := &w.egress[port].notifications
	var sent [congestion.Formats]uint64
	for n > 0 {
		_, formats := r.front(n)
		for _, format := range formats {
			sent[format]++
		}
		n -= len(formats)
		r.drop(len(formats))
	}
	for format, n := range sent {
		if n > 0 {
			w.counters.add(port, SentFirst+Counter(format), n)
		}
	}
}

// offer hands the device the frames that may start now.
func (w *Worker) offer(port int) {
	b := &w.batch.Ports[port]
	b.Tx = w.egress[port].offer(w.now, b.Tx[:0])
	w.work += len(b.Tx)
}
