package dataplane

import (
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/dataplane/link"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// transmitter is the stage that gives frames to the device, and completes those that it has sent.
type transmitter struct {
	*stage.State
	links      []*link.Link // by port; nil where a port has no flow control
	histograms *histograms
	inspector  *inspector
}

// completeTransmits removes the frames that the device has sent from the queues. Refused frames stay queued, in order, and their time on
// the line is returned.
func (t *transmitter) completeTransmits(port int) {
	q, b := &t.Egress[port], &t.IO.Ports[port]
	if b.Unusable.Frames > 0 {
		t.countNotHandedOver(port, counters.DroppedUnusable, b.Unusable)
	}
	if b.Unfinished.Frames > 0 {
		t.countNotHandedOver(port, counters.DroppedUnfinished, b.Unfinished)
	}
	if len(b.Tx) == 0 {
		return
	}
	t.Moved += b.Sent
	if len(b.Lost) > 0 {
		t.countLost(port)
	}
	t.Trace.Left(b.Tx[:b.Sent], b.Lost)
	left := q.Complete(t.Now, b.Tx, b.Sent)
	if q.Offered.Ahead > 0 {
		t.links[port].Complete(left.Ahead, len(b.Lost) > 0 && b.Lost[0].Place == 0)
	}
	if left.Notifications > 0 {
		t.notificationsSent(port, left.Notifications)
	}
	if left.Frames > 0 {
		t.countLeft(port, left.Frames, left.Bytes)
	}
	b.Tx, b.Sent = b.Tx[:0], 0
}

// countLeft counts frames that have left the queue of a port.
func (t *transmitter) countLeft(port, frames int, bytes uint64) {
	if t.Ports[port].Tap {
		t.Counters.Add(port, counters.ConsumedTapped, uint64(frames))
		return
	}
	t.Counters.Add(port, counters.TxPackets, uint64(frames))
	t.Counters.Add(port, counters.TxBytes, bytes)
}

// tagHost is the first tag of frames that the gateway sends as a host, in the order of host.Verdict. Those before it are notifications'.
const tagHost = flowtable.Index(packet.SentNotifications)

// sentAs returns the counter of sent frames with a tag.
func sentAs(tag flowtable.Index) counters.Counter {
	if tag >= tagHost {
		return counters.STAMPSentFirst + counters.Counter(tag-tagHost)
	}
	return counters.SentFirst + counters.Counter(tag)
}

// countNotSent counts that a frame with a tag is not sent, with the reason.
func (t *transmitter) countNotSent(port int, tag flowtable.Index, reason counters.Suppression) {
	switch {
	case tag >= tagHost+flowtable.Index(host.ARP):
		t.Counters.Add(port, counters.AnswersNotSent, 1)
		return
	case tag >= tagHost:
		t.Counters.Add(port, counters.STAMPNotSent, 1)
		return
	}
	t.Suppress(port, reason)
}

// notificationsSent removes the first n notifications of a port, which were sent, from its queue, and counts them.
func (t *transmitter) notificationsSent(port, n int) {
	r := &t.Egress[port].Notifications
	for n > 0 {
		_, which := r.Front(n)
		same := equalAhead(which)
		if tag := which[0]; tag.Index < tagHost {
			t.histograms.ports[port].reaction.add(stage.SinceStamp(t.Now, tag.Generation), uint64(same))
		}
		t.Counters.Add(port, sentAs(which[0].Index), uint64(same))
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
func (t *transmitter) offer(port int) {
	b, q := &t.IO.Ports[port], &t.Egress[port]
	tx, paused := q.List(), egress.ClassSet(0)
	if l := t.links[port]; l != nil {
		if t.ID == 0 {
			tx = l.Announce(t.Now, &t.Egress[t.Ports[port].Peer], t.IO, tx)
			l.Watch(t.Now)
		}
		if emptied := l.Emptied(); emptied != 0 {
			t.emptyClasses(port, emptied)
		}
		paused = l.Paused(t.Now, t.Policy.Ports[port].Queue.ClassOf[t.Policy.Build.DSCP&63])
	}
	b.Tx = q.Offer(t.Now, paused, tx)
	t.Moved += len(b.Tx)
}

// emptyClasses drops the frames that wait in the classes of a set, as far as the step's list of freed buffers has space: at least as many
// as a step receives.
func (t *transmitter) emptyClasses(port int, set egress.ClassSet) {
	q := &t.Egress[port]
	for class := range q.Classes {
		if !set.Has(class) {
			continue
		}
		n := min(q.Classes[class].Len(), cap(t.IO.Free)-len(t.IO.Free))
		for range n {
			_, flow := q.Classes[class].At(0)
			f := q.Classes[class].Leave()
			t.inspector.dropQueued(port, counters.DroppedPFCWatchdog, f, flow)
		}
		t.Moved += n
	}
}

// Frames that a backend drops by itself are counted here, so that every frame that it got or received is counted once.

// countNotHandedOver counts frames that a port received and its backend dropped, by reason.
func (t *transmitter) countNotHandedOver(port int, reason counters.Counter, v burst.Volume) {
	t.Counters.Add(port, counters.RxPackets, v.Frames)
	t.Counters.Add(port, counters.RxBytes, v.Bytes)
	t.Counters.Add(port, reason, v.Frames)
}

// countLost corrects the counters for frames that the backend accepted and then dropped: completeTransmits counts all accepted frames as
// sent. It runs before the queue removes them.
func (t *transmitter) countLost(port int) {
	b, offered := &t.IO.Ports[port], &t.Egress[port].Offered
	for _, l := range b.Lost {
		place := int(l.Place) - offered.Ahead
		if place < 0 {
			continue // completePFC counts it
		}
		if place < offered.Notifications {
			t.countUnsent(port, place)
			continue
		}
		t.Counters.Add(port, counters.TxPackets, minusOne)
		t.Counters.Add(port, counters.TxBytes, -uint64(b.Tx[l.Place].Len))
		t.Counters.Add(port, counters.DroppedTooLong+counters.Counter(l.Cause), 1)
	}
}

const minusOne = ^uint64(0) // modulo 2^64

// countUnsent compensates that the notification at this position of the port's queue will count as sent.
func (t *transmitter) countUnsent(port, place int) {
	_, tag := t.Egress[port].Notifications.At(place)
	t.Counters.Add(port, sentAs(tag.Index), minusOne)
	t.countNotSent(port, tag.Index, counters.NotSent)
}
