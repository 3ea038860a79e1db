// Package stage has what the stages of a worker share: its tables and queues, the time and the policy of a step, and the batch that goes
// through the stages.
package stage

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/dataplane/frames"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/dataplane/pacing"
	"github.com/cnpgate/cnpgate/dataplane/trace"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// State is what the stages of a worker share: its tables, and the policy, the time and the packets of a burst.
type State struct {
	ID       int
	Ports    []PortConfig
	Peers    []*State // of all workers, this one too
	Host     *host.Stage
	Clock    *atomic.Int64 // offset in ns from now to Unix time
	IO       *burst.Batch
	Flows    *flowtable.Table
	Learner  *pairing.Learner
	Accounts account.Accounts
	Egress   []egress.Port   // by port
	Pacers   []*pacing.Pacer // by port; nil: none
	Queues   [][]QueueState  // by port and class
	Counters counters.Ports

	Policy *Policy       // in this step
	Now    int64         // of this step, ns
	Trace  *trace.Tracer // in this step, nil: nothing is traced
	Batch  frames.Batch  // the frames that go through the stages
	Moved  int           // frames moved in this step
}

// QueueState is what a worker knows of the congestion of a class of a port's queue.
type QueueState struct {
	Meter     congestion.Meter
	Calm      congestion.Calm
	Metrics   congestion.Metrics // as of the last batch that entered, and what asked for notifications then
	Cause     congestion.Cause
	Threshold uint64 // of the first of the causes
	Slowed    int    // senders that were asked to slow down because of it, and have had no Resume yet
	ResumeAt  int64  // no Resume is sent before, since one could not be, ns
}

// UnixTime is now as Unix time, ns.
func (s *State) UnixTime() int64 { return s.Now + s.Clock.Load() }

// Suppress counts that a sender was not notified.
func (s *State) Suppress(in int, why counters.Suppression) {
	s.Counters.Add(in, counters.SuppressedFirst+counters.Counter(why-1), 1)
	if s.Trace != nil {
		s.Trace.Suppressed(s.Batch.InHand, why)
	}
}

// CanQueue returns why a worker can't queue a notification, or allowed.
func (s *State) CanQueue(q *egress.Ring) counters.Suppression {
	if q.Full() {
		return counters.NotificationQueueFull
	}
	if len(s.IO.Spare) == 0 {
		return counters.NoBuffer
	}
	return counters.Allowed
}

// Push queues, ahead of data, the frame in the last spare buffer. The tag is its type: a packet.Notification, or from tagHost on a
// host.Verdict.
func (s *State) Push(q *egress.Ring, size int, tag flowtable.Index) {
	last := len(s.IO.Spare) - 1
	spare := &s.IO.Spare[last]
	f := burst.Frame{Buf: spare.Buf, Data: spare.Data, Len: uint32(size), Head: uint32(size)}
	q.Push(f, flowtable.Ref{Index: tag, Generation: stamp(s.Now)})
	s.IO.Spare = s.IO.Spare[:last]
}

// Drop ends a frame: its buffer goes back, and the counter says why.
func (s *State) Drop(port int, reason counters.Counter, f burst.Frame) {
	s.Counters.Add(port, reason, 1)
	s.IO.Free = append(s.IO.Free, f.Buf)
	if s.Trace != nil {
		if reason.AtEgress() {
			port = s.Ports[port].Peer
		}
		s.Trace.Dropped(port, f, s.IO.Bytes(f), reason)
	}
}

// Reaction times are kept in the tag of a waiting notification, whose generation has no other use: in units of 16 ns, modulo 2^32, which is 69 s.
const stampUnit = 4 // bits

func stamp(now int64) uint32 { return uint32(now >> stampUnit) }

// SinceStamp is how long ago a stamp was made, ns.
func SinceStamp(now int64, made uint32) uint64 { return uint64(stamp(now)-made) << stampUnit }

// Tenants may have the same addresses and QPs in different scopes (packet.Scope). What one of them does must not change anything for another.
// So the scope is in the key of each table that a packet can reach, and a notification is about flows of its own scope. One that has come by
// way of a network between the scopes, without tags, is about a flow only if no other scope has one of that name.

// mostTwins is the number of flows of a worker that Locate compares.
const mostTwins = 8

// Locate sets the scope of the flow that a notification names, and reports whether flows of several scopes have that name; then it leaves the
// scope. k has the flow's ingress port, and the tags of the notification. Without tags it is ambiguous until all workers have listed the
// flows that they had before the policy let such notifications in.
func (s *State) Locate(k *flowtable.Key) (ambiguous bool) {
	scope := k.Scope()
	if scope.Tagged() {
		return false
	}
	var twins [mostTwins]flowtable.Twin
	found := false
	for _, other := range s.Peers {
		n := other.Flows.Twins(k, twins[:])
		if n == len(twins) {
			return true
		}
		for i := range twins[:n] {
			of := twins[i].Scope
			if of.Port() != k.Port || found && of == scope {
				continue
			}
			if found {
				return true
			}
			found, scope = true, of
		}
	}
	k.SetScope(scope)
	return false
}

// Find finds a flow, and the number of a worker that has it, this one first; -1 if none has.
func (s *State) Find(k *flowtable.Key) (worker int, flow flowtable.Ref) {
	for i := range s.Peers {
		other := s.Peers[(s.ID+i)%len(s.Peers)]
		if x, state, found := other.Flows.Find(k); found {
			return other.ID, flowtable.Ref{Index: x, Generation: state.Generation()}
		}
	}
	return -1, flowtable.Ref{}
}

// sourceQP is the confirmed source QP of a flow that any worker has.
func (s *State) sourceQP(k *flowtable.Key) (qp uint32, ok bool) {
	for _, p := range s.Peers {
		if _, state, found := p.Flows.Find(k); found {
			if a := pairing.Answer(state.Answer()); a.Usable() {
				return a.SourceQP(), true
			}
		}
	}
	return 0, false
}

// Confirmed reports whether a CNP belongs to a confirmed pair of flows: pairing knows the QP at the CNP's source that is connected to the QP that
// the CNP names, and data comes from the latter by the port's peer. Nobody behind this port can forge that.
func (s *State) Confirmed(port int, p *packet.Parsed) bool {
	k := flowtable.Key{Src: p.Src, Dst: p.Dst, DestQP: p.DestQP}
	k.SetScope(packet.ScopeOf(uint16(port), p))
	qp, ok := s.sourceQP(&k)
	if !ok {
		return false
	}
	k.Src, k.Dst, k.DestQP, k.Port = p.Dst, p.Src, qp, uint16(s.Ports[port].Peer)
	back, ok := s.sourceQP(&k)
	return ok && back == p.DestQP
}

// NotifiedWithin reports whether a flow exists whose sender was notified within this many ns before now. It searches all workers, since what
// asks may arrive at another one than the flow's packets.
func (s *State) NotifiedWithin(k *flowtable.Key, ns int64) bool {
	for _, p := range s.Peers {
		if x, state, found := p.Flows.Find(k); found && p.Accounts.NotifiedWithin(x, state.Generation(), s.Now, ns) {
			return true
		}
	}
	return false
}

// Enforces reports whether the flows of a sender are paced at a WAN port as notifications ask.
func (s *State) Enforces(port int, sender packet.Addr) bool {
	if !s.Pacers[port].Active() {
		return false
	}
	_, ours := s.Policy.Ports[port].Enforce.Lookup(sender)
	return ours
}
