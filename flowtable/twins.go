package flowtable

import (
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Twins are flows with the same addresses and QPs in different scopes: those of tenants with the same addresses. Who names a flow without its
// scope names one that has no twin. Most gateways get no such names. So the table lists no flow, and doesn't touch the memory of the lists,
// until its owner calls ListTwins.

// Twin is a flow that Twins has found.
type Twin struct {
	Ref
	Scope packet.Scope
}

// twins lists the flows of a table by their addresses and QPs. Only the owner changes it; once all flows are listed, next and heads are also
// read by others.
type twins struct {
	heads  []atomic.Uint32 // by hash of addresses and QPs, the first flow
	links  []twinLink      // by Index
	listed atomic.Bool     // all flows are in lists
}

type twinLink struct {
	next atomic.Uint32
	prev uint32 // 0: the first one
}

const (
	// listBatch is the number of entries that one ListTwins lists, at most.
	listBatch = 64
	// allListed, in Table.listed, is above any index: each flow is listed when it begins.
	allListed = math.MaxUint32
	// maxWalk bounds the flows that a search checks: a list that long has many twins, as others meet by chance only. A table in which so few
	// entries have been used needs no lists.
	maxWalk = 64
	// maxWalks bounds the searches that begin again, because the owner has moved a flow meanwhile.
	maxWalks = 8
)

// twinsSize is the memory of the lists, in bytes, a multiple of a cache line.
func twinsSize(capacity int) int {
	return ((capacity+1)*int(unsafe.Sizeof(twinLink{})) + capacity*int(unsafe.Sizeof(atomic.Uint32{})) + lineSize - 1) &^ (lineSize - 1)
}

// place puts the lists into zeroed memory, 4-byte aligned.
func (t *twins) place(mem []byte, capacity int) {
	t.links = unsafe.Slice((*twinLink)(unsafe.Pointer(unsafe.SliceData(mem))), capacity+1)
	t.heads = unsafe.Slice((*atomic.Uint32)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(mem)), len(t.links)*int(unsafe.Sizeof(twinLink{})))), capacity)
}

// ListTwins lists more of the flows, up to 64, until all are listed; from then on it does nothing, and flows are listed as they begin. The
// owner calls it once a step while any worker needs Twins. It may call it in Observer.Begin.
func (t *Table) ListTwins() {
	if t.listed == allListed {
		return
	}
	for range min(listBatch, t.unused.high-t.listed) {
		t.listed++
		if x := Index(t.listed); t.State(x).Live() {
			t.twins.list(&t.secret, x, t.Key(x))
		}
	}
	if t.listed == t.unused.high {
		t.listed = allListed
		t.twins.listed.Store(true)
	}
}

// TwinsListed reports whether all flows are listed. It never becomes false again.
func (r *Reader) TwinsListed() bool { return r.twins.listed.Load() }

// headOf is the start of the list for the addresses and QPs of a key.
func (t *twins) headOf(s *[secrets]uint64, k *[keyWords]uint64) *atomic.Uint32 {
	h := keyhash.Fold(keyhash.Fold(k[0]^s[1], k[1]^s[2])^k[4], keyhash.Fold(k[2]^s[3], k[3]^s[5])^s[4])
	return &t.heads[uint64(uint32(h))*uint64(len(t.heads))>>32]
}

// list adds a flow to the list of its key.
func (t *twins) list(secret *[secrets]uint64, x Index, k *Key) {
	words := k.words()
	head, link := t.headOf(secret, &words), &t.links[x]
	first := head.Load()
	link.prev = 0
	link.next.Store(first)
	if first != 0 {
		t.links[first].prev = uint32(x)
	}
	head.Store(uint32(x))
}

// unlist removes a flow from its list. It doesn't change the flow's own next, where a reader may be.
func (t *twins) unlist(secret *[secrets]uint64, x Index, k *Key) {
	link := &t.links[x]
	next := link.next.Load()
	if next != 0 {
		t.links[next].prev = link.prev
	}
	if link.prev != 0 {
		t.links[link.prev].next.Store(next)
		return
	}
	words := k.words()
	t.headOf(secret, &words).Store(next)
}

// Twins finds the flows with the addresses and QPs of k, in whatever scope, and returns their number: at most len(out), if there are as many
// or more. It may miss a flow that the owner begins or ends at this moment. If the owner changes the list all the time, or hasn't listed all
// flows and has had more than 64 at a time, the result is len(out), with entries that name no flow.
func (r *Reader) Twins(k *Key, out []Twin) int {
	words := k.words()
	if !r.TwinsListed() {
		return scan(r, &words, out)
	}
	head := r.twins.headOf(&r.secret, &words)
	for range maxWalks {
		if n, ok := r.twins.walk(r, &words, head, out); ok {
			return n
		}
	}
	clear(out)
	return len(out)
}

// scan is the search while not all flows are listed: of all entries that have been used, if those are few.
func scan(r *Reader, k *[keyWords]uint64, out []Twin) (n int) {
	for x := 1; x < len(r.entries) && n < len(out); x++ {
		s := r.State(Index(x))
		if s == 0 && r.entries[x].unused() { // entries are first used in their order
			return n
		}
		if x > maxWalk {
			clear(out)
			return len(out)
		}
		of, ok := r.KeyAt(Index(x), s)
		if words := of.words(); ok && s.Live() && [keyWords - 1]uint64(words[:]) == [keyWords - 1]uint64(k[:]) {
			out[n] = Twin{Ref{Index(x), s.Generation()}, of.Scope()}
			n++
		}
	}
	return n
}

// walk is one search; false if it has left its list.
func (t *twins) walk(r *Reader, k *[keyWords]uint64, head *atomic.Uint32, out []Twin) (n int, ok bool) {
	x := head.Load()
	for range maxWalk {
		if x == 0 || n == len(out) {
			return n, true
		}
		e := &r.entries[x]
		before := State(e.state.Load())
		var of [keyWords]uint64
		for i := range of {
			of[i] = e.key[i].Load()
		}
		if after := State(e.state.Load()); !before.Live() || (before^after)&flowMask != 0 || t.headOf(&r.secret, &of) != head {
			return 0, false
		}
		if [keyWords - 1]uint64(of[:]) == [keyWords - 1]uint64(k[:]) {
			out[n] = Twin{Ref{Index(x), before.Generation()}, packet.Scope(of[keyWords-1])}
			n++
		}
		x = t.links[x].next.Load()
	}
	clear(out[n:])
	return len(out), true
}
