package dataplane

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
	ambiguousScope
)

// mostTwins is the number of flows of a worker that locate compares.
const mostTwins = 8

// locate sets the scope of the flow that a notification names. k has the flow's ingress port, and the tags of the notification. Without tags
// it is ambiguous until all workers have listed the flows that they had before the policy let such notifications in.
func (c *common) locate(k *flowtable.Key) location {
	if k.Scope().Tagged() {
		if worker, _ := c.find(k); worker < 0 {
			return unknownScope
		}
		return located
	}
	var found [mostTwins]flowtable.Twin
	result := unknownScope
	scope := k.Scope()
	for _, other := range c.peers {
		n := other.flows.Twins(k, found[:])
		if n == len(found) {
			return ambiguousScope
		}
		for i := range found[:n] {
			switch s := found[i].Scope; {
			case s.Port() != k.Port || result == located && s == scope:
			case result == located:
				return ambiguousScope
			default:
				result, scope = located, s
			}
		}
	}
	k.SetScope(scope)
	return result
}

// find finds a flow, and the number of a worker that has it, this one first; -1 if none has.
func (c *common) find(k *flowtable.Key) (worker int, flow flowtable.Ref) {
	for i := range c.peers {
		other := c.peers[(c.id+i)%len(c.peers)]
		if x, state, found := other.flows.Find(k); found {
			return other.id, flowtable.Ref{Index: x, Generation: state.Generation()}
		}
	}
	return -1, flowtable.Ref{}
}

// sourceQP is the confirmed source QP of a flow that any worker has.
func (c *common) sourceQP(k *flowtable.Key) (qp uint32, ok bool) {
	for _, p := range c.peers {
		if _, state, found := p.flows.Find(k); found {
			if a := pairing.Answer(state.Answer()); a.Usable() {
				return a.SourceQP(), true
			}
		}
	}
	return 0, false
}

// confirmed reports whether a CNP belongs to a confirmed pair of flows: pairing knows the QP at the CNP's source that is connected to the QP that
// the CNP names, and data comes from the latter by the port's peer. Nobody behind this port can forge that.
func (c *common) confirmed(port int, p *packet.Parsed) bool {
	k := flowtable.Key{Src: p.Src, Dst: p.Dst, DestQP: p.DestQP}
	k.SetScope(packet.ScopeOf(uint16(port), p))
	qp, ok := c.sourceQP(&k)
	if !ok {
		return false
	}
	k.Src, k.Dst, k.DestQP, k.Port = p.Dst, p.Src, qp, uint16(c.ports[port].Peer)
	back, ok := c.sourceQP(&k)
	return ok && back == p.DestQP
}

// notifiedWithin reports whether a flow exists whose sender was notified within this many ns before now. It searches all workers, since what
// asks may arrive at another one than the flow's packets.
func (c *common) notifiedWithin(k *flowtable.Key, ns int64) bool {
	for _, p := range c.peers {
		if x, state, found := p.flows.Find(k); found && p.accounts.NotifiedWithin(x, state.Generation(), c.now, ns) {
			return true
		}
	}
	return false
}

// enforces reports whether the flows of a sender are paced at a WAN port as notifications ask.
func (c *common) enforces(port int, sender packet.Addr) bool {
	if !c.pacers[port].Active() {
		return false
	}
	_, ours := c.policy.Ports[port].Enforce.Lookup(sender)
	return ours
}
