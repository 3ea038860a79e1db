package dataplane

import (
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
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
	w.work += b.Sent
	if len(b.Lost) > 0 {
		w.countLost(port)
	}
	w.trace.left(b.Tx[:b.Sent], b.Lost)
	left := q.Complete(w.now, b.Tx, b.Sent)
	if q.Offered.Ahead > 0 {
		w.plane.links[port].Complete(left.Ahead, len(b.Lost) > 0 && b.Lost[0].Place == 0)
	}
	if left.Notifications > 0 {
		w.notificationsSent(port, left.Notifications)
	}
	if left.Frames > 0 {
		w.countLeft(port, left.Frames, left.Bytes)
	}
	b.Tx, b.Sent = b.Tx[:0], 0
}

// countLeft counts frames that have left the queue of a port.
func (w *Worker) countLeft(port, frames int, bytes uint64) {
	if w.ports[port].Tap {
		w.counters.add(port, ConsumedTapped, uint64(frames))
		return
	}
	w.counters.add(port, TxPackets, uint64(frames))
	w.counters.add(port, TxBytes, bytes)
}

// tagHost is the first tag of frames that the gateway sends as a host, in the order of host.Verdict. Those before it are notifications'.
const tagHost = flowtable.Index(packet.SentNotifications)

// sentAs returns the counter of sent frames with a tag.
func sentAs(tag flowtable.Index) Counter {
	if tag >= tagHost {
		return STAMPSentFirst + Counter(tag-tagHost)
	}
	return SentFirst + Counter(tag)
}

// countNotSent counts that a frame with a tag is not sent, with the reason.
func (w *Worker) countNotSent(port int, tag flowtable.Index, reason Suppression) {
	switch {
	case tag >= tagHost+flowtable.Index(host.ARP):
		w.counters.add(port, AnswersNotSent, 1)
		return
	case tag >= tagHost:
		w.counters.add(port, STAMPNotSent, 1)
		return
	}
	w.suppress(port, reason)
}

// notificationsSent removes the first n notifications of a port, which were sent, from its queue, and counts them.
func (w *Worker) notificationsSent(port, n int) {
	r := &w.egress[port].Notifications
	for n > 0 {
		_, which := r.Front(n)
		same := equalAhead(which)
		if tag := which[0]; tag.Index < tagHost {
			w.histograms.ports[port].reaction.add(sinceStamp(w.now, tag.Generation), uint64(same))
		}
		w.counters.add(port, sentAs(which[0].Index), uint64(same))
		n -= same
		r.Drop(same)
	}
}

// equalAhead is the number of tags that are the same as the first, before one that is not: those of a burst usually are.
func equalAhead(tags []flowtable.Ref) int {
	for i := range tags {
		if tags[i] != tags[0] {
			return i
		}
	}
	return len(tags)
}

// offer gives the device the frames that may start now.
func (w *Worker) offer(port int) {
	b, q := &w.batch.Ports[port], &w.egress[port]
	tx, paused := q.List(), egress.ClassSet(0)
	if l := w.plane.links[port]; l != nil {
		if w.id == 0 {
			tx = l.Announce(w.now, &w.egress[w.ports[port].Peer], w.batch, tx)
			l.Watch(w.now)
		}
		if emptied := l.Emptied(); emptied != 0 {
			w.emptyClasses(port, emptied)
		}
		paused = l.Paused(w.now, w.policy.Ports[port].Queue.ClassOf[w.policy.Build.DSCP&63])
	}
	b.Tx = q.Offer(w.now, paused, tx)
	w.work += len(b.Tx)
}

// emptyClasses drops the frames that wait in the classes of a set, as far as the step's list of freed buffers has space: at least as many
// as a step receives.
func (w *Worker) emptyClasses(port int, set egress.ClassSet) {
	q := &w.egress[port]
	for class := range q.Classes {
		if !set.Has(class) {
			continue
		}
		n := min(q.Classes[class].Len(), cap(w.batch.Free)-len(w.batch.Free))
		for range n {
			w.drop(port, DroppedPFCWatchdog, q.Classes[class].Leave())
		}
		w.work += n
	}
}
