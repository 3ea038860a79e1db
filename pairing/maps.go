package pairing

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/store"
)

const recheckBatch = 64 // flows that one Sweep compares with a new map, at most

// initial returns a flow's answer when it begins, and whether it has a pair without a scope. UD packets carry their source QP, which is part
// of the flow's key, so no map can contradict it. twinned: the flow has a twin, so that a pair without a scope says nothing about it.
func (l *Learner) initial(k *flowtable.Key, twinned bool) (a Answer, scopeless bool) {
	if k.SourceQP != 0 {
		return makeAnswer(k.SourceQP, Confirmed, EvidenceDETH), false
	}
	for _, m := range [...]struct {
		of  *QPMap
		why Evidence
	}{{l.static, EvidenceStatic}, {l.pairing.hints.Load(), EvidenceHint}} {
		if m.of == nil {
			continue
		}
		anywhere, has := m.of.Lookup(k.Src, k.Dst, k.DestQP)
		scopeless = scopeless || has
		qp, ok := m.of.LookupIn(k.Scope(), k.Src, k.Dst, k.DestQP)
		if !ok {
			qp, ok = anywhere, has && !twinned
		}
		if ok && a == 0 {
			a = makeAnswer(qp, Confirmed, m.why)
		}
	}
	return a, scopeless
}

// twinsOf is all workers' flows with the addresses and QPs of one.
type twinsOf struct {
	n  int
	of [maxTwins]struct {
		flow  store.Ref
		scope packet.Scope
	}
	scopes int // that they are in; maxTwins if there may be more flows
}

// maxTwins bounds the flows that are compared: where so many have the same addresses and QPs, no pair without a scope applies to any.
const maxTwins = 16

// twins finds the flows with the addresses and QPs of k, except one.
func (p *Pairing) twins(k *flowtable.Key, except store.Ref) (t twinsOf) {
	var found [maxTwins]flowtable.Twin
	for _, l := range p.learners {
		all := found[t.n:]
		n := l.table.Twins(k, all)
		for _, f := range all[:n] {
			r, scope := l.refTo(f.Ref), p.scopeOf(f.Scope)
			if r == except {
				continue
			}
			other := 1
			for i := range t.n {
				if t.of[i].scope == scope {
					other = 0
				}
			}
			t.of[t.n].flow, t.of[t.n].scope = r, scope
			t.n, t.scopes = t.n+1, t.scopes+other
		}
		if n == len(all) {
			t.scopes = maxTwins
			break
		}
	}
	return t
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
	return p.twins(k, 0).scopes > 1
}

// recheckTwins applies the present maps to all twins of a flow that begins, and to the flow itself: another worker may have begun a twin
// since the flow got its answer.
func (l *Learner) recheckTwins(k *flowtable.Key) {
	t := l.pairing.twins(k, 0)
	for i := range t.n {
		l.apply(t.of[i].flow, t.scopes > 1)
	}
}

// remainTwins is recheckTwins for a flow that ends: the one that remains may have no twin any more.
func (l *Learner) remainTwins(x flowtable.Index) {
	k := l.table.Key(x)
	if _, scopeless := l.initial(k, true); !scopeless {
		return
	}
	if t := l.pairing.twins(k, l.ref(x)); t.scopes == 1 {
		for i := range t.n {
			l.apply(t.of[i].flow, false)
		}
	}
}

// SetStatic replaces the operator's map of QP pairs; nil is an empty map. The worker calls it before it shows the learner a burst. Existing flows get
// the new map with the next Sweeps, flows that begin after the call at once. A pair without a scope applies once all workers with
// more than 64 flows have listed them (flowtable.Table.ListTwins), with the Sweeps after their first map.
func (l *Learner) SetStatic(m *QPMap) { l.static = m }

// scopeless reports whether the present maps have pairs without a scope.
func (l *Learner) scopeless() bool {
	hints := l.pairing.hints.Load()
	return l.static != nil && l.static.scopeless || hints != nil && hints.scopeless
}

// Sweep applies new maps of QP pairs, reads messages of RDMA-CM that wait, and publishes Stats. The worker calls it once a step. Each call compares up to 64 flows with the
// maps: they get the source QP of the new map, or lose one that only the old map had. It scans the table in a circle, so that every flow is
// compared with the latest map even if maps change all the time.
func (l *Learner) Sweep() {
	hints := l.pairing.hints.Load()
	if l.scopeless() {
		l.table.ListTwins()
	}
	if listed := l.swept.listed || l.pairing.twinsListed(); l.static != l.swept.static || hints != l.swept.hints || listed != l.swept.listed {
		l.swept.static, l.swept.hints, l.swept.listed = l.static, hints, listed
		l.recheckLeft = uint32(l.table.High())
	}
	n := min(recheckBatch, l.recheckLeft)
	l.recheckLeft -= n
	for range n {
		l.recheckAt = l.recheckAt%uint32(l.table.High()) + 1
		if x := flowtable.Index(l.recheckAt); l.table.State(x).Live() {
			_, scopeless := l.initial(l.table.Key(x), false)
			l.apply(l.ref(x), scopeless && l.pairing.twinned(l.table.Key(x)))
		}
	}
	l.readWaiting()
	l.counts.publish()
}

// apply applies the present maps to a flow of any worker, or withdraws a source QP that only the old ones had. It doesn't change a closed
// record.
func (l *Learner) apply(r store.Ref, twinned bool) {
	t, x, s, ok := l.pairing.answers.find(r)
	if !ok {
		return
	}
	k, ok := t.KeyAt(x, s)
	if !ok {
		return
	}
	says, _ := l.initial(&k, twinned)
	if l.pairing.answers.change(r, func(a Answer) Answer {
		mapped := a.Evidence() == EvidenceStatic || a.Evidence() == EvidenceHint
		if a.Ended() != Open || says == 0 && !mapped {
			return a
		}
		return says
	}) && says != 0 {
		l.counts.flow(says.Evidence())
	}
}
