package dataplane

import "github.com/cnpgate/cnpgate/internal/burst"

// Frames that a backend drops by itself are counted here, so that every frame that it got or received is counted once.

// countNotHandedOver counts frames that a port received and its backend dropped, by reason.
func (w *Worker) countNotHandedOver(port int, reason Counter, v burst.Volume) {
	w.counters.add(port, RxPackets, v.Frames)
	w.counters.add(port, RxBytes, v.Bytes)
	w.counters.add(port, reason, v.Frames)
}

// countLost corrects the counters for frames that the backend accepted and then dropped: completeTransmits counts all accepted frames as
// sent. It runs before the queue removes them.
func (w *Worker) countLost(port int) {
	b, offered := &w.batch.Ports[port], &w.egress[port].Offered
	for _, l := range b.Lost {
		place := int(l.Place) - offered.Ahead
		if place < 0 {
			continue // completePFC counts it
		}
		if place < offered.Notifications {
			w.countUnsent(port, place)
			continue
		}
		w.counters.add(port, TxPackets, minusOne)
		w.counters.add(port, TxBytes, -uint64(b.Tx[l.Place].Len))
		w.counters.add(port, DroppedTooLong+Counter(l.Cause), 1)
	}
}

const minusOne = ^uint64(0) // modulo 2^64

// countUnsent compensates that the notification at this position of the port's queue will count as sent.
func (w *Worker) countUnsent(port, place int) {
	_, tag := w.egress[port].Notifications.At(place)
	w.counters.add(port, sentAs(tag.Index), minusOne)
	w.countNotSent(port, tag.Index, NotSent)
}
