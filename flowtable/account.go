package flowtable

import "sync/atomic"

// Account is what the owner keeps of a flow that has met with congestion. It is the flow's while it has the generation of the flow's entry:
// so a flow that begins leaves it alone, and memory of flows that never met with any is never touched.
type Account struct {
	notified   atomic.Int64  // told, as far as others are to know
	told       int64         // nanoseconds, 0 for never
	generation atomic.Uint32 // of the entry
	// Queued is the flow's share of its egress queue in octets, while the queue keeps shares; at most 2^32 - 2.
	Queued uint32
	Marked uint64 // packets marked CE here
	// Rank is for the egress queue's order of its flows, Class for which of a port's queues that is.
	Rank uint32
	// Notified counts notifications sent about the flow by kind; the kinds are the caller's.
	Notified [5]uint32
	Class    uint8

	packets, bytes uint64 // what is too much for the track
}

// Account is a flow's account, for its owner. Account(None) is one that no flow has.
func (t *Table) Account(x Index) *Account {
	a, g := &t.accounts[x], state(t.entries[x].state.Load()).generation()
	if a.generation.Load() != g {
		a.begin(g)
	}
	return a
}

// Accounted is Account for a flow whose account was asked for since it began.
func (t *Table) Accounted(x Index) *Account { return &t.accounts[x] }

// begin makes the account another flow's. A reader that finds its generation finds what belongs to it.
func (a *Account) begin(generation uint32) {
	a.notified.Store(0)
	a.told = 0
	a.Queued, a.Marked, a.Rank, a.Notified, a.Class = 0, 0, 0, [5]uint32{}, 0
	a.packets, a.bytes = 0, 0
	a.generation.Store(generation)
}

// share is what the flow of an entry has queued, and where its queue has it.
func (a *Account) share(e *entry) (queued, rank uint32, class uint8) {
	if a.generation.Load() != state(e.state.Load()).generation() {
		return 0, 0, 0
	}
	return a.Queued, a.Rank, a.Class
}

// of is the time of the last notification about the flow of a generation, as far as others are to know.
func (a *Account) of(generation uint32) int64 {
	if a.generation.Load() != generation {
		return 0
	}
	return a.notified.Load()
}

// Told is the time of the last notification about the flow in nanoseconds, 0 if there was none.
func (a *Account) Told() int64 { return a.told }

// SetTold notes that a notification about the flow was sent, for others to find if they may look: that takes as long as all else here.
// Since 0 means never, the time 0 is kept as 1.
func (a *Account) SetTold(now int64, others bool) {
	if now == 0 {
		now = 1
	}
	if a.told = now; others {
		a.notified.Store(now)
	}
}

// Flow is what a report tells of a flow.
type Flow struct {
	Packets   uint64
	Bytes     uint64 // octets of frames without FCS
	Marked    uint64 // packets marked CE here
	Notified  [5]uint32
	Transport uint8 // opcode >> 5, IBTA 9.2.1
}

// Flow is what has been counted of a flow.
func (t *Table) Flow(x Index) Flow {
	k, a := &t.tracks[x], &t.accounts[x]
	f := Flow{Packets: uint64(k.packets), Bytes: uint64(k.bytes), Transport: k.transport}
	if a.generation.Load() == state(t.entries[x].state.Load()).generation() {
		f.Marked, f.Notified = a.Marked, a.Notified
		f.Packets += a.packets
		f.Bytes += a.bytes
	}
	return f
}
