package dataplane

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/dataplane/frames"
	"github.com/cnpgate/cnpgate/dataplane/respond"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
)

// queuer is the stage that queues the frames which are forwarded now.
type queuer struct {
	*stage.State
	responder *respond.Responder
	inspector *inspector
}

// queue puts frames into the queue of the port's peer, class by class, and runs each class's response. Frames that don't fit are dropped.
func (q *queuer) queue(b *frames.Batch, all frames.Mask) {
	if b.OneClass {
		bytes := b.Bytes
		for left := frames.First(len(b.Frames)) &^ all; left != 0; left &= left - 1 {
			bytes -= uint64(b.Frames[bits.TrailingZeros64(uint64(left))].Len)
		}
		q.queueClass(b, b.Class, all, bytes)
		return
	}
	for rest := all; rest != 0; {
		class := b.ClassAt(bits.TrailingZeros64(uint64(rest)))
		these, bytes := frames.Mask(0), uint64(0)
		for left := rest; left != 0; left &= left - 1 {
			if i := bits.TrailingZeros64(uint64(left)); b.ClassAt(i) == class {
				these |= 1 << i
				bytes += uint64(b.Frames[i].Len)
			}
		}
		q.queueClass(b, class, these, bytes)
		rest &^= these
	}
}

// queueClass queues the frames of one class, which have so many bytes.
func (q *queuer) queueClass(b *frames.Batch, class int, these frames.Mask, bytes uint64) {
	out := q.Ports[b.Port].Peer
	c := &q.Egress[out].Classes[class]
	before := c.Waiting()
	switch fits := c.Fits(q.Policy.Ports[out].Queue, bits.OnesCount64(uint64(these)), bytes); {
	case fits && these == frames.First(len(b.Frames)):
		c.Enter(b.Frames, b.Flow[:len(b.Frames)], bytes)
	case fits:
		q.queueRuns(b, c, these)
	default:
		arrived := these
		these, bytes = q.queueFitting(b, class, these)
		q.responder.Law.Held(b, out, arrived&^these)
	}
	q.Trace.Queued(out, class, these, before)
	c.NoteDepth(before + bytes)
	q.responder.Respond(b, class, these, before, bytes)
}

// queueRuns queues frames that all fit, as runs of neighbors: of a burst from which a frame is gone, the others are two runs.
func (q *queuer) queueRuns(b *frames.Batch, c *egress.Class, these frames.Mask) {
	for left := these; left != 0; {
		i := bits.TrailingZeros64(uint64(left))
		end := i + bits.TrailingZeros64(^uint64(left>>i))
		c.Enter(b.Frames[i:end], b.Flow[i:end], egress.Bytes(b.Frames[i:end]))
		left &^= frames.First(end)
	}
}

// queueFitting queues frames one by one, as far as they fit, and drops the others. It returns the queued ones and their bytes.
func (q *queuer) queueFitting(b *frames.Batch, class int, these frames.Mask) (queued frames.Mask, bytes uint64) {
	out := q.Ports[b.Port].Peer
	for left := these; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left))
		if f := b.Frames[i]; q.queueOne(out, class, f, b.Flow[i]) {
			queued |= 1 << i
			bytes += uint64(f.Len)
		}
	}
	return queued, bytes
}

// queueOne queues a frame of a flow, or drops it if it doesn't fit.
func (q *queuer) queueOne(out, class int, f burst.Frame, flow flowtable.Ref) bool {
	c, limits := &q.Egress[out].Classes[class], q.Policy.Ports[out].Queue
	reason := counters.DroppedQueueFrames
	switch {
	case !c.FitsBytes(limits, uint64(f.Len)):
		reason = counters.DroppedQueueOctets
	case !c.Fits(limits, 1, 0):
	default:
		c.Enter([]burst.Frame{f}, []flowtable.Ref{flow}, uint64(f.Len))
		return true
	}
	q.inspector.dropQueued(out, reason, f, flow)
	return false
}
