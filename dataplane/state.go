package dataplane

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/dataplane/pacing"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/pairing"
)

// common is what the stages of a worker share: its tables, and the policy, the time and the packets of a burst.
type common struct {
	id       int
	ports    []PortConfig
	peers    []*common // of all workers, this one too
	host     *host.Stage
	clock    *atomic.Int64 // offset in ns from now to Unix time
	batch    *burst.Batch
	flows    *flowtable.Table
	learner  *pairing.Learner
	accounts account.Table
	egress   []egress.Port   // by port
	pacers   []*pacing.Pacer // by port; nil: none
	queues   [][]queueState  // by port and class
	counters counters

	policy *Policy // in this step
	now    int64   // of this step, ns
	trace  *tracer // in this step, nil: nothing is traced
	rx     batch   // the frames that go through the stages
}

// queueState is what a worker knows of the congestion of a class of a port's queue.
type queueState struct {
	meter     congestion.Meter
	calm      congestion.Calm
	metrics   congestion.Metrics // as of the last batch that entered, and what asked for notifications then
	cause     congestion.Cause
	threshold uint64 // of the first of the causes
	slowed    int    // senders that were asked to slow down because of it, and have had no Resume yet
	resumeAt  int64  // no Resume is sent before, since one could not be, ns
}

// unixTime is now as Unix time, ns.
func (c *common) unixTime() int64 { return c.now + c.clock.Load() }

// suppress counts that a sender was not notified.
func (c *common) suppress(in int, s Suppression) {
	c.counters.add(in, SuppressedFirst+Counter(s-1), 1)
	if c.trace != nil {
		c.trace.suppressed(c.rx.inHand, s)
	}
}

// canQueue returns why a worker can't queue a notification, or allowed.
func (c *common) canQueue(q *egress.Ring) Suppression {
	if q.Full() {
		return NotificationQueueFull
	}
	if len(c.batch.Spare) == 0 {
		return NoBuffer
	}
	return allowed
}

// push queues, ahead of data, the frame in the last spare buffer. The tag is its type: a packet.Notification, or from tagHost on a
// host.Verdict.
func (c *common) push(q *egress.Ring, size int, tag flowtable.Index) {
	last := len(c.batch.Spare) - 1
	spare := &c.batch.Spare[last]
	f := burst.Frame{Buf: spare.Buf, Data: spare.Data, Len: uint32(size), Head: uint32(size)}
	q.Push(f, flowtable.Ref{Index: tag, Generation: stamp(c.now)})
	c.batch.Spare = c.batch.Spare[:last]
}

// drop ends a frame: its buffer goes back, and the counter says why.
func (c *common) drop(port int, reason Counter, f burst.Frame) {
	c.counters.add(port, reason, 1)
	c.batch.Free = append(c.batch.Free, f.Buf)
	c.trace.dropped(f.Buf, reason)
}

// Reaction times are kept in the tag of a waiting notification, whose generation has no other use: in units of 16 ns, modulo 2^32, which is 69 s.
const stampUnit = 4 // bits

func stamp(now int64) uint32 { return uint32(now >> stampUnit) }

// sinceStamp is how long ago a stamp was made, ns.
func sinceStamp(now int64, made uint32) uint64 { return uint64(stamp(now)-made) << stampUnit }
