package dataplane

// settle takes what the device sent out of the queues. What it refused is still there, in order, and its time on the line is
// given back.
func (w *Worker) settle(port int) {
	q, b := &w.egress[port], &w.batch.Ports[port]
	if len(b.Tx) == 0 {
		return
	}
	if b.Sent < len(b.Tx) {
		q.line.giveBack(b.Tx[b.Sent:], &q.fraction)
	}
	w.work += b.Sent
	left := b.Sent
	for n := min(left, q.offered[0]); n > 0; n-- {
		w.counters.add(port, SentFirst+Counter(q.notifications.pop().tag), 1)
		left--
	}
	for class := range q.classes {
		if n := min(left, q.offered[1+class]); n > 0 {
			w.counters.add(port, TxPackets, uint64(n))
			w.counters.add(port, TxBytes, q.leaveAll(class, n, w.flows))
			left -= n
		}
	}
	b.Tx, b.Sent = b.Tx[:0], 0
}

// offer hands the device the frames that may start now.
func (w *Worker) offer(port int) {
	b := &w.batch.Ports[port]
	b.Tx = w.egress[port].offer(w.now, b.Tx[:0])
	w.work += len(b.Tx)
}
