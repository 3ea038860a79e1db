package dataplane

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
)

// flowShares tracks, for one class of an egress queue, each flow's waiting bytes, and the flow with most (draft-tian 5.5, step 1). Only
// notifying senders needs that, so it is tracked only while the queue is long or a sender may be notified: see egress.track. A flow's
// account holds its bytes, in account.queued. To find the flow with most bytes, the flows in a long queue are ranked in a binary heap,
// largest first; account.rank is a flow's place in it, so that a frame that enters or leaves takes a few steps and no search. An account
// can hold one share: see count.
type flowShares struct {
	accounts *accounts
	heap     []uint64 // bytes << 32 | flow; place 0 is unused
	n        int      // flows in the heap
	other    uint64   // bytes of frames that belong to no flow
	ended    uint64   // bytes of frames whose flow has ended
	tracked  bool     // accounts hold their flows' waiting bytes
	ranked   bool     // the heap is in use
	rankedAt int      // frames in the queue when ranking began
}

// newFlowShares needs memory of 8 bytes for each flow that can be queued, and 8 more.
func newFlowShares(memory []byte, a *accounts) flowShares {
	return flowShares{accounts: a, heap: unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(memory))), len(memory)/8)}
}

// top returns the largest bytes of flows, largest first, up to the length of to; 0 if there are fewer. Flows must be ranked.
//
// A flow's children in the heap have no more bytes than it has. So the next largest one is always among the children of those already
// found: the search checks two flows for each that it finds, whatever their total number.
func (s *flowShares) top(to []uint64) {
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

// add counts a frame that enters the queue for its flow, whose account is f. It returns false if it counts for no flow.
func (s *flowShares) add(x flowtable.Index, f *account, class int, bytes uint32) bool {
	if x == flowtable.None {
		s.other += uint64(bytes)
		return false
	}
	if !s.count(f, uint8(class), bytes) {
		return false
	}
	if s.ranked {
		s.raise(x, f)
	}
	return true
}

// count counts a frame for its flow, or for no flow if the flow's share is in another class: a flow that changes its DSCP has its share in
// the class where it was first counted, and its frames in other classes count for no flow. It doesn't touch the heap.
func (s *flowShares) count(f *account, class uint8, bytes uint32) bool {
	if f.queued == 0 {
		f.setClass(class)
	} else if f.class() != class {
		s.other += uint64(bytes)
		return false
	}
	f.queued += bytes
	return true
}

// countAll counts frames that were queued while shares were not tracked. A frame that counts for no flow loses its tag.
func (s *flowShares) countAll(class uint8, frames []burst.Frame, tags []flowtable.Ref) {
	frames = frames[:len(tags)]
	for i := range tags {
		t, size := tags[i], frames[i].Len
		if t.Index == flowtable.None {
			s.other += uint64(size)
			continue
		}
		if !s.accounts.flows.Live(t) {
			s.ended += uint64(size)
			continue
		}
		f := s.accounts.known(t.Index)
		if f.generation.Load() != t.Generation {
			f.begin(t.Generation)
		}
		if !s.count(f, class, size) {
			tags[i] = flowtable.Ref{}
		}
	}
}

// forget empties the accounts of the flows of all frames in the queue.
func (s *flowShares) forget(tags []flowtable.Ref) {
	for _, t := range tags {
		if f, ok := s.accounts.named(t); ok {
			f.queued, f.rank = 0, 0
		}
	}
}

// list appends the flows of frames to the heap, in no order.
func (s *flowShares) list(tags []flowtable.Ref) {
	for _, t := range tags {
		if f, ok := s.accounts.named(t); ok && f.rank == 0 {
			s.n++
			s.heap[s.n], f.rank = uint64(f.queued)<<32|uint64(t.Index), uint32(s.n)
		}
	}
}

// order makes a heap of the flows that list has appended, from the last one with children on.
func (s *flowShares) order() {
	for place := s.n / 2; place > 0; place-- {
		word := s.heap[place]
		if bytes := word >> 32; s.heap[2*place]>>32 > bytes || s.heap[min(2*place+1, s.n)]>>32 > bytes {
			s.down(place, word)
		}
	}
}

// raise moves a flow whose bytes have grown to its place in the heap, or adds it.
func (s *flowShares) raise(x flowtable.Index, f *account) {
	place := int(f.rank)
	if place == 0 {
		s.n++
		place = s.n
	}
	s.up(place, uint64(f.queued)<<32|uint64(x))
}

// remove counts a frame that left the queue.
func (s *flowShares) remove(t flowtable.Ref, bytes uint32) {
	f := s.accounts.known(t.Index)
	switch {
	case t.Index == flowtable.None:
		s.other -= uint64(bytes)
	case f.generation.Load() != t.Generation:
		s.ended -= uint64(bytes)
	default:
		f.queued -= bytes
		if s.ranked {
			s.lower(t.Index, f)
		}
	}
}

// end counts a flow's waiting bytes as those of an ended flow.
func (s *flowShares) end(x flowtable.Index, f *account) {
	s.ended += uint64(f.queued)
	f.queued = 0
	if s.ranked {
		s.lower(x, f)
	}
}

// lower moves a flow whose bytes have shrunk to its place in the heap, or removes it.
func (s *flowShares) lower(x flowtable.Index, f *account) {
	place := int(f.rank)
	if f.queued > 0 {
		s.down(place, uint64(f.queued)<<32|uint64(x))
		return
	}
	f.rank = 0
	last := s.heap[s.n]
	s.n--
	if place <= s.n {
		s.up(place, last)
		s.down(int(s.accounts.known(flowOf(last)).rank), last)
	}
}

// unrank empties the heap.
func (s *flowShares) unrank() {
	for _, word := range s.heap[1 : 1+s.n] {
		s.accounts.known(flowOf(word)).rank = 0
	}
	s.n, s.ranked = 0, false
}

func flowOf(word uint64) flowtable.Index { return flowtable.Index(uint32(word)) }

// put writes the word at its place, and the place into the flow's account.
func (s *flowShares) put(place int, word uint64) {
	s.heap[place] = word
	s.accounts.known(flowOf(word)).rank = uint32(place)
}

// up moves the word from place towards the root while it is larger. Equal ones stay, so that frames of one size cost one comparison.
func (s *flowShares) up(place int, word uint64) {
	for place > 1 && s.heap[place/2]>>32 < word>>32 {
		s.put(place, s.heap[place/2])
		place /= 2
	}
	s.put(place, word)
}

// down moves the word from place towards the leaves.
func (s *flowShares) down(place int, word uint64) {
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
