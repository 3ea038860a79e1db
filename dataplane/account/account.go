// Package account has a worker's state of each flow that has met congestion: one cache line, which the egress queue, pacing and
// notification share, so that a packet of a congested queue loads one line.
package account

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/fastpath"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// MaxClasses bounds the traffic classes of a port.
const MaxClasses = 8

// Flow is the account of one flow. It has the generation of its flow, so a new flow need not clear it, and the memory of unused accounts
// stays untouched.
type Flow struct {
	LastNotified atomic.Int64  // of congestion in a queue here, ns, 0 for never; other workers read it
	Marked       uint64        // packets marked CE here
	Arrivals     atomic.Uint64 // a congestion.Arrivals; other workers read it
	Generation   atomic.Uint32
	Share                                         // of the class that Class returns
	Notified     [packet.SentNotifications]uint32 // notifications sent or observed, by kind
	Paced        uint16                           // place of the flow in a pacer, 0 for none
	// The place of the sender in senders, 0 for none, above placeBits the class of share, and then spreadBit: an account is a cache line.
	watchAndClass uint16
}

// Share is a flow's part of one class of a queue.
type Share struct {
	Queued uint32 // bytes waiting, while the queue tracks its flows' shares; at most 2^32 - 2
	Rank   uint32 // place in the heap of the queue's flows, 0 for none
}

// placeBits is the number of bits of a place in senders. The bits above it have a class, and spreadBit, which says that the flow may have
// bytes in other classes, too.
const (
	placeBits = 12
	// MaxWatch is the largest place of a sender that fits.
	MaxWatch  = 1<<placeBits - 1
	spreadBit = 1 << 15
)

var _ [spreadBit>>placeBits - MaxClasses]struct{} // a class fits

// Watch is the place of the flow's sender among those that are watched, 0 for none.
func (f *Flow) Watch() uint16 { return f.watchAndClass & (1<<placeBits - 1) }

// Class is the class of Share.
func (f *Flow) Class() uint8 { return uint8(f.watchAndClass &^ spreadBit >> placeBits) }

// SetWatch sets Watch, at most MaxWatch.
func (f *Flow) SetWatch(place uint16) {
	f.watchAndClass = f.watchAndClass&^(1<<placeBits-1) | place
}

func (f *Flow) setClass(class uint8) {
	f.watchAndClass = f.watchAndClass&(spreadBit|1<<placeBits-1) | uint16(class)<<placeBits
}

// Spread reports whether the flow may have bytes in classes other than Class.
func (f *Flow) Spread() bool { return f.watchAndClass&spreadBit != 0 }

// Accounts are a worker's, by flowtable.Index. The account of flowtable.None is never read.
type Accounts struct {
	of    []Flow
	more  [][MaxClasses]Share // by class, the shares that are not in the account; all zero while the flow has no bytes there
	Flows *flowtable.Table
}

const (
	accountBytes = int(unsafe.Sizeof(Flow{}))
	moreBytes    = int(unsafe.Sizeof([MaxClasses]Share{}))
)

// Size is the number of bytes that New needs.
func Size(flows int) int { return (flows + 1) * (accountBytes + moreBytes) }

// New places the accounts for the flows of a table in memory, which must be zero and 8-byte aligned.
func New(memory []byte, flows *flowtable.Table) Accounts {
	n := flows.Capacity() + 1
	return Accounts{
		of:    unsafe.Slice((*Flow)(unsafe.Pointer(unsafe.SliceData(memory))), n),
		more:  unsafe.Slice((*[MaxClasses]Share)(unsafe.Pointer(&memory[n*accountBytes])), n),
		Flows: flows,
	}
}

// Share returns the share of a flow, whose account is f, in a class.
func (a *Accounts) Share(x flowtable.Index, f *Flow, class uint8) *Share {
	if f.Class() == class {
		return &f.Share
	}
	return &a.more[x][class%MaxClasses]
}

// Growing is Share for a frame that enters the class. A flow whose frames use one class at a time, as nearly all do, has its share in its
// account.
func (a *Accounts) Growing(x flowtable.Index, f *Flow, class uint8) *Share {
	if f.Class() == class {
		return &f.Share
	}
	if more := &a.more[x][class%MaxClasses]; f.Queued > 0 || f.Spread() && more.Queued > 0 {
		f.watchAndClass |= spreadBit
		return more
	}
	f.setClass(class)
	return &f.Share
}

// QueuedBytes is the bytes of a flow in all classes.
func (a *Accounts) QueuedBytes(x flowtable.Index, f *Flow) uint64 {
	n := uint64(f.Queued)
	if f.Spread() {
		for class := range a.more[x] {
			n += uint64(a.more[x][class].Queued)
		}
	}
	return n
}

// Get returns a flow's account, an empty one if it had none yet.
func (a *Accounts) Get(x flowtable.Index) *Flow { return a.Begun(a.Flows.Ref(x)) }

// Begun is Get for a flow that is known to have this generation.
func (a *Accounts) Begun(flow flowtable.Ref) *Flow {
	f := a.Known(flow.Index)
	if f.Generation.Load() != flow.Generation {
		f.Begin(flow.Generation)
	}
	return f
}

// Mark counts marked packets of a burst for their flows, run by run: mostly all packets are marked from one on. Packets without a flow count
// for flowtable.None.
func (a *Accounts) Mark(flows []flowtable.Ref, marked uint64) {
	for marked != 0 {
		i := bits.TrailingZeros64(marked)
		end := i + bits.TrailingZeros64(^(marked >> i))
		for _, flow := range flows[i:end] {
			a.Begun(flow).Marked++
		}
		marked &^= 1<<end - 1
	}
}

// Known returns the account of a flow for which Get was called since the flow began. Each flow of the table has an account, so the index needs no
// check.
func (a *Accounts) Known(x flowtable.Index) *Flow {
	return (*Flow)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(a.of)), uint64(x)*uint64(unsafe.Sizeof(Flow{}))))
}

// Named returns the account of the flow in the tag of a tracked frame; false if the frame had no flow, or the flow has ended.
func (a *Accounts) Named(t flowtable.Ref) (*Flow, bool) {
	f := a.Known(t.Index)
	return f, t.Index != flowtable.None && f.Generation.Load() == t.Generation
}

// Find returns a flow's account, nil if it has none.
func (a *Accounts) Find(x flowtable.Index) *Flow {
	if f := &a.of[x]; f.Generation.Load() == a.Flows.State(x).Generation() {
		return f
	}
	return nil
}

// Begin assigns the account to the flow with this generation. It stores the generation last, so that a reader who finds it doesn't read
// values of an earlier flow.
func (f *Flow) Begin(generation uint32) {
	f.LastNotified.Store(0)
	f.Arrivals.Store(0)
	f.Marked = 0
	f.Share, f.Paced, f.watchAndClass = Share{}, 0, 0
	f.Notified = [packet.SentNotifications]uint32{}
	f.Generation.Store(generation)
}

// SetNotified records that a notification was sent at the time now, or would have been in observe mode.
func (f *Flow) SetNotified(now int64) { fastpath.Store64(&f.LastNotified, ratelimit.Stamp(now)) }

// LastNotifiedOf is the time of the last notification about the flow with an index and generation, 0 for never, and for a flow that has
// ended. Any goroutine may call it.
func (a *Accounts) LastNotifiedOf(x flowtable.Index, generation uint32) int64 {
	f := &a.of[x]
	if f.Generation.Load() != generation {
		return 0
	}
	at := f.LastNotified.Load()
	if f.Generation.Load() != generation { // the time may belong to the flow that has the account now
		return 0
	}
	return at
}

// NotifiedWithin reports whether the sender of the flow with an index and generation was notified less than this many ns before now,
// because of a queue here or of packets that arrived with CE. Any goroutine may call it.
func (a *Accounts) NotifiedWithin(x flowtable.Index, generation uint32, now, ns int64) bool {
	if at := a.LastNotifiedOf(x, generation); at != 0 && now-at < ns {
		return true
	}
	f := &a.of[x]
	arrivals := congestion.Arrivals(f.Arrivals.Load())
	return f.Generation.Load() == generation && arrivals.AnsweredWithin(now, ns)
}
