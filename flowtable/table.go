// Package flowtable is a worker's table of RDMA flows (draft-tian 5.2): who sends, who receives, what the sender's queue pair
// is if that is known, and what has been counted. One Table belongs to one worker, its owner, which alone adds, changes and
// removes flows; any other goroutine may look flows up with Find and read Stats, without a lock and without ever holding the
// owner up. The table lives in memory that the caller hands over, holds no pointer and never grows: when it is full, the flow
// that was seen longest ago makes room. It takes the time from its caller, starts nothing and prints nothing, and it never
// guesses a source QP.
package flowtable

import (
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"
)

const (
	lineSize    = 64      // octets of a cache line; buckets and entries begin on one
	meanLoad    = 4       // flows a bucket holds on average when the table is full
	maxCapacity = 1 << 28 // flows; keeps Size far from overflow
	maxBurst    = 64      // keys one pass of Lookup works on
)

// Index names a flow of one Table, from the Lookup that returned it until the flow ends.
type Index uint32

// None is no flow.
const None Index = 0

// Config is what New needs to know.
type Config struct {
	// Capacity is the largest number of flows, 1 to 2^28.
	Capacity int
	// Aging is how long, in nanoseconds, a flow may go without a packet before it is removed; 0 or less: for ever.
	Aging int64
	// Seed keys the hash, so that nobody outside can choose flows that collide.
	Seed uint64
	// Static is the operator's map of QP pairs, or nil.
	Static *QPMap
	// Pairing is what the gateway's tables share to learn source QPs, or nil to learn none but those that packets carry.
	Pairing *Pairing
	// Ended is nil, or is called by the owner's goroutine when a flow has aged or was evicted, before its place is reused. The
	// pointers are valid during the call only, and the call must not use the table.
	Ended func(*Key, *Flow, View)
}

// Table is one worker's flows. Unless a method says otherwise only the owner may call it.
type Table struct {
	// Set by New and never changed; readers use these.
	secret  [secrets]uint64
	buckets []bucket
	entries []entry // entry 0 is never a flow

	_ [lineSize]byte // the owner's words share no line with the readers'

	aging   int64
	lasting int64 // aging, or the end of time
	static  *QPMap
	ended   func(*Key, *Flow, View)

	pairing  *Pairing
	number   uint64  // of the table in pairing
	tracks   []track // by entry, as the next two
	learners []learner
	accounts []Account
	work     int    // comparisons left for pairing in this burst
	hints    *QPMap // as of the last Sweep

	flows uint32 // entries in use
	high  uint32 // entries 1..high have been used
	free  uint32 // head of the list of entries that were given back, linked through track.exact
	hand  uint32 // where the next search for a victim begins
	held  int64  // flows seen from this time on may have frames queued
	dirty bool   // counts have changed since publish

	sweepAt     uint32 // entry Sweep looked at last
	sweepTime   int64  // time up to which Sweep has done its share
	recheckAt   uint32 // entry recheck looked at last
	recheckLeft uint32 // entries that may still hold what earlier maps said

	insertions, aged, evictions, refused     uint64
	reuses, contradictions, skipped, noPlace uint64
	taken, confirmed                         [Evidences]uint64

	hashes     [maxBurst]uint64
	candidates [maxBurst]Index
	placeless  learner // of the flow at hand
	last       Flow    // for ended

	_ [lineSize]byte

	published published
}

// Size is the number of octets New needs for a capacity, or 0 for one that New refuses.
func Size(capacity int) int {
	if capacity < 1 || capacity > maxCapacity {
		return 0
	}
	return lineSize - 1 + 2*half(capacity)*lineSize + (capacity+1)*int(unsafe.Sizeof(entry{})+unsafe.Sizeof(track{})+unsafe.Sizeof(learner{})+unsafe.Sizeof(Account{}))
}

func half(capacity int) int { return (capacity + 2*meanLoad - 1) / (2 * meanLoad) }

// New makes an empty table in mem, which must be zero and of which it keeps the first Size(c.Capacity) octets. The memory may lie on or off
// the Go heap and must stay mapped as long as anyone uses the table.
func New(mem []byte, c Config) (*Table, error) {
	need := Size(c.Capacity)
	if need == 0 {
		return nil, fmt.Errorf("flowtable: capacity %d: expected 1 to %d flows", c.Capacity, maxCapacity)
	}
	if len(mem) < need {
		return nil, fmt.Errorf("flowtable: %d octets of memory for %d flows: expected at least %d", len(mem), c.Capacity, need)
	}
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(mem))) % lineSize)
	n := half(c.Capacity)
	t := &Table{
		secret:  secretsFrom(c.Seed),
		buckets: unsafe.Slice((*bucket)(unsafe.Pointer(&mem[skip])), 2*n),
		entries: unsafe.Slice((*entry)(unsafe.Pointer(&mem[skip+2*n*lineSize])), c.Capacity+1),
		aging:   c.Aging,
		static:  c.Static,
		ended:   c.Ended,
		lasting: c.Aging,
	}
	if c.Aging <= 0 {
		t.lasting = math.MaxInt64
	}
	rest := mem[skip+2*n*lineSize+(c.Capacity+1)*int(unsafe.Sizeof(entry{})):]
	t.tracks, rest = cut[track](rest, c.Capacity+1)
	t.accounts, rest = cut[Account](rest, c.Capacity+1)
	t.learners, _ = cut[learner](rest, c.Capacity+1)
	t.entries[0].lastSeen, t.held = unseen, unseen
	if t.pairing = c.Pairing; t.pairing != nil {
		if err := t.pairing.join(t); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// cut takes n of T from the front of mem.
func cut[T any](mem []byte, n int) (of []T, rest []byte) {
	of = unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(mem))), n)
	return of, mem[n*int(unsafe.Sizeof(of[0])):]
}

// Key is a flow's key, to be read only.
func (t *Table) Key(i Index) *Key { return t.entries[i].plainKey() }

// SourceQP is the flow's source QP; ok is false unless the QP is confirmed and the connection not over.
func (t *Table) SourceQP(i Index) (qp uint32, ok bool) {
	s := state(t.entries[i].state.Load())
	return s.qp(), s.usable()
}

// QPState tells how sure the flow's source QP is.
func (t *Table) QPState(i Index) QPState { return state(t.entries[i].state.Load()).qpState() }

// Evidence tells where the flow's source QP comes from.
func (t *Table) Evidence(i Index) Evidence { return state(t.entries[i].state.Load()).evidence() }

// Each calls f for every flow, in the order of their indexes, until f returns false. f must not call Lookup or Sweep.
func (t *Table) Each(f func(Index, *Key, *Flow) bool) {
	var flow Flow
	for i := Index(1); i <= t.High(); i++ {
		if !t.InUse(i) {
			continue
		}
		if flow = t.Flow(i); !f(i, t.Key(i), &flow) {
			return
		}
	}
}

// published is what the owner lets everyone see.
type published struct {
	flows, insertions, aged, evictions, refused atomic.Uint64
	reuses, contradictions, skipped, noPlace    atomic.Uint64
	taken, confirmed                            [Evidences]atomic.Uint64
}

// Stats counts what became of flows since New; Flows is how many there are.
type Stats struct {
	Flows      uint64
	Insertions uint64 // flows added
	Aged       uint64 // flows removed or begun anew because they were idle
	Evictions  uint64 // flows removed to make room
	Refused    uint64 // keys that got no flow because no flow could be removed

	// Evidence counts what each source had to say: RDMA-CM messages, CNPs, pairs whose ports fit, flows that an acknowledgement ruled
	// out, flows whose packets carry their QP or for which a human said it.
	Evidence [Evidences]uint64
	// Confirmed counts the flows whose source QP was confirmed, by the evidence that did it.
	Confirmed      [Evidences]uint64
	Contradictions uint64 // times that a packet could not be of the pair it was thought to be of
	Reuses         uint64 // records that ended because a QP began to serve another connection
	Skipped        uint64 // pieces of evidence that were left aside for want of time
	NoPlace        uint64 // attempts to find a flow a place for pairing that found no room
}

// Stats is safe for any goroutine. Each number is exact as of the owner's last Lookup or Sweep.
func (t *Table) Stats() Stats {
	p := &t.published
	s := Stats{
		Flows: p.flows.Load(), Insertions: p.insertions.Load(), Aged: p.aged.Load(), Evictions: p.evictions.Load(), Refused: p.refused.Load(),
		Contradictions: p.contradictions.Load(), Reuses: p.reuses.Load(), Skipped: p.skipped.Load(), NoPlace: p.noPlace.Load(),
	}
	for i := range s.Evidence {
		s.Evidence[i], s.Confirmed[i] = p.taken[i].Load(), p.confirmed[i].Load()
	}
	return s
}

func (t *Table) publish() {
	if !t.dirty {
		return
	}
	t.dirty = false
	p := &t.published
	p.flows.Store(uint64(t.flows))
	p.insertions.Store(t.insertions)
	p.aged.Store(t.aged)
	p.evictions.Store(t.evictions)
	p.refused.Store(t.refused)
	put(&p.contradictions, t.contradictions)
	put(&p.reuses, t.reuses)
	put(&p.skipped, t.skipped)
	put(&p.noPlace, t.noPlace)
	for i := range t.taken {
		put(&p.taken[i], t.taken[i])
		put(&p.confirmed[i], t.confirmed[i])
	}
}

// put leaves a line alone that others read if there is nothing new.
func put(to *atomic.Uint64, v uint64) {
	if to.Load() != v {
		to.Store(v)
	}
}
