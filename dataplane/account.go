package dataplane

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// account is a worker's state of a flow that has met congestion. It has the generation of its flow, so a new flow need not clear it, and
// the memory of unused accounts stays untouched.
type account struct {
	lastNotified atomic.Int64  // of congestion in a queue here, ns, 0 for never; other workers read it
	marked       uint64        // packets marked CE here
	arrivals     atomic.Uint64 // a congestion.Arrivals; other workers read it
	generation   atomic.Uint32
	queued       uint32                     // bytes waiting, while the queue tracks its flows' shares; at most 2^32 - 2
	rank         uint32                     // place in the heap of the queue's flows, 0 for none
	notified     [congestion.Formats]uint32 // notifications sent, by kind
	paced        uint16                     // place of the flow in a pacer, 0 for none
	// The place of the sender in senders, 0 for none, and above placeBits the class of queued and rank: an account is a cache line.
	watchAndClass uint16
}

// placeBits is the number of bits of a place in senders; those that are left have a class.
const placeBits = 13

var (
	_ [1<<placeBits - 1 - watchedSenders]struct{} // a place fits
	_ [1<<(16-placeBits) - MaxClasses]struct{}    // and so does a class
)

func (f *account) watch() uint16 { return f.watchAndClass & (1<<placeBits - 1) }

func (f *account) class() uint8 { return uint8(f.watchAndClass >> placeBits) }

func (f *account) setWatch(place uint16) {
	f.watchAndClass = f.watchAndClass&^(1<<placeBits-1) | place
}

func (f *account) setClass(class uint8) {
	f.watchAndClass = f.watchAndClass&(1<<placeBits-1) | uint16(class)<<placeBits
}

// accounts are a worker's accounts, by flowtable.Index. The account of flowtable.None is never read.
type accounts struct {
	of    []account
	flows *flowtable.Table
}

// accountsSize is the number of bytes that newAccounts needs.
func accountsSize(flows int) int { return (flows + 1) * int(unsafe.Sizeof(account{})) }

// newAccounts places the accounts for the flows of a table in memory, which must be zero and 8-byte aligned.
func newAccounts(memory []byte, flows *flowtable.Table) accounts {
	return accounts{unsafe.Slice((*account)(unsafe.Pointer(unsafe.SliceData(memory))), flows.Capacity()+1), flows}
}

// get returns a flow's account, an empty one if it had none yet.
func (a *accounts) get(x flowtable.Index) *account {
	f, generation := &a.of[x], a.flows.State(x).Generation()
	if f.generation.Load() != generation {
		f.begin(generation)
	}
	return f
}

// mark counts marked packets of a burst for their flows, run by run: mostly all packets are marked from one on. Packets without a flow count
// for flowtable.None.
func (a *accounts) mark(flows []flowtable.Ref, marked mask) {
	of := unsafe.Pointer(unsafe.SliceData(a.of)) // a flow of the table has an account, so no index needs a check
	for marked != 0 {
		i := bits.TrailingZeros64(uint64(marked))
		end := i + bits.TrailingZeros64(^uint64(marked>>i))
		for _, flow := range flows[i:end] {
			f := (*account)(unsafe.Add(of, uint64(flow.Index)*uint64(unsafe.Sizeof(account{}))))
			if f.generation.Load() != flow.Generation {
				f.begin(flow.Generation)
			}
			f.marked++
		}
		marked &^= first(end)
	}
}

// known returns the account of a flow for which get was called since the flow began.
func (a *accounts) known(x flowtable.Index) *account { return &a.of[x] }

// named returns the account of the flow in the tag of a tracked frame; false if the frame had no flow, or the flow has ended.
func (a *accounts) named(t flowtable.Ref) (*account, bool) {
	f := &a.of[t.Index]
	return f, t.Index != flowtable.None && f.generation.Load() == t.Generation
}

// find returns a flow's account, nil if it has none.
func (a *accounts) find(x flowtable.Index) *account {
	if f := &a.of[x]; f.generation.Load() == a.flows.State(x).Generation() {
		return f
	}
	return nil
}

// begin assigns the account to the flow with this generation. It stores the generation last, so that a reader who finds it doesn't read
// values of an earlier flow.
func (f *account) begin(generation uint32) {
	f.lastNotified.Store(0)
	f.arrivals.Store(0)
	f.marked = 0
	f.queued, f.rank, f.paced, f.watchAndClass = 0, 0, 0, 0
	f.notified = [congestion.Formats]uint32{}
	f.generation.Store(generation)
}

// notify records that a notification was sent at the time now, or would have been in observe mode.
func (f *account) notify(now int64) { store64(&f.lastNotified, ratelimit.Stamp(now)) }

// lastNotifiedOf is the time of the last notification about the flow with an index and generation, 0 for never, and for a flow that has
// ended. Any goroutine may call it.
func (a *accounts) lastNotifiedOf(x flowtable.Index, generation uint32) int64 {
	f := &a.of[x]
	if f.generation.Load() != generation {
		return 0
	}
	at := f.lastNotified.Load()
	if f.generation.Load() != generation { // the time may belong to the flow that has the account now
		return 0
	}
	return at
}

// notifiedWithin reports whether the sender of the flow with an index and generation was notified less than this many ns before now,
// because of a queue here or of packets that arrived with CE. Any goroutine may call it.
func (a *accounts) notifiedWithin(x flowtable.Index, generation uint32, now, ns int64) bool {
	if at := a.lastNotifiedOf(x, generation); at != 0 && now-at < ns {
		return true
	}
	f := &a.of[x]
	arrivals := congestion.Arrivals(f.arrivals.Load())
	return f.generation.Load() == generation && arrivals.AnsweredWithin(now, ns)
}
