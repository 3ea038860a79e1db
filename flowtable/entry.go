package flowtable

import (
	"math"
	"sync/atomic"
	"unsafe"
)

// entry is a flow: a cache line with all that a lookup reads. What the owner counts of it is its track, what was done about it its
// Account, what pairing keeps its learner; all have the flow's index.
//
// The state word validates the key: the owner clears its live bit before it touches the key and raises its generation when the
// key is complete, so a reader that finds the same generation live before and after it has read the key has read one flow's key.
type entry struct {
	key      [keyWords]atomic.Uint64 // a Key
	state    atomic.Uint64           // a state
	lastSeen int64                   // the owner's: time of the last Lookup that found the flow, nanoseconds; unseen without a flow
}

// unseen is later than any flow, so that an entry without one never looks idle.
const unseen = math.MaxInt64

var _ [lineSize]byte = [unsafe.Sizeof(entry{})]byte{}

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
	EvidenceHint            // a host agent's word
	EvidenceCM              // RDMA-CM: REQ and REP of the connection
	EvidenceDETH            // the UD packets carry it themselves
	EvidencePort            // Linux's symmetric UDP source port, both ways
	EvidencePSN             // acknowledged PSNs, by elimination
	EvidenceCNP             // a CNP of the receiver; makes candidates only
	Evidences      = iota
)

func (e Evidence) String() string {
	return [...]string{"none", "static", "hint", "cm", "deth", "port", "psn", "cnp", "invalid"}[min(e, Evidences)]
}

// Ending tells why a flow's record is closed: it keeps what it has learned for the report, and feeds no notification any more.
type Ending uint8

const (
	Open          Ending = iota
	EndedDREQ            // RDMA-CM released the connection; packets of the next second still belong to it
	EndedReuse           // one of its QPs serves another connection; the next packet begins a new record
	EndedAged            // no packet for longer than Config.Aging; only Config.Ended sees this one and the next
	EndedEviction        // another flow needed the room
)

func (e Ending) String() string {
	return [...]string{"", "dreq", "reuse", "aged", "evicted", "invalid"}[min(e, 5)]
}

// state is an entry's state word. Everyone may read it; the owner begins flows, and any table of the same Pairing may change what
// is known of the source QP, by compare-and-swap, so that it hits the flow it means or none.
//
//	63            32 31  30  29 28    26 25   24 23          0
//	+---------------+----+------+--------+-------+------------+
//	|  generation   |live|ending|evidence|QPState| source QP  |
//	+---------------+----+------+--------+-------+------------+
type state uint64

const (
	liveBit       = 1 << 31
	generationOne = 1 << 32
	flowMask      = ^uint64(generationOne-1) | liveBit // what must not change while a reader reads
	qpMask        = 1<<24 - 1
	endingShift   = 29
	endingMask    = 3 << endingShift
)

func (s state) live() bool         { return s&liveBit != 0 }
func (s state) qp() uint32         { return uint32(s & qpMask) }
func (s state) qpState() QPState   { return QPState(s >> 24 & 3) }
func (s state) evidence() Evidence { return Evidence(s >> 26 & 7) }
func (s state) ending() Ending     { return Ending(s >> endingShift & 3) }
func (s state) generation() uint32 { return uint32(s >> 32) }

// usable tells whether a notification may name the source QP.
func (s state) usable() bool { return s.qpState() == Confirmed && s&endingMask == 0 }

// qpWord is the part of a state word that tells of the source QP.
func qpWord(qp uint32, s QPState, e Evidence) uint64 {
	return uint64(qp&qpMask) | uint64(s)<<24 | uint64(e)<<26
}

// begin makes the entry the flow k.
func (e *entry) begin(k *Key, qp uint64, now int64) {
	old := e.state.Load()
	e.state.Store(old &^ liveBit)
	for i, w := range k.words() {
		e.key[i].Store(w)
	}
	e.lastSeen = now
	e.state.Store(old&^(generationOne-1) + generationOne | liveBit | qp)
}

// end makes the entry nobody's.
func (e *entry) end() {
	e.state.Store(e.state.Load() &^ liveBit)
	e.lastSeen = unseen
}

// change replaces what is known of a flow that goes on, unless another table was faster.
func (e *entry) change(was state, qp uint64) bool {
	return e.state.CompareAndSwap(uint64(was), uint64(was)&flowMask|qp)
}

// close ends the record; what it has learned stays to be read.
func (e *entry) close(was state, why Ending) bool {
	return e.state.CompareAndSwap(uint64(was), uint64(was)&^endingMask|uint64(why)<<endingShift)
}
