package egress

import (
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/flowtable"
)

// rank ranks the flows by their bytes. It takes a step for each frame that waits, and then some for each that enters or leaves, a third of a
// worker's time for a frame. So it begins when the largest share is needed, and ends when the queue is short again.
func (c *Class) rank() {
	s := &c.Shares
	if s.Ranked {
		return
	}
	s.Ranked, s.rankedAt = true, c.n
	_, tags := c.Front(c.n)
	s.list(tags)
	s.list(c.tags[:c.n-len(tags)])
	s.order()
}

// top returns the largest bytes of flows, largest first, up to the length of to; 0 if there are fewer. Flows must be ranked.
//
// A flow's children in the heap have no more bytes than it has. So the next largest one is always among the children of those already
// found: the search checks two flows for each that it finds, whatever their total number.
func (s *Shares) top(to []uint64) {
	var next [congestion.FlowsPerRound + 1]int // places in the heap, in no order
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
