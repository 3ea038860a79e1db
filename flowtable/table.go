// Package flowtable finds, adds, ages and evicts the RDMA flows that one worker sees (draft-tian 5.2).
//
// # What a flow is
//
// Packets with the same Key are one flow. A Key has source and destination address, destination QP, the gateway port that the packets come
// in by, their VLAN tags, and for UD packets the source QP. The table gives each flow an Index. Its user can keep more state of a flow in
// other arrays, by that index. The index names the flow until the flow ends. Then the table may give it to another flow, with another
// generation.
//
// # What the table keeps
//
// The table keeps each flow's key, the time of its last packet, and a State: the flow's generation, and an Answer of 31 bits whose meaning
// the table doesn't know. (Package pairing stores the flow's source QP in it.) The table knows no PSN, UDP source port, queue or
// notification.
//
// # Who may call what
//
// A Table belongs to one worker, its owner. Only the owner adds and removes flows. Any goroutine may call the methods of its Reader, and
// Stats, at any time. These take no lock and never delay the owner. The owner clears a flow's live bit before it changes the key, and sets it again
// with a new generation when the key is complete. So if a reader finds the same generation before and after it has read the key, it has read
// the key of one flow. SetAnswer is a compare-and-swap of the whole state, so it changes the caller's flow or none.
//
// # Memory and time
//
// The caller provides the memory. The table holds no pointer into the Go heap and never grows: when it is full, it evicts the least
// recently seen of a few flows, but none that Config.Keep is about and that has packets. A flow ends when it has been idle for longer than Config.Aging, when it is evicted, or when the owner calls
// Renew. To keep an index for longer than a burst, keep the flow's generation with it. The caller also provides the time. The table
// starts no goroutine and prints nothing. Every loop is bounded.
//
// # Layout
//
// The table is a hash table. A bucket is one cache line with 8 slots; a slot has 16 tag bits and an index. A flow is in one of two buckets.
// An entry is one cache line with all data of a flow that a lookup reads. Lookup works on bursts, so that the memory for many packets is
// fetched at the same time.
package flowtable

import (
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
)

const (
	lineSize = 64 // bytes of a cache line; buckets and entries begin on one
	meanLoad = 4  // flows a bucket holds on average when the table is full
	maxBurst = 64 // packets that Lookup works on at a time

	// MaxCapacity is the largest number of flows of a table; an Index fits 28 bits.
	MaxCapacity = 1<<28 - 1
)

// Index names a flow of one Table, from the Lookup that returned it until the flow ends.
type Index uint32

// None is no flow.
const None Index = 0

// Observer is called when flows begin and end, so that it can keep more state of each. The table calls it on the owner's goroutine, in
// Lookup, Sweep and Renew; it may call State, SetAnswer, Key and Twins, and in Begin ListTwins, but no other method of the table.
type Observer interface {
	// Begin is called for a flow that has just been added. Its answer is 0.
	Begin(Index)
	// End is called for a flow that is about to be removed; its key and state can still be read.
	End(Index, Ending)
}

// Ending says why a flow ends.
type Ending uint8

const (
	Aged    Ending = iota // no packet for longer than Config.Aging
	Evicted               // another flow needed the entry
	Renewed               // the owner called Renew
)

// Config has the parameters of New.
type Config struct {
	// Capacity is the largest number of flows, 1 to MaxCapacity.
	Capacity int
	// Aging is the time in nanoseconds after which a flow without packets is removed; 0 or less: never.
	Aging int64
	// Seed keys the hash, so that an attacker can't choose flows that collide.
	Seed uint64
	// Observer may be nil.
	Observer Observer
	// Keep reports whether a flow with an answer must not be evicted while it has packets, at least one a second; nil: any may be.
	Keep func(Answer) bool
}

// Table holds one worker's flows. Only the owner may call its methods, except Stats and those of Reader.
type Table struct {
	Reader
	_ [lineSize]byte // the owner's words share no line with the readers'

	aging    int64
	lasting  int64 // aging, or the largest time if flows never age
	observer Observer

	flows  uint32 // entries in use
	listed uint32 // flows 1..listed are in lists, see twins
	dirty  bool   // counts have changed since publish

	unused  unused
	victims victims
	sweep   sweep

	insertions, aged, evictions, refused uint64

	hashes     [maxBurst]uint64
	candidates [maxBurst]Index

	_ [lineSize]byte

	published published
}

// Size returns the number of bytes that New needs for a capacity; 0 for a capacity that New refuses.
func Size(capacity int) int {
	if capacity < 1 || capacity > MaxCapacity {
		return 0
	}
	return lineSize - 1 + 2*half(capacity)*lineSize + (capacity+1)*int(unsafe.Sizeof(entry{})) + twinsSize(capacity)
}

// half is half of the number of buckets.
func half(capacity int) int { return (capacity + 2*meanLoad - 1) / (2 * meanLoad) }

// New makes an empty table in mem, which must be zero. The table uses the first Size(c.Capacity) bytes. The memory may be on or off the Go
// heap. It must stay mapped as long as anyone uses the table.
func New(mem []byte, c Config) (*Table, error) {
	need := Size(c.Capacity)
	if need == 0 {
		return nil, fmt.Errorf("flowtable: capacity %d: expected 1 to %d flows", c.Capacity, MaxCapacity)
	}
	if len(mem) < need {
		return nil, fmt.Errorf("flowtable: %d bytes of memory for %d flows: expected at least %d", len(mem), c.Capacity, need)
	}
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(mem))) % lineSize)
	n := half(c.Capacity)
	lists := mem[skip:] // before the entries: the huge page of the last ones would otherwise be resident for a part of the lists
	mem = lists[twinsSize(c.Capacity):]
	t := &Table{aging: c.Aging, lasting: c.Aging, observer: c.Observer}
	t.victims.keep = c.Keep
	t.buckets = unsafe.Slice((*bucket)(unsafe.Pointer(&mem[0])), 2*n)
	t.entries = unsafe.Slice((*entry)(unsafe.Pointer(&mem[2*n*lineSize])), c.Capacity+1)
	t.twins.place(lists, c.Capacity)
	keyhash.Spread(t.secret[:], c.Seed)
	if c.Aging <= 0 {
		t.lasting = math.MaxInt64
	}
	t.beside = unsafe.Pointer(unsafe.SliceData(t.entries))
	*t.entries[None].plainKey() = *KeyOf(&packet.Record{Flow: packet.NoFlow})
	return t, nil
}

// BesideSize is the size of an element of Beside's array, in bytes.
const BesideSize = 32

// Beside names an array of the caller with an element for each index, which the caller reads right after Lookup. Lookup asks the processor to
// fetch the elements of the flows that it finds. The caller calls it before the first Lookup.
func (t *Table) Beside(array unsafe.Pointer) { t.beside = array }

// Key is a flow's key. The caller must not change it.
func (t *Table) Key(x Index) *Key { return t.entryOf(x).plainKey() }

// High is the highest index that a flow has ever had.
func (t *Table) High() Index { return Index(t.unused.high) }

// published is what Stats reads.
type published struct {
	flows, insertions, aged, evictions, refused atomic.Uint64
}

// Stats counts flows since New; Flows is their present number.
type Stats struct {
	Flows      uint64
	Insertions uint64 // flows added
	Aged       uint64 // flows removed or renewed because they were idle
	Evictions  uint64 // flows evicted for new ones
	Refused    uint64 // keys that got no flow because no flow could be removed
}

// Stats is safe for any goroutine. Each number is exact at the time of the owner's last Lookup or Sweep.
func (t *Table) Stats() Stats {
	p := &t.published
	return Stats{
		Flows: p.flows.Load(), Insertions: p.insertions.Load(), Aged: p.aged.Load(), Evictions: p.evictions.Load(), Refused: p.refused.Load(),
	}
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
}
