package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
)

// account is what a worker keeps of a flow that has met congestion. It belongs to the flow whose generation it has, so that a flow that
// begins need not touch it, and the memory of accounts that no flow has used stays untouched.
type account struct {
	published    atomic.Int64 // lastNotified, for other workers
	lastNotified int64        // ns, 0 for never
	marked       uint64       // packets marked CE here
	generation   atomic.Uint32
	queued       uint32                     // bytes waiting, while the queue tracks its flows' shares; at most 2^32 - 2
	rank         uint32                     // place in the heap of the queue's flows, 0 for none
	notified     [congestion.Formats]uint32 // notifications sent, by kind
	class        uint8                      // the class that queued and rank are about
}

// accounts are a worker's accounts, by flowtable.Index. The account of flowtable.None is one that nobody reads.
type accounts struct {
	of    []account
	flows *flowtable.Table
}

// accountsSize is the number of bytes that newAccounts needs.
func accountsSize(flows int) int { return (flows + 1) * int(unsafe.Sizeof(account{})) }

// newAccounts lays accounts for the flows of a table over memory, zeroed and 8-byte aligned.
func newAccounts(memory []byte, flows *flowtable.Table) accounts {
	return accounts{unsafe.Slice((*account)(unsafe.Pointer(unsafe.SliceData(memory))), flows.Capacity()+1), flows}
}

// get is a flow's account, an empty one if it had none yet.
func (a *accounts) get(x flowtable.Index) *account {
	f, generation := &a.of[x], a.flows.State(x).Generation()
	if f.generation.Load() != generation {
		f.begin(generation)
	}
	return f
}

// known is the account of a flow that get was called for since the flow began.
func (a *accounts) known(x flowtable.Index) *account { return &a.of[x] }

// find is a flow's account, nil if it has none.
func (a *accounts) find(x flowtable.Index) *account {
	if f := &a.of[x]; f.generation.Load() == a.flows.State(x).Generation() {
		return f
	}
	return nil
}

// begin makes the account that of the flow with a generation. The generation is stored last, so that a reader who finds it there finds
// nothing of the flow before.
func (f *account) begin(generation uint32) {
	f.published.Store(0)
	f.lastNotified, f.marked = 0, 0
	f.queued, f.rank, f.class = 0, 0, 0
	f.notified = [congestion.Formats]uint32{}
	f.generation.Store(generation)
}

// notify notes that a notification of a kind was sent at the time now. It is published only where there are other workers: that takes as
// long as all else here.
func (f *account) notify(kind congestion.Format, now int64, publish bool) {
	if now == 0 {
		now = 1 // 0 means never
	}
	f.notified[kind]++
	f.lastNotified = now
	if publish {
		f.published.Store(now)
	}
}

// lastNotifiedOf is the time of the last notification about the flow with an index and generation, 0 for never, and for a flow that has
// ended. Any goroutine may call it.
func (a *accounts) lastNotifiedOf(x flowtable.Index, generation uint32) int64 {
	f := &a.of[x]
	if f.generation.Load() != generation {
		return 0
	}
	at := f.published.Load()
	if f.generation.Load() != generation { // the time may be that of the flow which has the account now
		return 0
	}
	return at
}
