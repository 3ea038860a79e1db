package egress

import (
	"unsafe"

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

// Track begins to track the flows' shares. A queue of a few frames, the usual case, is not worth the work; for one that grows, tracking
// begins while it has few frames.
func (c *Class) Track() {
	s := &c.Shares
	if s.Tracked {
		return
	}
	s.Tracked, s.Other, s.Ended, s.squares = true, 0, 0, 0
	frames, tags := c.Front(c.n)
	s.countAll(frames, tags)
	rest := c.n - len(frames)
	s.countAll(c.frames[:rest], c.tags[:rest])
}

// untrack ends tracking before frames leave, if hardly any will be left then. It reports whether shares are not tracked.
func (c *Class) untrack(left int) bool {
	s := &c.Shares
	switch {
	case !s.Tracked:
		return true
	case left > someFrames/8:
		return false
	}
	_, tags := c.Front(c.n)
	s.forget(tags)
	s.forget(c.tags[:c.n-len(tags)])
	s.n, s.Ranked, s.Tracked = 0, false, false
	return true
}

// Top returns the bytes of the flows with the largest shares, the largest first; 0 if there are no more. Without tracked shares it returns
// all waiting bytes, as if one flow had them: no flow has more.
func (c *Class) Top(to []uint64) {
	if !c.Shares.Tracked {
		clear(to)
		to[0] = c.Depth
		return
	}
	c.rank()
	c.Shares.top(to)
}

// TopOfAll is Top of all workers together.
func (c *Class) TopOfAll(top []uint64) {
	c.Top(top)
	for _, o := range c.others {
		for k := range o.largest {
			bytes := o.largest[k].Load()
			if bytes <= top[len(top)-1] {
				break
			}
			at := len(top) - 1
			for ; at > 0 && top[at-1] < bytes; at-- {
				top[at] = top[at-1]
			}
			top[at] = bytes
		}
	}
}

// Sums returns what the fair share of the class depends on. As Top, it takes the bytes of a class without tracked shares as those of one flow.
func (c *Class) Sums() Sums {
	s := &c.Shares
	if !s.Tracked {
		return Sums{c.Depth, c.Depth * c.Depth}
	}
	return Sums{c.Depth - s.Other - s.Ended, s.squares}
}

// SumsOfAll is Sums of all workers together.
func (c *Class) SumsOfAll() Sums {
	all := c.Sums()
	for _, o := range c.others {
		all.Bytes += o.flowBytes.Load()
		all.Squares += o.squares.Load()
	}
	return all
}

// Sums has the bytes of the flows of a class, and the sum of the squares of each flow's bytes.
type Sums struct{ Bytes, Squares uint64 }

// FairShare is the least that a flow has to have in a class for its sender to be notified: the bytes of all flows divided by the effective
// number of flows, (sum x)^2 / (sum x^2), which is their number times Jain's fairness index. The mean would fall
// with each tiny flow that someone adds, and this does not. Of that, a quarter is left out: equal flows differ by a few packets, and if only half of
// them were notified, the queue would overflow.
func (s Sums) FairShare() uint64 {
	if s.Bytes == 0 {
		return 0
	}
	share := (s.Squares + s.Bytes - 1) / s.Bytes
	return share - share/4
}
