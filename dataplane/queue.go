package dataplane

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/dataplane/egress"
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
	if out := w.ports[b.port].Peer; w.pacers[out].Slows() {
		held := w.pace(b, out, all)
		held |= all & b.gone
		all &^= held
		w.trace.each(held&^b.gone, func(t *tracedPacket) { t.Paced = true })
		w.responder.law.held(b, out, held)
	}
	if b.oneClass {
		bytes := b.bytes
		for left := first(len(b.frames)) &^ all; left != 0; left &= left - 1 {
			bytes -= uint64(b.frames[bits.TrailingZeros64(uint64(left))].Len)
		}
		w.queueClass(b, b.class, all, bytes)
		return
	}
	for rest := all; rest != 0; {
		class := b.classAt(bits.TrailingZeros64(uint64(rest)))
		these, bytes := mask(0), uint64(0)
		for left := rest; left != 0; left &= left - 1 {
			if i := bits.TrailingZeros64(uint64(left)); b.classAt(i) == class {
				these |= 1 << i
				bytes += uint64(b.frames[i].Len)
			}
		}
		w.queueClass(b, class, these, bytes)
		rest &^= these
	}
}

// queueClass queues the frames of one class, which have so many bytes.
func (w *Worker) queueClass(b *batch, class int, these mask, bytes uint64) {
	out := w.ports[b.port].Peer
	c := &w.egress[out].Classes[class]
	before := c.Waiting()
	switch fits := c.Fits(w.policy.Ports[out].Queue, bits.OnesCount64(uint64(these)), bytes); {
	case fits && these == first(len(b.frames)):
		c.Enter(b.frames, b.flow[:len(b.frames)], bytes)
	case fits:
		w.queueRuns(b, c, these)
	default:
		arrived := these
		these, bytes = w.queueFitting(b, class, these)
		w.responder.law.held(b, out, arrived&^these)
	}
	w.trace.queued(out, class, these, before)
	c.NoteDepth(before + bytes)
	w.responder.respond(b, class, these, before, bytes)
}

// queueRuns queues frames that all fit, as runs of neighbors: of a burst from which a frame is gone, the others are two runs.
func (w *Worker) queueRuns(b *batch, c *egress.Class, these mask) {
	for left := these; left != 0; {
		i := bits.TrailingZeros64(uint64(left))
		end := i + bits.TrailingZeros64(^uint64(left>>i))
		c.Enter(b.frames[i:end], b.flow[i:end], egress.Bytes(b.frames[i:end]))
		left &^= first(end)
	}
}

// queueFitting queues frames one by one, as far as they fit, and drops the others. It returns the queued ones and their bytes.
func (w *Worker) queueFitting(b *batch, class int, these mask) (queued mask, bytes uint64) {
	out := w.ports[b.port].Peer
	for left := these; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left))
		if f := b.frames[i]; w.queueOne(out, class, f, b.flow[i]) {
			queued |= 1 << i
			bytes += uint64(f.Len)
		}
	}
	return queued, bytes
}

// queueOne queues a frame of a flow, or drops it if it doesn't fit.
func (w *Worker) queueOne(out, class int, f burst.Frame, flow flowtable.Ref) bool {
	c, limits := &w.egress[out].Classes[class], w.policy.Ports[out].Queue
	switch {
	case !c.FitsBytes(limits, uint64(f.Len)):
		w.drop(out, DroppedQueueOctets, f)
	case !c.Fits(limits, 1, 0):
		w.drop(out, DroppedQueueFrames, f)
	default:
		c.Enter([]burst.Frame{f}, []flowtable.Ref{flow}, uint64(f.Len))
		return true
	}
	return false
}
