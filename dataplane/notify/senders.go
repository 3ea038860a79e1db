package notify

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/pacing"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Watched is a sender whose flow was among the largest of a congested queue: its congestion.Sender, and the data to notify it without a
// packet of its flow.
type Watched struct {
	congestion.Sender
	Throughput congestion.Throughput
	flow       flowtable.Index // flowtable.None: the entry is free
	generation uint32          // of the flow
	seen       int64           // last time when it was among the largest, ns
	in, out    uint8           // ingress and egress port of its flow
	class      uint8           // of the queue
	Reached    bool            // a notification was sent to it, from here or elsewhere, not only observed, and no Resume since
	format     packet.Notification
	sourceQP   uint32
	elsewhere  int64         // last time when another gateway's notification to it passed, ns
	next, prev uint16        // neighbors in the chain of entries with the hash of its sender's address, 0 for none
	Target     cnpgen.Target // as of the last packet for which it was notified, or a notification could not be built
}

// watchedSenders bounds the senders that a worker watches at a time, sendersLooked the number that it checks for one to replace.
const (
	watchedSenders = 4095
	sendersLooked  = 8
)

var _ [account.MaxWatch - watchedSenders]struct{} // an account has space for a place

// senderHashes is the number of hashes of sender addresses, longestChain the maximum of entries with one hash that are checked.
const (
	senderHashes = 4096
	longestChain = 64
)

// Senders are the senders that a worker watches. An account's watch is its sender's slot here.
type Senders struct {
	*stage.State
	notifier *Notifier
	watched  atomic.Int32
	of       *[watchedSenders + 1]Watched // 0 is for senders that find no slot, and is not kept
	hand     int                          // where the next search for a slot begins
	resumed  int                          // the last entry that resume has checked
	seed     uint64
	heads    []atomic.Uint32 // by hash of the sender in its scope, the first entry; other workers read whether there is one
}

const watchedBytes = (watchedSenders + 1) * int(unsafe.Sizeof(Watched{}))

// NewSenders makes the senders that a worker watches. allocate returns zeroed memory, 8-byte aligned; the seed keys the hash of addresses.
func NewSenders(n *Notifier, seed uint64, allocate func(bytes int) ([]byte, error)) (*Senders, error) {
	memory, err := allocate(watchedBytes + senderHashes*int(unsafe.Sizeof(atomic.Uint32{})))
	if err != nil {
		return nil, err
	}
	return &Senders{
		State: n.State, notifier: n, seed: seed,
		of:    (*[watchedSenders + 1]Watched)(unsafe.Pointer(unsafe.SliceData(memory))),
		heads: unsafe.Slice((*atomic.Uint32)(unsafe.Pointer(&memory[watchedBytes])), senderHashes),
	}, nil
}

// Head returns the start of the chain of entries with a sender's hash.
func (s *Senders) Head(h packet.Host) *atomic.Uint32 {
	address := keyhash.Fold(h.Hi^s.seed, h.Lo^bits.RotateLeft64(s.seed, 32))
	return &s.heads[keyhash.Fold(address^bits.RotateLeft64(s.seed, 16), uint64(h.Scope)^bits.RotateLeft64(s.seed, 48))%senderHashes]
}

// Used is the number of senders that are watched, and how many can be. Any goroutine may call it.
func (s *Senders) Used() (used, size int) { return int(s.watched.Load()), watchedSenders }

// link inserts an entry at the head of its chain.
func (s *Senders) link(n uint16) {
	e := &s.of[n]
	s.watched.Add(1)
	head := s.Head(pacing.SenderOf(s.Flows.Key(e.flow)))
	e.next, e.prev = uint16(head.Load()), 0
	s.of[e.next].prev = n // entry 0 has no chain, so its links are never read
	head.Store(uint32(n))
}

// unlink removes an entry from its chain, in the same time whatever the chain's length: one sender with many flows makes it long.
func (s *Senders) unlink(n uint16) {
	e := &s.of[n]
	s.watched.Add(-1)
	s.of[e.next].prev = e.prev
	if e.prev != 0 {
		s.of[e.prev].next = e.next
	} else {
		s.Head(pacing.SenderOf(s.Flows.Key(e.flow))).Store(uint32(e.next))
	}
}

// Watch returns the entry of a flow's sender, a new one if it has none. If there is no slot, it returns an empty entry that is not kept:
// the sender is notified as if for the first time, and gets no Resume.
func (s *Senders) Watch(x flowtable.Index, a *account.Flow, r *Queue) *Watched {
	e := s.Find(x, a, r)
	if e == nil {
		e = s.begin(x, a, r)
	}
	e.seen = s.Now
	return e
}

// Find returns the entry of a flow's sender, nil if it has none for this queue.
func (s *Senders) Find(x flowtable.Index, a *account.Flow, r *Queue) *Watched {
	e := &s.of[a.Watch()]
	if a.Watch() == 0 || e.flow != x || int(e.class) != r.Class || e.generation != a.Generation.Load() {
		return nil
	}
	return e
}

// begin makes a new entry of a flow's sender.
func (s *Senders) begin(x flowtable.Index, a *account.Flow, r *Queue) *Watched {
	s.Release(a)
	place := s.place(r)
	a.SetWatch(place)
	e := &s.of[place]
	*e = Watched{flow: x, generation: a.Generation.Load(), in: uint8(r.In), out: uint8(r.Out), class: uint8(r.Class)}
	if place != 0 {
		s.link(place)
	}
	return e
}

// place returns a free entry, or of a few entries the least recently seen one that is not due a Resume; 0 if there is none.
func (s *Senders) place(r *Queue) uint16 {
	oldest := 0
	for range sendersLooked {
		s.hand = s.hand%watchedSenders + 1
		e := &s.of[s.hand]
		if e.flow == flowtable.None {
			return uint16(s.hand)
		}
		if !e.Slowed && (oldest == 0 || e.seen < s.of[oldest].seen) {
			oldest = s.hand
		}
	}
	if oldest == 0 {
		s.Counters.Add(r.In, counters.SendersFull, 1)
		return 0
	}
	s.unlink(uint16(oldest))
	if a := s.Accounts.Find(s.of[oldest].flow); a != nil && int(a.Watch()) == oldest {
		a.SetWatch(0)
	}
	return uint16(oldest)
}

// Release frees the entry of a flow's sender, if it has one.
func (s *Senders) Release(a *account.Flow) {
	if a.Watch() == 0 {
		return
	}
	e := &s.of[a.Watch()]
	if e.Slowed {
		s.state(e).Slowed--
	}
	s.unlink(a.Watch())
	*e = Watched{}
	a.SetWatch(0)
}

// LastElsewhere is the last time when another gateway's notification about a flow passed, ns; 0: none did.
func (s *Senders) LastElsewhere(x flowtable.Index, a *account.Flow) int64 {
	if e := &s.of[a.Watch()]; e.flow == x {
		return e.elsewhere
	}
	return 0
}

// ClassOf is the class of a port's queue for which a flow's sender is watched; false if it isn't.
func (s *Senders) ClassOf(x flowtable.Index, a *account.Flow, out int) (class int, watched bool) {
	e := &s.of[a.Watch()]
	return int(e.class), a.Watch() != 0 && e.flow == x && int(e.out) == out
}

func (s *Senders) state(e *Watched) *stage.QueueState {
	return &s.Queues[e.out][e.class]
}

// Notified records a notification to a sender.
func (s *Senders) Notified(e *Watched, n *Note, depth uint64) {
	if e == &s.of[0] {
		return
	}
	was := e.Slowed
	e.Reached = n.Decision.Action != congestion.Resume && (e.Reached || !n.Observed)
	e.Notified(&n.Decision, depth)
	e.format, e.sourceQP = n.Format, n.sourceQP
	if e.Slowed { // no Resume before the queue has been below K_min for RTT_est from now on
		n.state.Calm, n.state.ResumeAt = congestion.Calm{}, 0
		if !was {
			n.state.Slowed++
		}
	} else if was {
		n.state.Slowed--
	}
}

// NotifiedElsewhere records that another gateway's notification to a sender has arrived on a WAN port: for the flow that it names, it
// counts like this gateway's (draft-tian 5.7).
func (s *Senders) NotifiedElsewhere(port int, r *pacing.Request) {
	n := uint16(s.Head(r.Host()).Load())
	for range longestChain {
		if n == 0 {
			return
		}
		e := &s.of[n]
		n = e.next
		k := s.Flows.Key(e.flow)
		a := s.Accounts.Find(e.flow)
		if int(e.out) != port || a == nil || a.Generation.Load() != e.generation {
			continue
		}
		named, known := s.Learner.SourceQP(e.flow)
		if !known {
			named = 0
		}
		if !r.Names(k, named) {
			continue
		}
		state := s.state(e)
		e.Reached = true
		e.NotifiedElsewhere(&s.Policy.Ports[e.out].Response, state.Metrics, state.Cause)
		a.SetNotified(s.Now)
		e.elsewhere = s.Now
	}
}
