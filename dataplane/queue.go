package dataplane

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
)

// queue puts the forwarded frames into the queue of the port's peer, class by class, and runs each class's response. Frames that don't fit
// are dropped.
func (w *Worker) queue(b *batch) {
	all := first(len(b.frames)) &^ b.gone
	if b.ce != 0 {
		w.counters.add(b.port, CEReceived, uint64(bits.OnesCount64(uint64(b.ce&all))))
	}
	if out := w.ports[b.port].Peer; w.egress[out].pacer != nil && w.egress[out].pacer.known+w.egress[out].pacer.requests.n > 0 {
		all &^= w.pace(b, out, all)
		all &^= b.gone
	}
	if b.oneClass {
		w.queueClass(b, b.class, all, b.bytes)
		return
	}
	for rest := all; rest != 0; {
		class := w.classOf(b.port, &w.parsed[bits.TrailingZeros64(uint64(rest))])
		these := mask(0)
		for left := rest; left != 0; left &= left - 1 {
			if i := bits.TrailingZeros64(uint64(left)); w.classOf(b.port, &w.parsed[i]) == class {
				these |= 1 << i
			}
		}
		w.queueClass(b, class, these, 0)
		rest &^= these
	}
}

// queueClass queues the frames of one class. bytes is the total of all frames of the batch, used if they are all of this class.
func (w *Worker) queueClass(b *batch, class int, these mask, bytes uint64) {
	out := w.ports[b.port].Peer
	q := &w.egress[out]
	before := q.depth[class] + q.others[class]
	if these == first(len(b.frames)) && w.fits(out, class, len(b.frames), bytes) {
		q.enterAll(class, b.frames, w.flow[:len(b.frames)], bytes)
	} else {
		these, bytes = w.queueFitting(b, class, these)
	}
	w.counters.watermark(out, class, before+bytes)
	w.respond(b, class, these, before, bytes)
}

// fits reports whether all frames fit into a class of a port's queue.
func (w *Worker) fits(out, class, frames int, bytes uint64) bool {
	q, c := &w.egress[out], w.policy.Ports[out].Queue
	return q.depth[class]+q.others[class]+bytes <= c.Capacity && q.classes[class].n+frames+q.othersFrames[class] <= c.Frames
}

// queueFitting queues frames one by one, as far as they fit, and drops the others. It returns the queued ones and their bytes.
func (w *Worker) queueFitting(b *batch, class int, these mask) (queued mask, bytes uint64) {
	out := w.ports[b.port].Peer
	for left := these; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left))
		if f := b.frames[i]; w.queueOne(out, class, f, w.flow[i]) {
			queued |= 1 << i
			bytes += uint64(f.Len)
		}
	}
	return queued, bytes
}

// queueOne queues a frame of a flow, or drops it if it doesn't fit.
func (w *Worker) queueOne(out, class int, f burst.Frame, flow flowtable.Ref) bool {
	q := &w.egress[out]
	switch {
	case q.depth[class]+q.others[class]+uint64(f.Len) > w.policy.Ports[out].Queue.Capacity:
		w.drop(out, DroppedQueueOctets, f)
	case !w.fits(out, class, 1, 0):
		w.drop(out, DroppedQueueFrames, f)
	default:
		q.enterAll(class, []burst.Frame{f}, []flowtable.Ref{flow}, uint64(f.Len))
		return true
	}
	return false
}
