package pairing

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// A host may know the number of the QP that its own QP is connected to, but not that host's address. Its hint has no destination, and applies
// where exactly one flow from the host goes to a QP of that number. The flows that such a hint may be about are recorded as facts: when they
// begin, and by Sweep when the hint is new. A hint applies once all workers' Sweeps have passed all their flows since it came. More flows at a
// time than flowsAFact are several.

// serialOf is the number of a map in the order of SetHints, 0 if it has no pairs without a destination.
func serialOf(hints *QPMap) uint64 {
	if hints == nil || !hints.anywhere {
		return 0
	}
	return hints.serial
}

// number gives a map its serial number, and each of its pairs without a destination the number of the first map that had it.
func (m *QPMap) number(serial uint64, before *QPMap) {
	m.serial = serial
	for i := range m.slots {
		s := &m.slots[i]
		if s.destinationQP&anywhere == 0 {
			continue
		}
		s.destination.Lo = serial
		if before != nil && before.anywhere {
			if was := before.slot(s.scope, s.source, packet.Addr{}, s.destinationQP); was.destinationQP != 0 {
				s.destination.Lo = was.destination.Lo
			}
		}
	}
}

// since is the serial number of the first map with a pair without a destination.
func (s *qpSlot) since() uint64 { return s.destination.Lo }

// undirected finds the pair without a destination that may be about a flow, nil if there is none.
func (m *QPMap) undirected(k *flowtable.Key) *qpSlot {
	if m == nil || !m.anywhere || k.SourceQP != 0 || k.DestQP == 0 {
		return nil
	}
	for _, scope := range [...]packet.Scope{k.Scope().Named(), noScope} {
		if s := m.slot(scope, k.Src, packet.Addr{}, k.DestQP|anywhere); s.destinationQP != 0 {
			return s
		}
	}
	return nil
}

// matchHash is the hash of the fact that a flow matches a pair without a destination.
func (p *Pairing) matchHash(s *qpSlot) uint64 {
	h := keyhash.Fold(s.source.Hi^p.secret[0], s.source.Lo^p.secret[1])
	return keyhash.Fold(h^uint64(s.scope)^p.secret[4], (matches<<24|uint64(s.destinationQP&packet.MaxQP))^p.secret[5]) | 1
}

// registered is the serial number of the latest map since which all workers' Sweeps have passed all flows.
func (p *Pairing) registered() uint64 {
	n := ^uint64(0)
	for _, l := range p.learners {
		n = min(n, l.maps.registered.Load())
	}
	return n
}

// register records that a flow matches a pair without a destination, if there is one. It returns the pair.
func (m *maps) register(x flowtable.Index, k *flowtable.Key) *qpSlot {
	s := m.all.hints.Load().undirected(k)
	if s == nil {
		return nil
	}
	if added, _ := m.all.connections.add(m.all.answers, m.all.matchHash(s), m.flows.ref(x)); !added {
		m.counts.change().Skipped++
	}
	return s
}

// byUndirected is what a pair without a destination says of a flow: nothing if it isn't known yet that no other flow matches it.
func (p *Pairing) byUndirected(k *flowtable.Key) Answer {
	s := p.hints.Load().undirected(k)
	if s == nil || s.since() > p.registered() {
		return 0
	}
	found, n := p.connections.matching(p.answers, p.matchHash(s))
	if n == 0 || n == len(found) {
		return 0
	}
	for _, r := range found[:n] {
		t, x, state, ok := p.answers.find(r)
		if !ok {
			continue
		}
		if of, ok := t.KeyAt(x, state); ok && (of.Dst != k.Dst || p.scopeOf(of.Scope()) != p.scopeOf(k.Scope())) {
			return 0
		}
	}
	return makeAnswer(s.sourceQP, Confirmed, EvidenceHint)
}

// recheckMatching applies the present maps to the flows that match a pair without a destination.
func (m *maps) recheckMatching(s *qpSlot) {
	found, n := m.all.connections.matching(m.all.answers, m.all.matchHash(s))
	for _, r := range found[:n] {
		t, x, state, ok := m.all.answers.find(r)
		if !ok {
			continue
		}
		if k, ok := t.KeyAt(x, state); ok {
			m.apply(r, m.hasScopeless(&k) && m.all.twinned(&k))
		}
	}
}

// noteAmbiguous counts a flow that a pair without a destination doesn't name because others match it, too.
func (m *maps) noteAmbiguous(s *qpSlot, a Answer) {
	if s != nil && a == 0 && s.since() <= m.all.registered() {
		m.counts.change().Ambiguous++
	}
}

// passed counts flows that Sweep has passed, and publishes the number of the map since which it has passed all.
func (m *maps) passed(flows uint32, hints *QPMap) {
	if m.lap.passed += flows; m.lap.passed >= uint32(m.flows.table.High()) {
		m.registered.Store(m.lap.serial)
		m.lap.serial, m.lap.passed = serialOf(hints), 0
	}
	if m.recheckLeft == 0 && m.registered.Load() < serialOf(hints) {
		m.recheckLeft = min(recheckBatch, uint32(m.flows.table.High()))
	}
}

// matching returns the flows that show a fact, or as many as fit if another worker holds the lock.
func (w qpFacts) matching(all answers, h uint64) (found [flowsAFact]store.Ref, n int) {
	s := w.setOf(h)
	if !s.lock.TrySoon() {
		return found, len(found)
	}
	defer s.lock.Release()
	for i := range s.of {
		if at := &s.of[i]; at.hash == h && n < len(found) {
			if a, live := all.of(at.flow); live && a.Ended() == Open {
				found[n] = at.flow
				n++
			}
		}
	}
	return found, n
}

// drop forgets that a flow shows a fact.
func (w qpFacts) drop(h uint64, flow store.Ref) {
	s := w.setOf(h)
	if !s.lock.TrySoon() {
		return
	}
	defer s.lock.Release()
	for i := range s.of {
		if at := &s.of[i]; at.hash == h && at.flow == flow {
			*at = qpFact{}
		}
	}
}
