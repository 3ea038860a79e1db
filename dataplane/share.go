package dataplane

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/flowtable"
)

// flowShares knows, for one class of an egress queue, how many bytes each flow has waiting in it, and which flow has most (draft-tian 5.5,
// step 1). That is needed only to notify senders, so it is tracked only while the queue is long or someone asks: see egress.track. A flow's
// account holds its bytes, in account.queued. To know which flow has most, the flows in a long queue are ranked in a binary heap, largest
// first; account.rank is a flow's place in it, so that a frame that comes or goes takes a few steps and no search. An account can hold one
// share: see count.
type flowShares struct {
	accounts *accounts
	heap     []uint64 // bytes << 32 | flow; place 0 is unused
	n        int      // flows in the heap
	other    uint64   // bytes of frames that belong to no flow
	most     uint64   // bytes of the flow that has most, while exact
	tracked  bool     // accounts hold what their flows have waiting
	exact    bool     // most is; not from when a frame leaves until someone asks
	ranked   bool     // the heap is in use
	rankedAt int      // frames in the queue when ranking began
	eager    bool     // ranks as soon as it tracks; for a test to compare
}

// newFlowShares needs memory of 8 bytes for each flow that can be queued, and 8 more.
func newFlowShares(memory []byte, a *accounts) flowShares {
	return flowShares{accounts: a, heap: unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(memory))), len(memory)/8)}
}

// largest is the bytes of the flow that has most, while flows are ranked.
func (s *flowShares) largest() uint64 {
	if s.n == 0 {
		return 0
	}
	return s.heap[1] >> 32
}

// add counts a frame that enters the queue at its flow, whose account is f. It returns the frame's tag: none where count counts it at no
// flow.
func (s *flowShares) add(x flowtable.Index, f *account, class int, bytes uint32) flowtable.Index {
	if x == flowtable.None {
		s.other += uint64(bytes)
		return flowtable.None
	}
	if !s.count(f, uint8(class), bytes) {
		return flowtable.None
	}
	if s.most = max(s.most, uint64(f.queued)); s.ranked {
		s.raise(x, f)
	}
	return x
}

// count counts a frame at its flow, or at no flow if the flow's share is of another class: a flow that changes its DSCP has its share in
// the class where it was counted first, and frames in other classes count there as no flow's. It doesn't touch the heap.
func (s *flowShares) count(f *account, class uint8, bytes uint32) bool {
	if f.queued == 0 {
		f.class = class
	} else if f.class != class {
		s.other += uint64(bytes)
		return false
	}
	f.queued += bytes
	return true
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
func (s *flowShares) remove(x flowtable.Index, bytes uint32) {
	s.exact = false
	if x == flowtable.None {
		s.other -= uint64(bytes)
		return
	}
	f := s.accounts.known(x)
	f.queued -= bytes
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

// up moves the word from place towards the root as far as its bytes carry it. Equal ones stay, so that frames of one size cost one
// comparison.
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
