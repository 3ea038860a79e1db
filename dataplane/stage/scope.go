package stage

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// Tenants may have the same addresses and QPs in different scopes (packet.Scope). What one of them does must not change anything for another.
// So the scope is in the key of each table that a packet can reach, and a notification is about flows of its own scope. One that has come by
// way of a network between the scopes, without tags, is about a flow only if no other scope has one of that name.

// location is the result of locate.
type location uint8

const (
	located location = iota
	unknownScope
	AmbiguousScope
)

// mostTwins is the number of flows of a worker that locate compares.
const mostTwins = 8

// Locate sets the scope of the flow that a notification names. k has the flow's ingress port, and the tags of the notification. Without tags
// it is ambiguous until all workers have listed the flows that they had before the policy let such notifications in.
func (s *State) Locate(k *flowtable.Key) location {
	if k.Scope().Tagged() {
		if worker, _ := s.Find(k); worker < 0 {
			return unknownScope
		}
		return located
	}
	var found [mostTwins]flowtable.Twin
	result := unknownScope
	scope := k.Scope()
	for _, other := range s.Peers {
		n := other.Flows.Twins(k, found[:])
		if n == len(found) {
			return AmbiguousScope
		}
		for i := range found[:n] {
			switch of := found[i].Scope; {
			case of.Port() != k.Port || result == located && of == scope:
			case result == located:
				return AmbiguousScope
			default:
				result, scope = located, of
			}
		}
	}
	k.SetScope(scope)
	return result
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
