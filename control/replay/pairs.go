package replay

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// This file keeps what the first pass over a capture learns: which flows are a connection.

// connectionKey is one direction of a connection.
type connectionKey struct {
	src, dst packet.Addr
	qp       uint32
	scope    packet.Scope
}

func keyOf(k *flowtable.Key) connectionKey {
	return connectionKey{k.Src, k.Dst, k.DestQP, k.Scope().Named()}
}

// Begin and End observe the flow table: a flow that ends has an answer, too.
func (h *judge) Begin(x flowtable.Index) {
	h.begun++
	if h.directions != nil {
		k := h.flows.Key(x)
		h.directions.note(k.Src, k.Dst, k.DestQP)
	}
	h.learner.Begin(x)
}

// End see Begin.
func (h *judge) End(x flowtable.Index, _ flowtable.Ending) {
	h.note(x)
	h.learner.End(x)
}

// note keeps a flow's answer.
func (h *judge) note(x flowtable.Index) {
	k, a := h.flows.Key(x), h.learner.Answer(x, h.flows.State(x).Answer())
	if h.static != nil || k.SourceQP != 0 || a.Ended() == pairing.EndedReuse {
		return
	}
	if a.State() != pairing.Confirmed {
		if k.DestQP > packet.GSIQP {
			h.unpaired[keyOf(k)] = nil
		}
		return
	}
	h.paired[keyOf(k)] = nameOf(a.Evidence())
	if a.Ended() == pairing.EndedDREQ {
		h.released[keyOf(k)] = true
	}
	h.known = append(h.known, pairing.QPPair{
		Source: k.Src, Destination: k.Dst, SourceQP: a.SourceQP(), DestinationQP: k.DestQP, InScope: true, Scope: k.Scope().Named(),
	})
}

// pairs are those that the first pass has learned. One that contradicts an earlier one, as a QP served two connections, is left out.
func (h *judge) pairs() *agreed {
	for x := flowtable.Index(1); x <= h.flows.High(); x++ {
		if h.flows.State(x).Live() {
			h.note(x)
		}
	}
	all := &agreed{source: map[connectionKey]uint32{}}
	h.across(all)
	for _, p := range h.known {
		all.add(p)
	}
	return all
}

// across joins the directions of connections that were learned in two VLANs or tunnels, if each was seen in one only.
func (h *judge) across(all *agreed) {
	scopes := map[pairing.QPPair]map[packet.Scope]bool{}
	of := func(p pairing.QPPair) map[packet.Scope]bool {
		p.Scope = 0
		if scopes[p] == nil {
			scopes[p] = map[packet.Scope]bool{}
		}
		return scopes[p]
	}
	for _, p := range h.known {
		of(p)[p.Scope] = true
	}
	for _, p := range h.known {
		back := pairing.QPPair{Source: p.Destination, Destination: p.Source, SourceQP: p.DestinationQP, DestinationQP: p.SourceQP, InScope: true}
		if len(of(p)) > 1 || len(of(back)) != 1 {
			continue
		}
		for scope := range of(back) {
			if to := (connectionKey{p.Source, p.Destination, p.DestinationQP, p.Scope}); p.Scope < scope {
				h.joins(all, &joined{to, connectionKey{p.Destination, p.Source, p.SourceQP, scope}, h.paired[to]})
			}
		}
	}
}

// alone reports whether there are two directions without a pair that may be one.
func (h *judge) alone() bool {
	for k := range h.paired {
		delete(h.unpaired, k)
	}
	to := map[packet.Addr]bool{}
	for k := range h.unpaired {
		to[k.dst] = true
	}
	for k := range h.unpaired {
		if to[k.src] { // it may answer from another address
			return true
		}
	}
	return false
}

// notified is to where a CNP goes. It may come in another VLAN or tunnel than the packets that it is about.
type notified struct {
	dst   packet.Addr
	qp    uint32
	scope packet.Scope
}

// findNotified finds the VLANs and tunnels in which the QPs are that CNPs go to: those of the CNPs, or else the only ones.
func (h *judge) findNotified() {
	tenants := map[notified]map[packet.Scope]packet.Scope{}
	for n := range h.notified {
		tenants[notified{n.dst, n.qp, 0}] = map[packet.Scope]packet.Scope{}
	}
	see := func(k connectionKey) {
		if of := tenants[notified{k.dst, k.qp, 0}]; of != nil {
			if as, ok := h.moved[k]; ok {
				k.scope = as.scope
			}
			of[k.scope.Tenant()] = k.scope
		}
	}
	for k := range h.paired {
		see(k)
	}
	for k := range h.unpaired {
		see(k)
	}
	for n := range h.notified {
		of := tenants[notified{n.dst, n.qp, 0}]
		if _, same := of[n.scope.Tenant()]; same || len(of) != 1 {
			delete(h.notified, n)
			continue
		}
		for _, scope := range of {
			h.notified[n] = scope
		}
	}
	h.unpaired = nil
}
