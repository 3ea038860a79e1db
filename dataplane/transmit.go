package dataplane

import (
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
)

// completeTransmits removes the frames that the device has sent from the queues. Refused frames stay queued, in order, and their time on
// the line is returned.
func (w *Worker) completeTransmits(port int) {
	q, b := &w.egress[port], &w.batch.Ports[port]
	if b.Unusable.Frames > 0 {
		w.countNotHandedOver(port, DroppedUnusable, b.Unusable)
	}
	if b.Unfinished.Frames > 0 {
		w.countNotHandedOver(port, DroppedUnfinished, b.Unfinished)
	}
	if len(b.Tx) == 0 {
		return
	}
	if b.Sent < len(b.Tx) {
		q.line.giveBack(b.Tx[max(b.Sent, q.offered[offeredPFC]):], &q.fraction)
		q.since = w.now - maxLateness // they catch up, as if the device had not been asked
	}
	w.work += b.Sent
	if len(b.Lost) > 0 {
		w.countLost(port)
	}
	left := b.Sent
	if q.offered[offeredPFC] > 0 {
		q.link.completePFC(b.Sent > 0, len(b.Lost) > 0 && b.Lost[0].Place == 0)
		left = max(left-1, 0)
	}
	if n := min(left, q.offered[offeredNotifications]); n > 0 {
		w.notificationsSent(port, n)
		left -= n
	}
	for class := range q.classes {
		if n := min(left, q.offered[offeredClasses+class]); n > 0 {
			w.counters.add(port, TxPackets, uint64(n))
			w.counters.add(port, TxBytes, q.leaveAll(class, n))
			left -= n
		}
	}
	b.Tx, b.Sent = b.Tx[:0], 0
}

// Tags of frames that the gateway originates: first the notifications, whose tag is their congestion.Format.
const (
	tagTest  = congestion.Formats + iota // a STAMP test packet
	tagReply                             // a STAMP reply
	tagARP                               // an ARP reply
	tagND                                // a Neighbor Advertisement
	tagEcho                              // an echo reply
	tags
)

// sentAs returns the counter of sent frames with a tag.
func sentAs(tag flowtable.Index) Counter {
	switch {
	case tag >= tagARP:
		return AnswersSentFirst + Counter(tag-tagARP)
	case tag >= tagTest:
		return STAMPSentFirst + Counter(tag-tagTest)
	}
	return SentFirst + Counter(tag)
}

// countNotSent counts that a frame with a tag is not sent, with the reason.
func (w *Worker) countNotSent(port int, tag flowtable.Index, reason Suppression) {
	switch {
	case tag >= tagARP:
		w.counters.add(port, AnswersNotSent, 1)
		return
	case tag >= tagTest:
		w.counters.add(port, STAMPNotSent, 1)
		return
	}
	w.suppress(port, reason)
}

// notificationsSent removes the first n notifications of a port, which were sent, from its queue, and counts them.
func (w *Worker) notificationsSent(port, n int) {
	r := &w.egress[port].notifications
	var sent [tags]uint64
	for n > 0 {
		_, which := r.front(n)
		for _, tag := range which {
			if sent[tag.Index]++; tag.Index < tagTest {
				w.histograms.ports[port].reaction.add(sinceStamp(w.now, tag.Generation))
			}
		}
		n -= len(which)
		r.drop(len(which))
	}
	for tag, n := range sent {
		if n > 0 {
			w.counters.add(port, sentAs(flowtable.Index(tag)), n)
		}
	}
}

// offer gives the device the frames that may start now.
func (w *Worker) offer(port int) {
	b, q := &w.batch.Ports[port], &w.egress[port]
	tx := b.Tx[:0]
	if q.link != nil {
		tx, q.paused = w.flowControl(port, q.link, tx)
	}
	b.Tx = q.offer(w.now, tx)
	w.work += len(b.Tx)
}
