package dataplane

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/pacing"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// watched is a sender whose flow was among the largest of a congested queue: its congestion.Sender, and the data to notify it without a
// packet of its flow.
type watched struct {
	congestion.Sender
	throughput congestion.Throughput
	flow       flowtable.Index // flowtable.None: the entry is free
	generation uint32          // of the flow
	seen       int64           // last time when it was among the largest, ns
	in, out    uint8           // ingress and egress port of its flow
	class      uint8           // of the queue
	reached    bool            // a notification was sent to it, from here or elsewhere, not only observed, and no Resume since
	format     packet.Notification
	sourceQP   uint32
	elsewhere  int64         // last time when another gateway's notification to it passed, ns
	next, prev uint16        // neighbors in the chain of entries with the hash of its sender's address, 0 for none
	target     cnpgen.Target // as of the last packet for which it was notified, or a notification could not be built
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

// senders are the senders that a worker watches. An account's watch is its sender's slot here.
type senders struct {
	*common
	notifier *notifier
	of       []watched // 0 is for senders that find no slot, and is not kept
	hand     int       // where the next search for a slot begins
	resumed  int       // the last entry that resume has checked
	seed     uint64
	heads    []atomic.Uint32 // by hash of the sender in its scope, the first entry; other workers read whether there is one
}

const watchedBytes = (watchedSenders + 1) * int(unsafe.Sizeof(watched{}))

// newSenders makes the senders that a worker watches. allocate returns zeroed memory, 8-byte aligned; the seed keys the hash of addresses.
func newSenders(n *notifier, seed uint64, allocate func(bytes int) ([]byte, error)) (*senders, error) {
	memory, err := allocate(watchedBytes + senderHashes*int(unsafe.Sizeof(atomic.Uint32{})))
	if err != nil {
		return nil, err
	}
	return &senders{
		common: n.common, notifier: n, seed: seed,
		of:    unsafe.Slice((*watched)(unsafe.Pointer(unsafe.SliceData(memory))), watchedSenders+1),
		heads: unsafe.Slice((*atomic.Uint32)(unsafe.Pointer(&memory[watchedBytes])), senderHashes),
	}, nil
}

// head returns the start of the chain of entries with a sender's hash.
func (s *senders) head(h packet.Host) *atomic.Uint32 {
	address := keyhash.Fold(h.Hi^s.seed, h.Lo^bits.RotateLeft64(s.seed, 32))
	return &s.heads[keyhash.Fold(address^bits.RotateLeft64(s.seed, 16), uint64(h.Scope)^bits.RotateLeft64(s.seed, 48))%senderHashes]
}

// link inserts an entry at the head of its chain.
func (s *senders) link(n uint16) {
	e := &s.of[n]
	head := s.head(pacing.SenderOf(s.flows.Key(e.flow)))
	e.next, e.prev = uint16(head.Load()), 0
	s.of[e.next].prev = n // entry 0 has no chain, so its links are never read
	head.Store(uint32(n))
}

// unlink removes an entry from its chain, in the same time whatever the chain's length: one sender with many flows makes it long.
func (s *senders) unlink(n uint16) {
	e := &s.of[n]
	s.of[e.next].prev = e.prev
	if e.prev != 0 {
		s.of[e.prev].next = e.next
	} else {
		s.head(pacing.SenderOf(s.flows.Key(e.flow))).Store(uint32(e.next))
	}
}

// watch returns the entry of a flow's sender, a new one if it has none. If there is no slot, it returns an empty entry that is not kept:
// the sender is notified as if for the first time, and gets no Resume.
func (s *senders) watch(x flowtable.Index, a *account.Flow, r *congested) *watched {
	e := s.find(x, a, r)
	if e == nil {
		e = s.begin(x, a, r)
	}
	e.seen = s.now
	return e
}

// find returns the entry of a flow's sender, nil if it has none for this queue.
func (s *senders) find(x flowtable.Index, a *account.Flow, r *congested) *watched {
	e := &s.of[a.Watch()]
	if a.Watch() == 0 || e.flow != x || int(e.out) != r.out || int(e.class) != r.class || e.generation != a.Generation.Load() {
		return nil
	}
	return e
}

// begin makes a new entry of a flow's sender.
func (s *senders) begin(x flowtable.Index, a *account.Flow, r *congested) *watched {
	s.release(a)
	place := s.place(r)
	a.SetWatch(place)
	e := &s.of[place]
	*e = watched{flow: x, generation: a.Generation.Load(), in: uint8(r.in), out: uint8(r.out), class: uint8(r.class)}
	if place != 0 {
		s.link(place)
	}
	return e
}

// place returns a free entry, or of a few entries the least recently seen one that is not due a Resume; 0 if there is none.
func (s *senders) place(r *congested) uint16 {
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
		s.counters.add(r.in, SendersFull, 1)
		return 0
	}
	s.unlink(uint16(oldest))
	if a := s.accounts.Find(s.of[oldest].flow); a != nil && int(a.Watch()) == oldest {
		a.SetWatch(0)
	}
	return uint16(oldest)
}

// release frees the entry of a flow's sender, if it has one.
func (s *senders) release(a *account.Flow) {
	if a.Watch() == 0 {
		return
	}
	e := &s.of[a.Watch()]
	if e.Slowed {
		s.state(e).slowed--
	}
	s.unlink(a.Watch())
	*e = watched{}
	a.SetWatch(0)
}

// lastElsewhere is the last time when another gateway's notification about a flow passed, ns; 0: none did.
func (s *senders) lastElsewhere(x flowtable.Index, a *account.Flow) int64 {
	if e := &s.of[a.Watch()]; e.flow == x {
		return e.elsewhere
	}
	return 0
}

// classOf is the class of a port's queue for which a flow's sender is watched; false if it isn't.
func (s *senders) classOf(x flowtable.Index, a *account.Flow, out int) (class int, watched bool) {
	e := &s.of[a.Watch()]
	return int(e.class), a.Watch() != 0 && e.flow == x && int(e.out) == out
}

func (s *senders) state(e *watched) *queueState {
	return &s.queues[e.out][e.class]
}

// notified records a notification to a sender.
func (s *senders) notified(e *watched, n *note, depth uint64) {
	if e == &s.of[0] {
		return
	}
	was := e.Slowed
	e.reached = n.decision.Action != congestion.Resume && (e.reached || !n.observed)
	e.Notified(&n.decision, depth)
	e.format, e.sourceQP = n.format, n.sourceQP
	if e.Slowed { // no Resume before the queue has been below K_min for RTT_est from now on
		n.state.calm, n.state.resumeAt = congestion.Calm{}, 0
		if !was {
			n.state.slowed++
		}
	} else if was {
		n.state.slowed--
	}
}

// notifiedElsewhere records that another gateway's notification to a sender has arrived on a WAN port: for the flow that it names, it
// counts like this gateway's (draft-tian 5.7).
func (s *senders) notifiedElsewhere(port int, r *pacing.Request) {
	n := uint16(s.head(r.Host()).Load())
	for range longestChain {
		if n == 0 {
			return
		}
		e := &s.of[n]
		n = e.next
		k := s.flows.Key(e.flow)
		a := s.accounts.Find(e.flow)
		if int(e.out) != port || a == nil || a.Generation.Load() != e.generation {
			continue
		}
		named, known := s.learner.SourceQP(e.flow)
		if !known {
			named = 0
		}
		if !r.Names(k, named) {
			continue
		}
		state := s.state(e)
		e.reached = true
		e.NotifiedElsewhere(&s.policy.Ports[e.out].Response, state.metrics, state.cause)
		a.SetNotified(s.now)
		e.elsewhere = s.now
	}
}

// resume sends a Resume to each sender that was asked to slow down because of a port's queue, once that has been below K_min for RTT_est
// (draft-tian 5.5.1).
func (s *senders) resume(port int) {
	for class := range s.queues[port] {
		state, q := &s.queues[port][class], &s.egress[port].Classes[class]
		if state.slowed == 0 {
			continue
		}
		policy := &s.policy.Ports[port]
		depth := q.Waiting()
		if !state.calm.Update(&policy.Response, s.now, depth) && !s.policy.Drain || s.now < state.resumeAt {
			continue
		}
		m := state.meter.Update(policy.Interval, s.now, depth, q.Entered, q.Marked+q.Observed)
		state.metrics, state.threshold = m, policy.KMin
		s.resumeSenders(port, class, m, policy)
	}
}

// resumeAgain is the time after which a Resume that could not be sent is tried again, ns.
const resumeAgain = 1e6

// nextResume is the time when the next Resume of a port's queue may be due, false if none is.
func (s *senders) nextResume(port int) (at int64, ok bool) {
	for class := range s.queues[port] {
		state := &s.queues[port][class]
		since, calm := state.calm.Since()
		if state.slowed == 0 || !calm {
			continue
		}
		if due := max(since+max(s.policy.Ports[port].RTT, 0), state.resumeAt); !ok || due < at {
			at, ok = due, true
		}
	}
	return at, ok
}

// resumeSenders checks a few entries a step for senders that are due a Resume, so that no step takes long.
func (s *senders) resumeSenders(port, class int, m congestion.Metrics, policy *PortPolicy) {
	const entriesAStep = 64
	d, n := policy.Ease(m), s.notifier
	n.request.Port, n.request.RTT = uint16(port), policy.RTT
	for range entriesAStep {
		s.resumed = s.resumed%watchedSenders + 1
		e := &s.of[s.resumed]
		if !e.Slowed || int(e.out) != port || int(e.class) != class {
			continue
		}
		bytes, state := s.learner.Bytes(e.flow), s.state(e)
		n.note = note{in: e.in, out: e.out, class: e.class, state: state, queue: &s.egress[e.in].Notifications,
			format: e.format, to: e.target.Src, flow: e.flow,
			account: s.accounts.Known(e.flow), decision: d, sourceQP: e.sourceQP,
			flowBytes: bytes, flowRate: e.throughput.Rate(s.now, bytes)}
		n.request.Target = &e.target
		if policy.Resumes && e.format.Expresses(congestion.Resume) && !n.resume(policy) {
			state.resumeAt = s.now + resumeAgain
			continue
		}
		s.notified(e, &n.note, 0)
	}
}

// resume sends the sender of the note its Resume, which counts as a notification of its flow (draft-tian 5.5). It returns false if the
// Resume has to wait. One that may not be sent, or can't be built, never can, and counts as done.
func (n *notifier) resume(policy *PortPolicy) bool {
	m := &n.note
	if reason := n.mayResume(m); reason != allowed {
		n.suppress(int(m.in), reason)
		return true
	}
	if !n.due(policy, m.flow, m.account) {
		return false
	}
	reason := n.admit(m)
	if reason == allowed {
		reason = n.emit(m)
	}
	if reason != allowed {
		n.suppress(int(m.in), reason)
		return reason == NotBuilt
	}
	m.account.SetNotified(n.now) // an entry ends with its flow
	return true
}

// mayResume reports whether a Resume may be sent, by the present policy: draft-tian 10.5 forbids a Long-haul CNP to a host that isn't
// configured for it, and a sender that is behind a proxy by now has no Resume. No notification names the QPs of a connection that RDMA-CM
// has released.
func (n *notifier) mayResume(m *note) Suppression {
	if to, behind := n.policy.Proxies.Lookup(m.to); behind && !n.policy.owns(to) {
		return Suppression(congestion.NotExpressible)
	}
	if pairing.Answer(n.flows.State(m.flow).Answer()).Ended() != pairing.Open {
		return Suppression(congestion.SourceQPUnknown)
	}
	return Suppression(n.policy.Who.Permits(m.format, m.to, congestion.Resume))
}
