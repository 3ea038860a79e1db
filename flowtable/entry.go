package flowtable

import (
	"sync/atomic"
	"unsafe"
)

// entry is a flow: one cache line that everyone may read, and one that only the owner touches.
//
// The state word validates the key: the owner clears its live bit before it touches the key and raises its generation when the
// key is complete, so a reader that finds the same generation live before and after it has read the key has read one flow's key.
type entry struct {
	key      [keyWords]atomic.Uint64 // a Key
	state    atomic.Uint64           // a state
	notified atomic.Int64            // nanoseconds, 0 for never
	flow     Flow
}

// Flow is what the owner alone knows of a flow. Lookup zeroes it for a new flow and keeps LastSeen; the rest is the owner's.
type Flow struct {
	Packets uint64
	Bytes   uint64 // octets of frames without FCS
	Marked  uint64 // packets marked CE here
	// LastSeen is the time of the last Lookup that found the flow, nanoseconds.
	LastSeen int64
	// Queued is the flow's share of its egress queue; while it is not 0 the flow is neither aged nor evicted. At most 2^32 - 2.
	Queued uint32
	// Rank is for the egress queue's order of its flows, Class for which of a port's queues that is.
	Rank uint32
	// Notified counts notifications sent about the flow by kind; the kinds are the caller's.
	Notified  [5]uint32
	Transport uint8 // opcode >> 5, IBTA 9.2.1

	Class uint8

	burst uint16 // Lookup that touched the flow last, modulo 2^16
}

var (
	_ [lineSize]byte     = [unsafe.Sizeof(Flow{})]byte{}
	_ [2 * lineSize]byte = [unsafe.Sizeof(entry{})]byte{}
)

// notInUse in Queued marks an entry without a flow, in the line that Sweep and evictions read anyway.
const notInUse = ^uint32(0)

func (e *entry) plainKey() *Key { return (*Key)(unsafe.Pointer(&e.key)) }

// QPState tells how sure a flow's source QP is.
type QPState uint8

const (
	Unknown   QPState = iota // nothing points to a source QP
	Candidate                // something does, but not enough to act on
	Confirmed                // notifications may name it
)

func (s QPState) String() string {
	return [...]string{"unknown", "candidate", "confirmed", "invalid"}[min(s, 3)]
}

// Evidence tells where a source QP comes from.
type Evidence uint8

const (
	EvidenceNone   Evidence = iota
	EvidenceStatic          // the operator's map of QP pairs
	EvidenceDETH            // the UD packets carry it themselves
)

func (e Evidence) String() string {
	return [...]string{"none", "static", "deth", "invalid"}[min(e, 3)]
}

// state is an entry's state word:
//
//	63            32 31  30  29 28    26 25   24 23          0
//	+---------------+----+-----+--------+-------+------------+
//	|  generation   |live|  0  |evidence|QPState| source QP  |
//	+---------------+----+-----+--------+-------+------------+
type state uint64

const (
	liveBit       = 1 << 31
	generationOne = 1 << 32
	flowMask      = ^uint64(generationOne-1) | liveBit // what must not change while a reader reads
	qpMask        = 1<<24 - 1
)

func (s state) live() bool         { return s&liveBit != 0 }
func (s state) qp() uint32         { return uint32(s & qpMask) }
func (s state) qpState() QPState   { return QPState(s >> 24 & 3) }
func (s state) evidence() Evidence { return Evidence(s >> 26 & 7) }

// qpWord is the part of a state word that tells of the source QP.
func qpWord(qp uint32, s QPState, e Evidence) uint64 {
	return uint64(qp&qpMask) | uint64(s)<<24 | uint64(e)<<26
}

// begin makes the entry the flow k.
func (e *entry) begin(k *Key, qp uint64, now int64, burst uint16) {
	old := e.state.Load()
	e.state.Store(old &^ liveBit)
	for i, w := range k.words() {
		e.key[i].Store(w)
	}
	e.notified.Store(0)
	e.flow = Flow{LastSeen: now, burst: burst}
	e.state.Store(old&^(generationOne-1) + generationOne | liveBit | qp)
}

// setQP changes what is known of the source QP of a flow that goes on.
func (e *entry) setQP(qp uint64) { e.state.Store(e.state.Load()&flowMask | qp) }
