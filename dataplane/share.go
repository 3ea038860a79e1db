package dataplane

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/flowtable"
)

// share keeps, for one class of an egress queue, what each flow has waiting in it, and which flow has most (draft-tian 5.5, step 1). Only
// who tells senders needs to know; so a share is kept while the queue is long or someone asks: see keep. A flow's account holds its
// octets. To know which flow has most the flows in a long queue are ranked, in a binary heap, largest first, and a flow's account
// holds its place there too, so that adding and taking away a frame is a few steps, and none of them searches. An account
// has room for one share: see take.
type share struct {
	heap   []uint64 // octets << 32 | flow; place 0 is unused
	n      int
	other  uint64 // octets of frames that belong to no flow
	most   uint64 // octets of the flow that has most, while exact
	kept   bool   // accounts hold what their flows have waiting
	exact  bool   // most is; not from when a frame leaves on until someone asks
	ranked bool   // the heap is kept
	from   int    // frames in the queue when that began
	eager  bool   // ranks what it keeps at once; so that a test can compare
}

// newShare makes a share over memory of 8 octets for each flow that can be queued, and one more.
func newShare(memory []byte) share {
	return share{heap: unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(memory))), len(memory)/8)}
}

// largest is the octets of the flow that has most, of a share that is ranked.
func (s *share) largest() uint64 {
	if s.n == 0 {
		return 0
	}
	return s.heap[1] >> 32
}

// enter counts a frame of a flow that enters the queue. It returns the frame's tag: none where take doesn't take it.
func (s *share) enter(x flowtable.Index, f *flowtable.Account, class int, octets uint32, t *flowtable.Table) flowtable.Index {
	if x == flowtable.None {
		s.other += uint64(octets)
		return flowtable.None
	}
	if !s.take(f, uint8(class), octets) {
		return flowtable.None
	}
	if s.most = max(s.most, uint64(f.Queued)); s.ranked {
		s.enlist(t, x, f)
	}
	return x
}

// take counts a frame at its flow, or at none if the flow's share is of another class: a flow that changes its DSCP has its share where it
// was kept first, and the frames that go elsewhere meanwhile count there as no flow's. It doesn't touch the ranking.
func (s *share) take(f *flowtable.Account, class uint8, octets uint32) bool {
	if f.Queued == 0 {
		f.Class = class
	} else if f.Class != class {
		s.other += uint64(octets)
		return false
	}
	f.Queued += octets
	return true
}

// enlist gives a flow the place in the heap that its octets, which are no less than before, call for.
func (s *share) enlist(t *flowtable.Table, i flowtable.Index, f *flowtable.Account) {
	place := int(f.Rank)
	if place == 0 {
		s.n++
		place = s.n
	}
	s.up(t, place, uint64(f.Queued)<<32|uint64(i))
}

// remove counts a frame that left the queue.
func (s *share) remove(t *flowtable.Table, i flowtable.Index, octets uint32) {
	s.exact = false
	if i == flowtable.None {
		s.other -= uint64(octets)
		return
	}
	f := t.Accounted(i)
	f.Queued -= octets
	if s.ranked {
		s.relist(t, i, f)
	}
}

// relist gives a flow that has less than before its place in the heap, or takes it out.
func (s *share) relist(t *flowtable.Table, i flowtable.Index, f *flowtable.Account) {
	place := int(f.Rank)
	if f.Queued > 0 {
		s.down(t, place, uint64(f.Queued)<<32|uint64(i))
		return
	}
	f.Rank = 0
	last := s.heap[s.n]
	s.n--
	if place <= s.n {
		s.up(t, place, last)
		s.down(t, int(t.Accounted(flowOf(last)).Rank), last)
	}
}

// unrank gives the heap up.
func (s *share) unrank(t *flowtable.Table) {
	for _, word := range s.heap[1 : 1+s.n] {
		t.Accounted(flowOf(word)).Rank = 0
	}
	s.n, s.ranked = 0, false
}

func flowOf(word uint64) flowtable.Index { return flowtable.Index(uint32(word)) }

// put writes the word at its place, and the place into the flow's record.
func (s *share) put(t *flowtable.Table, place int, word uint64) {
	s.heap[place] = word
	t.Accounted(flowOf(word)).Rank = uint32(place)
}

// up moves the word from place towards the root as far as its octets carry it. Equal octets stay, so that frames of one size
// cost one comparison.
func (s *share) up(t *flowtable.Table, place int, word uint64) {
	for place > 1 && s.heap[place/2]>>32 < word>>32 {
		s.put(t, place, s.heap[place/2])
		place /= 2
	}
	s.put(t, place, word)
}

// down moves the word from place towards the leaves.
func (s *share) down(t *flowtable.Table, place int, word uint64) {
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
		s.put(t, place, s.heap[child])
		place = child
	}
	s.put(t, place, word)
}
