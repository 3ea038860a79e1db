package egress

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
)

// Shares tracks, for one class of an egress queue, each flow's waiting bytes, and the flow with most (draft-tian 5.5, step 1). Only
// notifying senders needs that, so it is tracked only while the queue is long or a sender may be notified: see Class.Track. A flow's
// share holds its bytes (account.Accounts.Share). To find the flow with most bytes, the flows in a long queue are ranked in a binary heap, largest
// first; share.rank is a flow's place in it, so that a frame that enters or leaves takes a few steps and no search.
type Shares struct {
	accounts *account.Accounts
	class    uint8
	heap     []uint64 // bytes << 32 | flow; place 0 is unused
	n        int      // flows in the heap
	Other    uint64   // bytes of frames that belong to no flow
	Ended    uint64   // bytes of frames whose flow has ended
	squares  uint64   // sum of the squares of the flows' bytes
	Tracked  bool     // accounts hold their flows' waiting bytes
	Ranked   bool     // the heap is in use
	rankedAt int      // frames in the queue when ranking began
}

// newShares needs memory of 8 bytes for each flow that can be queued, and 8 more.
func newShares(memory []byte, a *account.Accounts, class int) Shares {
	return Shares{accounts: a, class: uint8(class), heap: unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(memory))), len(memory)/8)}
}

// top returns the largest bytes of flows, largest first, up to the length of to; 0 if there are fewer. Flows must be ranked.
//
// A flow's children in the heap have no more bytes than it has. So the next largest one is always among the children of those already
// found: the search checks two flows for each that it finds, whatever their total number.
func (s *Shares) top(to []uint64) {
	var next [congestion.MaxFlowsPerRound + 1]int // places in the heap, in no order
	n := 0
	if s.n > 0 {
		next[0], n = 1, 1
	}
	for i := range to {
		to[i] = 0
		if n == 0 {
			continue
		}
		best := 0
		for k := 1; k < n; k++ {
			if s.heap[next[k]]>>32 > s.heap[next[best]]>>32 {
				best = k
			}
		}
		place := next[best]
		to[i] = s.heap[place] >> 32
		n--
		next[best] = next[n]
		for child := 2 * place; child <= min(2*place+1, s.n); child++ {
			next[n] = child
			n++
		}
	}
}

// add counts a frame that enters the queue for its flow, whose account is f.
func (s *Shares) add(x flowtable.Index, f *account.Flow, bytes uint32) {
	if x == flowtable.None {
		s.Other += uint64(bytes)
		return
	}
	part := s.accounts.Growing(x, f, s.class)
	s.grow(part, bytes)
	if s.Ranked {
		s.raise(x, part)
	}
}

// grow adds to the share of a flow, but doesn't touch the heap.
func (s *Shares) grow(part *account.Share, bytes uint32) {
	s.squares += uint64(bytes) * (2*uint64(part.Queued) + uint64(bytes))
	part.Queued += bytes
}

// countAll counts frames that were queued while shares were not tracked.
func (s *Shares) countAll(frames []burst.Frame, tags []flowtable.Ref) {
	a := s.accounts
	frames = frames[:len(tags)]
	for i := range tags {
		t, size := tags[i], frames[i].Len
		switch {
		case t.Index == flowtable.None:
			s.Other += uint64(size)
		case !a.Flows.Live(t):
			s.Ended += uint64(size)
		default:
			s.grow(a.Growing(t.Index, a.Begun(t), s.class), size)
		}
	}
}

// forget empties the accounts of the flows of all frames in the queue.
func (s *Shares) forget(tags []flowtable.Ref) {
	a := s.accounts
	for _, t := range tags {
		if f, ok := a.Named(t); ok {
			*a.Share(t.Index, f, s.class) = account.Share{}
		}
	}
}

// list appends the flows of frames to the heap, in no order.
func (s *Shares) list(tags []flowtable.Ref) {
	a, heap, n := s.accounts, s.heap, s.n
	for _, t := range tags {
		if f, ok := a.Named(t); ok {
			if part := a.Share(t.Index, f, s.class); part.Rank == 0 {
				n++
				heap[n], part.Rank = uint64(part.Queued)<<32|uint64(t.Index), uint32(n)
			}
		}
	}
	s.n = n
}

// order makes a heap of the flows that list has appended, from the last one with children on.
func (s *Shares) order() {
	for place := s.n / 2; place > 0; place-- {
		word := s.heap[place]
		if bytes := word >> 32; s.heap[2*place]>>32 > bytes || s.heap[min(2*place+1, s.n)]>>32 > bytes {
			s.down(place, word)
		}
	}
}

// raise moves a flow whose bytes have grown to its place in the heap, or adds it.
func (s *Shares) raise(x flowtable.Index, f *account.Share) {
	place := int(f.Rank)
	if place == 0 {
		s.n++
		place = s.n
	}
	s.up(place, uint64(f.Queued)<<32|uint64(x))
}

// remove counts a frame that left the queue.
func (s *Shares) remove(t flowtable.Ref, bytes uint32) {
	f := s.accounts.Known(t.Index)
	switch {
	case t.Index == flowtable.None:
		s.Other -= uint64(bytes)
	case f.Generation.Load() != t.Generation:
		s.Ended -= uint64(bytes)
	default:
		part := s.accounts.Share(t.Index, f, s.class)
		part.Queued -= bytes
		s.squares -= uint64(bytes) * (2*uint64(part.Queued) + uint64(bytes))
		if s.Ranked {
			s.lower(t.Index, part)
		}
	}
}

// end counts the waiting bytes of a flow, whose account is f, as those of an ended flow.
func (s *Shares) end(x flowtable.Index, f *account.Flow) {
	part := s.accounts.Share(x, f, s.class)
	if part.Queued == 0 {
		return
	}
	s.Ended += uint64(part.Queued)
	s.squares -= uint64(part.Queued) * uint64(part.Queued)
	part.Queued = 0
	if s.Ranked {
		s.lower(x, part)
	}
}

// lower moves a flow whose bytes have shrunk to its place in the heap, or removes it.
func (s *Shares) lower(x flowtable.Index, f *account.Share) {
	place := int(f.Rank)
	if f.Queued > 0 {
		s.down(place, uint64(f.Queued)<<32|uint64(x))
		return
	}
	f.Rank = 0
	last := s.heap[s.n]
	s.n--
	if place <= s.n {
		s.up(place, last)
		s.down(int(s.of(last).Rank), last)
	}
}

// unrank empties the heap.
func (s *Shares) unrank() {
	for _, word := range s.heap[1 : 1+s.n] {
		s.of(word).Rank = 0
	}
	s.n, s.Ranked = 0, false
}

// of returns the share that a word of the heap is about.
func (s *Shares) of(word uint64) *account.Share {
	x := flowtable.Index(uint32(word))
	return s.accounts.Share(x, s.accounts.Known(x), s.class)
}

// put writes the word at its place, and the place into the flow's share.
func (s *Shares) put(place int, word uint64) {
	s.heap[place] = word
	s.of(word).Rank = uint32(place)
}

// up moves the word from place towards the root while it is larger. Equal ones stay, so that frames of one size cost one comparison.
func (s *Shares) up(place int, word uint64) {
	for place > 1 && s.heap[place/2]>>32 < word>>32 {
		s.put(place, s.heap[place/2])
		place /= 2
	}
	s.put(place, word)
}

// down moves the word from place towards the leaves.
func (s *Shares) down(place int, word uint64) {
	for {
		child := 2 * place
		if child > s.n {
			break
		}
		if child < s.n && s.heap[child+1]>>32 > s.heap[child]>>32 {
			child++
		}
		if s.heap[child]>>32 <= word>>32 {
			break
		}
		s.put(place, s.heap[child])
		place = child
	}
	s.put(place, word)
}
