package pairing

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/store"
)

const recheckBatch = 64 // flows that one Sweep compares with a new map, at most

// maps is a worker's view of the operator's map and the host agents' hints.
type maps struct {
	all    *Pairing
	flows  *flows
	counts *counts
	static *QPMap // the operator's, as of this burst
	swept  struct {
		static, hints *QPMap
		listed        bool // the flows' twins were found
		registered    uint64
		before        uint64 // registered before it became that
	} // what Sweep compares the flows with
	lap struct { // of Sweep through all flows
		serial uint64 // of the hints when it began
		passed uint32 // flows
	}
	recheckAt   uint32 // the flow that Sweep has rechecked last
	recheckLeft uint32 // flows that Sweep has yet to compare with these maps

	registered atomic.Uint64 // serial number of the hints since which Sweep has passed all flows; for the other workers
}

// initial returns a flow's answer when it begins, and whether it has a pair without a scope. UD packets carry their source QP, which is
// part of the flow's key, so no map can contradict it. twinned: the flow has a twin, so that a pair without a scope says nothing about it.
func (m *maps) initial(k *flowtable.Key, twinned bool) (a Answer, scopeless bool) {
	if k.SourceQP != 0 {
		return makeAnswer(k.SourceQP, Confirmed, EvidenceDETH), false
	}
	for _, by := range [...]struct {
		of  *QPMap
		why Evidence
	}{{m.static, EvidenceStatic}, {m.all.hints.Load(), EvidenceHint}} {
		if by.of == nil {
			continue
		}
		anywhere, has := by.of.Lookup(k.Src, k.Dst, k.DestQP)
		scopeless = scopeless || has
		qp, ok := by.of.LookupIn(k.Scope(), k.Src, k.Dst, k.DestQP)
		if !ok {
			qp, ok = anywhere, has && !twinned
		}
		if ok && a == 0 {
			a = makeAnswer(qp, Confirmed, by.why)
		}
	}
	if a == 0 {
		a = m.all.byUndirected(k)
	}
	return a, scopeless
}

// scopeless reports whether the present maps have pairs without a scope, hasScopeless whether they have one for a flow.
func (m *maps) scopeless() bool {
	hints := m.all.hints.Load()
	return m.static != nil && m.static.scopeless || hints != nil && hints.scopeless
}

func (m *maps) hasScopeless(k *flowtable.Key) bool {
	_, has := m.initial(k, true)
	return has
}

// maxTwins bounds the flows that are compared: where so many have the same addresses and QPs, no pair without a scope applies to any.
const maxTwins = 16

// twins finds all workers' flows with the addresses and QPs of k, except one. several: they are in several scopes, or may be.
func (p *Pairing) twins(k *flowtable.Key, except store.Ref) (of [maxTwins]store.Ref, n int, several bool) {
	var found [maxTwins]flowtable.Twin
	var scope packet.Scope
	for _, l := range p.learners {
		all := found[n:]
		m := l.table.Twins(k, all)
		for _, f := range all[:m] {
			r := l.refTo(f.Ref)
			if r == except {
				continue
			}
			if n == 0 {
				scope = p.scopeOf(f.Scope)
			}
			several = several || p.scopeOf(f.Scope) != scope
			of[n], n = r, n+1
		}
		if m == len(all) {
			return of, n, true
		}
	}
	return of, n, several
}

// scopeOf is a flow's scope at the lower one of the gateway ports of its pair: which of the two a packet comes in by is its sender's choice.
func (p *Pairing) scopeOf(s packet.Scope) packet.Scope {
	if port := int(s.Port()); port < len(p.egress) {
		return s.At(min(port, int(p.egress[port])))
	}
	return s
}

// twinsListed reports whether twins finds the flows of all workers. Until then it finds more than there can be, so that no pair without a
// scope applies; then each worker compares its flows again.
func (p *Pairing) twinsListed() bool {
	for _, l := range p.learners {
		if !l.table.TwinsListed() {
			return false
		}
	}
	return true
}

// twinned reports whether flows with the addresses and QPs of k are in several scopes.
func (p *Pairing) twinned(k *flowtable.Key) bool {
	_, _, several := p.twins(k, 0)
	return several
}

// recheckTwins applies the present maps to all flows with the addresses and QPs of k, except one: when it begins, as another worker may
// have begun a twin since the flow got its answer, and when it ends. It applies them to at most maxTwins flows: a flow that ends or begins costs no
// more, and a step of the worker begins and ends a bounded number of flows (flowtable.Table.Lookup and Sweep).
func (m *maps) recheckTwins(k *flowtable.Key, except store.Ref) {
	of, n, several := m.all.twins(k, except)
	for _, flow := range of[:n] {
		m.apply(flow, several)
	}
}

// SetStatic replaces the operator's map of QP pairs; nil is an empty map. The worker calls it before it shows the learner a burst. Existing
// flows get the new map with the next Sweeps, flows that begin after the call at once. A pair without a scope applies once all workers with
// more than 64 flows have listed them (flowtable.Table.ListTwins), with the Sweeps after their first map.
func (l *Learner) SetStatic(m *QPMap) { l.maps.static = m }

// Sweep applies new maps of QP pairs, reads messages of RDMA-CM that wait, and publishes Stats. The worker calls it once a step. Each call
// compares up to 64 flows with the maps: they get the source QP of the new map, or lose one that only the old map had. It scans the table
// in a circle, so that every flow is compared with the latest map even if maps change all the time.
func (l *Learner) Sweep() {
	l.maps.sweep()
	l.readWaiting()
	l.counts.publish()
}

// sweep compares some flows with new maps.
func (m *maps) sweep() {
	hints := m.all.hints.Load()
	if m.scopeless() {
		m.flows.table.ListTwins()
	}
	registered := uint64(0)
	if serialOf(hints) != 0 {
		registered = m.all.registered()
	}
	if listed := m.swept.listed || m.all.twinsListed(); m.static != m.swept.static || hints != m.swept.hints || listed != m.swept.listed ||
		registered != m.swept.registered {
		if registered != m.swept.registered {
			m.swept.before = m.swept.registered
		}
		m.swept.static, m.swept.hints, m.swept.listed, m.swept.registered = m.static, hints, listed, registered
		m.recheckLeft = uint32(m.flows.table.High())
	}
	n := min(recheckBatch, m.recheckLeft)
	m.recheckLeft -= n
	for range n {
		m.recheckAt = m.recheckAt%uint32(m.flows.table.High()) + 1
		if x := flowtable.Index(m.recheckAt); m.flows.table.State(x).Live() {
			k := m.flows.table.Key(x)
			match := m.register(x, k)
			m.apply(m.flows.ref(x), m.hasScopeless(k) && m.all.twinned(k))
			if match != nil && match.since() > m.swept.before {
				m.noteAmbiguous(match, m.flows.answer(x))
			}
		}
	}
	if serialOf(hints) != 0 {
		m.passed(n, hints)
	}
}

// apply applies the present maps to a flow of any worker, or withdraws a source QP that only the old ones had. It doesn't change a closed
// record.
func (m *maps) apply(r store.Ref, twinned bool) {
	t, x, s, ok := m.all.answers.find(r)
	if !ok {
		return
	}
	k, ok := t.KeyAt(x, s)
	if !ok {
		return
	}
	says, _ := m.initial(&k, twinned)
	if m.all.answers.change(r, func(a Answer) Answer {
		mapped := a.Evidence() == EvidenceStatic || a.Evidence() == EvidenceHint
		if a.Ended() != Open || says == 0 && !mapped {
			return a
		}
		return says
	}) && says != 0 {
		m.counts.flow(says.Evidence())
	}
}
