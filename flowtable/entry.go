package flowtable

import (
	"math"
	"sync/atomic"
	"unsafe"
)

// entry is a flow: a cache line with all data that a lookup reads.
type entry struct {
	key      [keyWords]atomic.Uint64 // a Key
	state    atomic.Uint64           // a State
	lastSeen int64                   // written by the owner: time of the last Lookup that found the flow, ns; of a free entry see unseen
}

// unseen is later than the time of any flow, so that a free entry never looks idle. A free entry that was in use before has unseen plus the
// index of the next free one.
const unseen = math.MaxInt64 - 1<<32

var _ [lineSize]byte = [unsafe.Sizeof(entry{})]byte{}

func (e *entry) plainKey() *Key { return (*Key)(unsafe.Pointer(&e.key)) }

// Answer is what the table's user publishes about a flow for readers: 31 bits that the table doesn't interpret. In a gateway it is a
// pairing.Answer.
type Answer uint32

// State is a flow's generation and answer. Anyone may read it, and change the answer by SetAnswer. Only the owner changes the rest.
//
//	63            32 31  30                    0
//	+---------------+----+----------------------+
//	|  generation   |live|        answer        |
//	+---------------+----+----------------------+
type State uint64

const (
	liveBit       = 1 << 31
	generationOne = 1 << 32
	answerMask    = liveBit - 1
	flowMask      = ^State(answerMask) // what must not change while a reader reads
)

// Live reports whether there is a flow.
func (s State) Live() bool { return s&liveBit != 0 }

// Generation distinguishes the flows that have had the same index, as long as there are fewer than 2^32 of them.
func (s State) Generation() uint32 { return uint32(s >> 32) }

// Answer is the last value of SetAnswer; 0 at first.
func (s State) Answer() Answer { return Answer(s & answerMask) }

// with is the state with another answer.
func (s State) with(a Answer) State { return s&flowMask | State(a)&answerMask }

// beginGo makes the entry the flow with key k, in a new generation.
func beginGo(e *entry, k *Key, now int64) {
	old := e.state.Load()
	e.state.Store(old &^ liveBit)
	for i, w := range k.words() {
		e.key[i].Store(w)
	}
	e.lastSeen = now
	e.state.Store(old&^(generationOne-1) + generationOne | liveBit)
}

// end takes the flow from the entry.
func (e *entry) end() { e.state.Store(e.state.Load() &^ liveBit) }

// unused reports whether an entry with the state 0 has never had a flow: it has no source address. One whose generation has wrapped has the state 0, too.
func (e *entry) unused() bool { return e.key[0].Load()|e.key[1].Load() == 0 }

// is reports whether the entry was the flow with key k during the whole comparison. It returns the flow's state.
func (e *entry) is(k *Key) (State, bool) {
	before := State(e.state.Load())
	if !before.Live() {
		return 0, false
	}
	for i, w := range k.words() {
		if e.key[i].Load() != w {
			return 0, false
		}
	}
	after := State(e.state.Load())
	return after, (before^after)&flowMask == 0
}

// evictable reports whether an entry has a flow that may be evicted. Flows of this burst, whose index Lookup returns, may not: their time is
// now.
func (e *entry) evictable(now int64) bool { return e.lastSeen < unseen && e.lastSeen != now }
