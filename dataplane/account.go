package dataplane

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// account is a worker's state of a flow that has met congestion. It has the generation of its flow, so a new flow need not clear it, and
// the memory of unused accounts stays untouched.
type account struct {
	lastNotified atomic.Int64  // of congestion in a queue here, ns, 0 for never; other workers read it
	marked       uint64        // packets marked CE here
	arrivals     atomic.Uint64 // a congestion.Arrivals; other workers read it
	generation   atomic.Uint32
	share                                         // of the class that class returns
	notified     [packet.SentNotifications]uint32 // notifications sent, by kind
	paced        uint16                           // place of the flow in a pacer, 0 for none
	// The place of the sender in senders, 0 for none, above placeBits the class of share, and then spreadBit: an account is a cache line.
	watchAndClass uint16
}

// share is a flow's part of one class of a queue.
type share struct {
	queued uint32 // bytes waiting, while the queue tracks its flows' shares; at most 2^32 - 2
	rank   uint32 // place in the heap of the queue's flows, 0 for none
}

// placeBits is the number of bits of a place in senders. The bits above it have a class, and spreadBit, which says that the flow may have
// bytes in other classes, too.
const (
	placeBits = 12
	spreadBit = 1 << 15
)

var (
	_ [1<<placeBits - 1 - watchedSenders]struct{} // a place fits
	_ [spreadBit>>placeBits - MaxClasses]struct{} // and so does a class
)

func (f *account) watch() uint16 { return f.watchAndClass & (1<<placeBits - 1) }

func (f *account) class() uint8 { return uint8(f.watchAndClass &^ spreadBit >> placeBits) }

func (f *account) setWatch(place uint16) {
	f.watchAndClass = f.watchAndClass&^(1<<placeBits-1) | place
}

func (f *account) setClass(class uint8) {
	f.watchAndClass = f.watchAndClass&(spreadBit|1<<placeBits-1) | uint16(class)<<placeBits
}

func (f *account) spread() bool { return f.watchAndClass&spreadBit != 0 }

// accounts are a worker's accounts, by flowtable.Index. The account of flowtable.None is never read.
type accounts struct {
	of    []account
	more  [][MaxClasses]share // by class, the shares that are not in the account; all zero while the flow has no bytes there
	flows *flowtable.Table
}

const (
	accountBytes = int(unsafe.Sizeof(account{}))
	moreBytes    = int(unsafe.Sizeof([MaxClasses]share{}))
)

// accountsSize is the number of bytes that newAccounts needs.
func accountsSize(flows int) int { return (flows + 1) * (accountBytes + moreBytes) }

// newAccounts places the accounts for the flows of a table in memory, which must be zero and 8-byte aligned.
func newAccounts(memory []byte, flows *flowtable.Table) accounts {
	n := flows.Capacity() + 1
	return accounts{
		of:    unsafe.Slice((*account)(unsafe.Pointer(unsafe.SliceData(memory))), n),
		more:  unsafe.Slice((*[MaxClasses]share)(unsafe.Pointer(&memory[n*accountBytes])), n),
		flows: flows,
	}
}

// share returns the share of a flow, whose account is f, in a class.
func (a *accounts) share(x flowtable.Index, f *account, class uint8) *share {
	if f.class() == class {
		return &f.share
	}
	return &a.more[x][class%MaxClasses]
}

// growing is share for a frame that enters the class. A flow whose frames use one class at a time, as nearly all do, has its share in its
// account.
func (a *accounts) growing(x flowtable.Index, f *account, class uint8) *share {
	if f.class() == class {
		return &f.share
	}
	if more := &a.more[x][class%MaxClasses]; f.queued > 0 || f.spread() && more.queued > 0 {
		f.watchAndClass |= spreadBit
		return more
	}
	f.setClass(class)
	return &f.share
}

// queuedBytes is the bytes of a flow in all classes.
func (a *accounts) queuedBytes(x flowtable.Index, f *account) uint64 {
	n := uint64(f.queued)
	if f.spread() {
		for class := range a.more[x] {
			n += uint64(a.more[x][class].queued)
		}
	}
	return n
}

// get returns a flow's account, an empty one if it had none yet.
func (a *accounts) get(x flowtable.Index) *account { return a.begun(a.flows.Ref(x)) }

// begun is get for a flow that is known to have this generation.
func (a *accounts) begun(flow flowtable.Ref) *account {
	f := a.known(flow.Index)
	if f.generation.Load() != flow.Generation {
		f.begin(flow.Generation)
	}
	return f
}

// mark counts marked packets of a burst for their flows, run by run: mostly all packets are marked from one on. Packets without a flow count
// for flowtable.None.
func (a *accounts) mark(flows []flowtable.Ref, marked mask) {
	for marked != 0 {
		i := bits.TrailingZeros64(uint64(marked))
		end := i + bits.TrailingZeros64(^uint64(marked>>i))
		for _, flow := range flows[i:end] {
			a.begun(flow).marked++
		}
		marked &^= first(end)
	}
}

// known returns the account of a flow for which get was called since the flow began. Each flow of the table has an account, so the index needs no
// check.
func (a *accounts) known(x flowtable.Index) *account {
	return (*account)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(a.of)), uint64(x)*uint64(unsafe.Sizeof(account{}))))
}

// named returns the account of the flow in the tag of a tracked frame; false if the frame had no flow, or the flow has ended.
func (a *accounts) named(t flowtable.Ref) (*account, bool) {
	f := a.known(t.Index)
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
	f.share, f.paced, f.watchAndClass = share{}, 0, 0
	f.notified = [packet.SentNotifications]uint32{}
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
