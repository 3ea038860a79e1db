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
		if other, _ := c.find(k); other == nil {
			return unknownScope
		}
		return located
	}
	var found [mostTwins]flowtable.Twin
	result := unknownScope
	scope := k.Scope()
	for _, other := range c.plane.workers {
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

// find finds a flow at any worker, this one first; nil if none has it.
func (c *common) find(k *flowtable.Key) (*Worker, flowtable.Ref) {
	all := c.plane.workers
	for i := range all {
		other := all[(c.id+i)%len(all)]
		if x, state, found := other.flows.Find(k); found {
			return other, flowtable.Ref{Index: x, Generation: state.Generation()}
		}
	}
	return nil, flowtable.Ref{}
}

// sourceQP is the confirmed source QP of a flow that any worker has.
func (d *Dataplane) sourceQP(k *flowtable.Key) (qp uint32, ok bool) {
	for _, w := range d.workers {
		if _, state, found := w.flows.Find(k); found {
			if a := pairing.Answer(state.Answer()); a.Usable() {
				return a.SourceQP(), true
			}
		}
	}
	return 0, false
}
