// Package stage has what the stages of a worker share: its tables and queues, the time and the policy of a step, and the batch that goes
// through the stages.
package stage

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/dataplane/frames"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/dataplane/pacing"
	"github.com/cnpgate/cnpgate/dataplane/trace"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/pairing"
)

// State is what the stages of a worker share: its tables, and the policy, the time and the packets of a burst.
type State struct {
	ID       int
	Ports    []PortConfig
	Peers    []*State // of all workers, this one too
	Host     *host.Stage
	Clock    *atomic.Int64 // offset in ns from now to Unix time
	IO       *burst.Batch
	Flows    *flowtable.Table
	Learner  *pairing.Learner
	Accounts account.Table
	Egress   []egress.Port   // by port
	Pacers   []*pacing.Pacer // by port; nil: none
	Queues   [][]QueueState  // by port and class
	Counters counters.Ports

	Policy *Policy       // in this step
	Now    int64         // of this step, ns
	Trace  *trace.Tracer // in this step, nil: nothing is traced
	Batch  frames.Batch  // the frames that go through the stages
	Moved  int           // frames moved in this step
}

// QueueState is what a worker knows of the congestion of a class of a port's queue.
type QueueState struct {
	Meter     congestion.Meter
	Calm      congestion.Calm
	Metrics   congestion.Metrics // as of the last batch that entered, and what asked for notifications then
	Cause     congestion.Cause
	Threshold uint64 // of the first of the causes
	Slowed    int    // senders that were asked to slow down because of it, and have had no Resume yet
	ResumeAt  int64  // no Resume is sent before, since one could not be, ns
}

// UnixTime is now as Unix time, ns.
func (s *State) UnixTime() int64 { return s.Now + s.Clock.Load() }

// Suppress counts that a sender was not notified.
func (s *State) Suppress(in int, why counters.Suppression) {
	s.Counters.Add(in, counters.SuppressedFirst+counters.Counter(why-1), 1)
	if s.Trace != nil {
		s.Trace.Suppressed(s.Batch.InHand, why)
	}
}

// CanQueue returns why a worker can't queue a notification, or allowed.
func (s *State) CanQueue(q *egress.Ring) counters.Suppression {
	if q.Full() {
		return counters.NotificationQueueFull
	}
	if len(s.IO.Spare) == 0 {
		return counters.NoBuffer
	}
	return counters.Allowed
}

// Push queues, ahead of data, the frame in the last spare buffer. The tag is its type: a packet.Notification, or from tagHost on a
// host.Verdict.
func (s *State) Push(q *egress.Ring, size int, tag flowtable.Index) {
	last := len(s.IO.Spare) - 1
	spare := &s.IO.Spare[last]
	f := burst.Frame{Buf: spare.Buf, Data: spare.Data, Len: uint32(size), Head: uint32(size)}
	q.Push(f, flowtable.Ref{Index: tag, Generation: stamp(s.Now)})
	s.IO.Spare = s.IO.Spare[:last]
}

// Drop ends a frame: its buffer goes back, and the counter says why.
func (s *State) Drop(port int, reason counters.Counter, f burst.Frame) {
	s.Counters.Add(port, reason, 1)
	s.IO.Free = append(s.IO.Free, f.Buf)
	s.Trace.Dropped(f.Buf, reason)
}

// Reaction times are kept in the tag of a waiting notification, whose generation has no other use: in units of 16 ns, modulo 2^32, which is 69 s.
const stampUnit = 4 // bits

func stamp(now int64) uint32 { return uint32(now >> stampUnit) }

// SinceStamp is how long ago a stamp was made, ns.
func SinceStamp(now int64, made uint32) uint64 { return uint64(stamp(now)-made) << stampUnit }
