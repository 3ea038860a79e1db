// Package trace records what the stages of a worker decide about the packets of one flow, or the frames that they drop.
package trace

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// Trace asks the workers for a flow's packets, truncated and at a bounded rate, and for what each stage decided about them. Each stage writes its decision
// down where it makes it. With Drops it asks for the frames that are dropped instead, as they are then. A worker never waits for the reader: it leaves packets
// out, and counts them.
type Trace struct {
	Drops               counters.Reasons // 0: not by drop
	AnyAddress          bool             // of frames that are dropped: of any flow, or none
	Source, Destination packet.Addr
	DestQP              uint32 // of RoCEv2 packets
	AnyQP               bool
	Decisions           bool // follow each packet until it leaves; otherwise it is recorded when it has entered the queue
	Rate                ratelimit.Rate

	spent   atomic.Int64 // of Rate
	skipped atomic.Uint64
	workers []Tracer
}

const (
	// TracedBytes bounds the bytes of a packet that a record has.
	TracedBytes = 256
	// tracedAtOnce bounds the packets that a worker follows at a time.
	tracedAtOnce = 32
	// traceTime is the time after which a packet that has not left is recorded nevertheless, ns.
	traceTime = 1_000_000_000
)

// FlowFate says what the flow table knew of a packet's flow.
type FlowFate uint8

const (
	NoFlow    FlowFate = iota // the packet belongs to no flow
	FlowFound                 // it was in the table
	FlowBegan                 // this packet began it
	FlowFull                  // the table was full of flows that must not be evicted
)

// Skip is why a packet in a congested queue caused no notification, without being counted as suppressed.
type Skip uint8

const (
	NotSkipped   Skip = iota
	SmallShare        // its flow's share of the queue is not among the largest
	RoundOver         // as many senders as a round allows were notified
	NotDue            // the law asks its sender for nothing yet
	NoCongestion      // neither a threshold was exceeded, nor is the flow above its fair rate
)

// PacketRecord is what a trace knows of a packet. It has no pointers.
type PacketRecord struct {
	Time   int64  // of the burst, ns, Unix time
	Length uint32 // bytes of the frame
	Bytes  uint16 // of them in Frame
	In     uint8  // port
	Plain  bool   // parsed by the fast path
	Kind   packet.Kind
	Opcode packet.Opcode
	TOS    uint8 // at its arrival

	Notification packet.Notification // what the domain filter sees in it
	Ended        bool                // it was consumed or dropped,
	Reason       counters.Counter    // and counted as this
	Flow         FlowFate
	QP           pairing.Answer // the flow's source QP
	Paced        bool           // pacing held it
	Queued       bool           // it entered the queue, of which the following are:
	Out, Class   uint8
	Depth        uint64 // bytes, before the burst

	Law        bool
	KMin       uint64
	Cause      congestion.Cause
	Fair, Rate float64 // of the law, bytes per ns
	Skip       Skip
	Suppressed counters.Suppression // 0: not
	Notified   bool                 // its sender was, in this format,
	Outcome    counters.Outcome
	Format     packet.Notification
	To         packet.Addr
	SentBy     uint8

	MarkAsked, Marked, MarkObserved bool

	Left   int64             // ns from arrival until the device had it; 0: it waits, or was ended
	Lost   bool              // the device dropped it,
	LostBy burst.Cause       // for this reason
	Frame  [TracedBytes]byte // as it arrived
}

// Init makes the workers' parts.
func (t *Trace) Init(workers int) {
	t.workers = make([]Tracer, workers)
	for i := range t.workers {
		t.workers[i].trace = t
	}
}

// Take returns the next record of a worker. Only one goroutine may call it at a time.
func (t *Trace) Take(worker int) (PacketRecord, bool) { return t.workers[worker].records.Take() }

// TakeSkipped returns the number of packets that were left out since the last call.
func (t *Trace) TakeSkipped() uint64 { return t.skipped.Swap(0) }
