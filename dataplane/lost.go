package dataplane

import "github.com/cnpgate/cnpgate/internal/burst"

// What a backend drops by itself is counted here, so that every frame it was handed, or took from the wire, has one end.

// countUnusable counts frames that a port received and its backend could not hand over.
func (w *Worker) countUnusable(port int, v burst.Volume) {
	w.counters.add(port, RxPackets, v.Frames)
	w.counters.add(port, RxBytes, v.Bytes)
	w.counters.add(port, DroppedUnusable, v.Frames)
}

// countLost moves the frames that the backend dropped from those that left, as which settle counts all that were taken, to the drops.
// It runs before the queue forgets them.
func (w *Worker) countLost(port int) {
	b, notifications := &w.batch.Ports[port], w.egress[port].offered[0]
	for _, l := range b.Lost {
		if int(l.Place) < notifications {
			w.countUnsent(port, int(l.Place))
			continue
		}
		w.counters.add(port, TxPackets, minusOne)
		w.counters.add(port, TxBytes, -uint64(b.Tx[l.Place].Len))
		w.counters.add(port, DroppedTooLong+Counter(l.Cause), 1)
	}
}

const minusOne = ^uint64(0) // modulo 2^64

// countUnsent takes back that the notification at a place of the port's queue will count as sent.
func (w *Worker) countUnsent(port, place int) {
	r := &w.egress[port].notifications
	w.counters.add(port, SentFirst+Counter(r.tags[r.place(place)]), minusOne)
	w.suppress(port, NotSent)
}
