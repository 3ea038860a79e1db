package dataplane

import (
	"github.com/cnpgate/cnpgate/flowtable"
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
