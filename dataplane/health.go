package dataplane

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/frames"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

const (
	healthRate = 100_000 // packets a second that a worker inspects on average
	healthTime = 10      // s of this rate in a row: so 100 ms at 10 million packets a second, longer than a WAN's round trip
	healthWait = 4096    // packets of a flow before it is followed without its peer flow
)

// inspector is the stage that follows the health of connections. It reads all packets as long as a worker receives few. Of more it reads windows: a
// connection's PSNs make sense only in a row.
type inspector struct {
	*stage.State
	follower *health.Follower // nil: none is followed
	left     int64            // packets that may be inspected now, in ns of healthRate each
	latest   int64            // time of the last batch
	closed   bool             // until left is at its most
	full     int              // batches in a row that were full
}

const healthPacket = 1e9 / healthRate // ns

// A worker that gets more full batches in a row than fullBatches may be behind. To inspect a packet takes several times as long as to forward it, so it
// stops before packets are lost.
const fullBatches, fullBatch = 8, 64

// newInspector makes a worker's inspector of so many connections.
func newInspector(s *stage.State, c *Config) (inspector, error) {
	// It begins closed, for a tenth of the time that fills it.
	i := inspector{State: s, closed: true, left: healthTime * 1e9 * 9 / 10}
	if c.Followed == 0 {
		return i, nil
	}
	peers := make([]int, len(c.Ports))
	for port := range c.Ports {
		peers[port] = c.Ports[port].Peer
	}
	memory, err := c.Allocate(health.FollowerSize(c.Followed, c.Flows))
	if err != nil {
		return i, err
	}
	if i.follower, err = health.NewFollower(memory, c.Followed, s.Flows, s.Learner, peers); err == nil {
		i.follower.Patience = healthWait
	}
	return i, err
}

// inspect passes the batch's packets on, if it may.
func (i *inspector) inspect(b *frames.Batch) {
	if i.follower == nil || !i.mayInspect(len(b.Frames)) {
		return
	}
	for n := range b.Frames {
		if flow := b.Flow[n]; flow.Index != flowtable.None && b.Flowless>>n&1 == 0 {
			data, p := b.Frame(n)
			i.follower.Packet(flow, flowtable.KeyOf(&b.Records[n]), data, p, i.Now)
		}
	}
	for left := b.Special &^ b.Gone; left != 0; left &= left - 1 {
		n := bits.TrailingZeros64(uint64(left))
		if _, p := b.Frame(n); p.Opcode == packet.CNP && !p.IPv4Mapped() { // only RoCEv2 packets have an opcode
			var k flowtable.Key
			frames.SetKey(&k, b.Port, p)
			i.follower.CNP(&k, i.Now)
		}
	}
	b.InHand = frames.NotInHand
}

// dropQueued is State.Drop of a frame of a flow that inspect has seen: it also says that the connection's frame went no further.
func (i *inspector) dropQueued(out int, reason counters.Counter, f burst.Frame, flow flowtable.Ref) {
	if i.follower != nil && !i.closed {
		var p packet.Parsed
		packet.Parse(i.IO.Bytes(f), f.Len, &p)
		i.follower.Dropped(flow, &p, i.Now)
	}
	i.Drop(out, reason, f)
}

// mayInspect reports whether to inspect a batch.
func (i *inspector) mayInspect(packets int) bool {
	const most = healthTime * 1e9
	i.left = min(i.left+i.Now-i.latest, most)
	if i.latest == 0 {
		i.left = min(i.left, most*9/10)
	}
	i.latest = i.Now
	if i.closed {
		if i.left < most {
			return false
		}
		i.closed = false
		i.follower.Miss()
	}
	if i.full++; packets < fullBatch {
		i.full = 0
	}
	if i.left -= int64(packets) * healthPacket; i.left < 0 || i.full > fullBatches {
		i.closed = true
	}
	return !i.closed
}

// HealthCopy asks a worker for copies of its connections, as many as fit.
type HealthCopy struct {
	Connections []health.Connection // filled up to its capacity
	At          int                 // where to begin; after it, where to go on
	End         bool                // there are no more
}

// HealthRecording asks a worker to begin a recording, or to end it.
type HealthRecording struct {
	*health.Recording
	End  bool
	Busy bool // another one is under way
}

func (r *HealthRecording) fill(w *Worker) {
	switch f := w.inspector.follower; {
	case f == nil:
	case r.End:
		f.EndRecording(r.Recording)
	default:
		r.Busy = !f.Record(r.Recording, w.state.Now)
	}
}

const (
	connectionsBusy = 2 // connections that a step with frames copies, some KiB each
	connectionsIdle = 8 // and without frames
)

// fillHealth copies some connections, and reports whether that was all.
func (s *Snapshot) fillHealth(w *Worker, c *HealthCopy) bool {
	n := connectionsBusy
	if w.state.Moved == 0 {
		n = connectionsIdle
	}
	f := w.inspector.follower
	if f == nil {
		c.End = true
		return true
	}
	for ; n > 0 && c.At < f.Len() && len(c.Connections) < cap(c.Connections); n-- {
		c.Connections = c.Connections[:len(c.Connections)+1]
		if !f.Copy(c.At, w.state.Now, &c.Connections[len(c.Connections)-1]) {
			c.Connections = c.Connections[:len(c.Connections)-1]
		}
		c.At++
	}
	c.End = c.At >= f.Len()
	return c.End || len(c.Connections) == cap(c.Connections)
}

// WallClock is the offset in ns from the workers' clock to Unix time.
func (d *Dataplane) WallClock() int64 { return d.wallClock.Load() }
