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
	"github.com/cnpgate/cnpgate/pairing"
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
	of       []Watched // 0 is for senders that find no slot, and is not kept
	hand     int       // where the next search for a slot begins
	resumed  int       // the last entry that resume has checked
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
		of:    unsafe.Slice((*Watched)(unsafe.Pointer(unsafe.SliceData(memory))), watchedSenders+1),
		heads: unsafe.Slice((*atomic.Uint32)(unsafe.Pointer(&memory[watchedBytes])), senderHashes),
	}, nil
}

// Head returns the start of the chain of entries with a sender's hash.
func (s *Senders) Head(h packet.Host) *atomic.Uint32 {
	address := keyhash.Fold(h.Hi^s.seed, h.Lo^bits.RotateLeft64(s.seed, 32))
	return &s.heads[keyhash.Fold(address^bits.RotateLeft64(s.seed, 16), uint64(h.Scope)^bits.RotateLeft64(s.seed, 48))%senderHashes]
}

// link inserts an entry at the head of its chain.
func (s *Senders) link(n uint16) {
	e := &s.of[n]
	head := s.Head(pacing.SenderOf(s.Flows.Key(e.flow)))
	e.next, e.prev = uint16(head.Load()), 0
	s.of[e.next].prev = n // entry 0 has no chain, so its links are never read
	head.Store(uint32(n))
}

// unlink removes an entry from its chain, in the same time whatever the chain's length: one sender with many flows makes it long.
func (s *Senders) unlink(n uint16) {
	e := &s.of[n]
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
	if a.Watch() == 0 || e.flow != x || int(e.out) != r.Out || int(e.class) != r.Class || e.generation != a.Generation.Load() {
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

// Resume sends a Resume to each sender that was asked to slow down because of a port's queue, once that has been below K_min for RTT_est
// (draft-tian 5.5.1).
func (s *Senders) Resume(port int) {
	for class := range s.Queues[port] {
		state, q := &s.Queues[port][class], &s.Egress[port].Classes[class]
		if state.Slowed == 0 {
			continue
		}
		policy := &s.Policy.Ports[port]
		depth := q.Waiting()
		if !state.Calm.Update(&policy.Response, s.Now, depth) && !s.Policy.Drain || s.Now < state.ResumeAt {
			continue
		}
		m := state.Meter.Update(policy.Interval, s.Now, depth, q.Entered, q.Marked+q.Observed)
		state.Metrics, state.Threshold = m, policy.KMin
		s.resumeSenders(port, class, m, policy)
	}
}

// resumeAgain is the time after which a Resume that could not be sent is tried again, ns.
const resumeAgain = 1e6

// NextResume is the time when the next Resume of a port's queue may be due, false if none is.
func (s *Senders) NextResume(port int) (at int64, ok bool) {
	for class := range s.Queues[port] {
		state := &s.Queues[port][class]
		since, calm := state.Calm.Since()
		if state.Slowed == 0 || !calm {
			continue
		}
		if due := max(since+max(s.Policy.Ports[port].RTT, 0), state.ResumeAt); !ok || due < at {
			at, ok = due, true
		}
	}
	return at, ok
}

// resumeSenders checks a few entries a step for senders that are due a Resume, so that no step takes long.
func (s *Senders) resumeSenders(port, class int, m congestion.Metrics, policy *stage.PortPolicy) {
	const entriesAStep = 64
	d, n := policy.Ease(m), s.notifier
	n.request.Port, n.request.RTT = uint16(port), policy.RTT
	for range entriesAStep {
		s.resumed = s.resumed%watchedSenders + 1
		e := &s.of[s.resumed]
		if !e.Slowed || int(e.out) != port || int(e.class) != class {
			continue
		}
		bytes, state := s.Learner.Bytes(e.flow), s.state(e)
		n.Note = Note{In: e.in, Out: e.out, Class: e.class, state: state, Queue: &s.Egress[e.in].Notifications,
			Format: e.format, To: e.Target.Src, Flow: e.flow,
			account: s.Accounts.Known(e.flow), Decision: d, sourceQP: e.sourceQP,
			FlowBytes: bytes, FlowRate: e.Throughput.Rate(s.Now, bytes)}
		n.request.Target = &e.Target
		if policy.Resumes && e.format.Expresses(congestion.Resume) && !n.resume(policy) {
			state.ResumeAt = s.Now + resumeAgain
			continue
		}
		s.Notified(e, &n.Note, 0)
	}
}

// resume sends the sender of the note its Resume, which counts as a notification of its flow (draft-tian 5.5). It returns false if the
// Resume has to wait. One that may not be sent, or can't be built, never can, and counts as done.
func (n *Notifier) resume(policy *stage.PortPolicy) bool {
	m := &n.Note
	if reason := n.mayResume(m); reason != counters.Allowed {
		n.Suppress(int(m.In), reason)
		return true
	}
	if !n.Due(policy, m.Flow, m.account) {
		return false
	}
	reason := n.admit(m)
	if reason == counters.Allowed {
		reason = n.emit(m)
	}
	if reason != counters.Allowed {
		n.Suppress(int(m.In), reason)
		return reason == counters.NotBuilt
	}
	m.account.SetNotified(n.Now) // an entry ends with its flow
	return true
}

// mayResume reports whether a Resume may be sent, by the present policy: draft-tian 10.5 forbids a Long-haul CNP to a host that isn't
// configured for it, and a sender that is behind a proxy by now has no Resume. No notification names the QPs of a connection that RDMA-CM
// has released.
func (n *Notifier) mayResume(m *Note) counters.Suppression {
	if to, behind := n.Policy.Proxies.Lookup(m.To); behind && !n.Policy.Owns(to) {
		return counters.Suppression(congestion.NotExpressible)
	}
	if pairing.Answer(n.Flows.State(m.Flow).Answer()).Ended() != pairing.Open {
		return counters.Suppression(congestion.SourceQPUnknown)
	}
	return counters.Suppression(n.Policy.Who.Permits(m.Format, m.To, congestion.Resume))
}
