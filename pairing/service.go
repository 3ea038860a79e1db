package pairing

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// A QP has one transport service. A DETH names a source QP, but anyone who can send from the sender's side can forge it. So a UD flow's
// source QP is unknown while its QP is known to be one end of a connection (RC, UC or XRC):
//
//   - a map or a hint names it, or
//   - a flow to it has a slot, and the QP had not both sent and received UD packets before.
//
// Conversely, a QP that had both sent and received UD packets before is no end of a pair. To forge both directions of anything, an attacker
// must be able to send behind both gateway ports.
//
// Nothing is withdrawn from UD flows, of which there may be any number, at other workers. Instead each use of a UD flow's answer looks the
// QP up.

// qpFact is a flow that shows something about a QP.
type qpFact struct {
	hash uint64 // of the QP, and what the flow shows
	flow store.Ref
}

const (
	waysAFactSet = 15
	// flowsAFact bounds the flows that show the same about a QP, so that forged ones don't fill a set.
	flowsAFact = 4
)

type factSet struct {
	lock store.Lock
	lost uint32 // whether a fact of a connection found no space, 0 or 1: then its QPs may be any connection's
	_    [2]uint32
	of   [waysAFactSet]qpFact
}

type qpFacts []factSet

func (w qpFacts) setOf(h uint64) *factSet { return &w[h>>32%uint64(len(w))] }

// add records that a flow shows a fact. full: there is no space. If neither, another worker holds the lock.
func (w qpFacts) add(all answers, h uint64, flow store.Ref) (added, full bool) {
	s := w.setOf(h)
	if !s.lock.TrySoon() {
		return false, false
	}
	defer s.lock.Release()
	var free, weakest *qpFact
	same := 0
	for i := range s.of {
		at := &s.of[i]
		if at.hash == h && at.flow == flow {
			return true, false
		}
		a, live := all.of(at.flow)
		switch {
		case !live || a.Ended() != Open:
			free = at
		case at.hash == h:
			if same++; weakest == nil || a.State() != Confirmed {
				weakest = at
			}
		}
	}
	if same >= flowsAFact {
		free = weakest
	}
	if free == nil {
		return false, true
	}
	*free = qpFact{h, flow}
	return true, false
}

// lose records that there was no space for a fact.
func (w qpFacts) lose(h uint64) bool {
	s := w.setOf(h)
	if !s.lock.TrySoon() {
		return false
	}
	s.lost = 1
	s.lock.Release()
	return true
}

// remove forgets a fact.
func (w qpFacts) remove(h uint64) {
	s := w.setOf(h)
	if !s.lock.TrySoon() {
		return
	}
	defer s.lock.Release()
	for i := range s.of {
		if s.of[i].hash == h {
			s.of[i] = qpFact{}
		}
	}
}

// find reports whether a flow shows a fact; busy: that isn't known, because another worker held the lock or there was no space.
func (w qpFacts) find(all answers, h uint64) (found, busy bool) {
	s := w.setOf(h)
	if !s.lock.TrySoon() {
		return false, true
	}
	defer s.lock.Release()
	for i := range s.of {
		if at := &s.of[i]; at.hash == h {
			if a, live := all.of(at.flow); live && a.Ended() == Open {
				return true, false
			}
		}
	}
	return false, s.lost != 0
}

// Facts about a QP.
const (
	connects = 1 + iota // packets of a connection go to it
	sentUD
	receivedUD
	matches // a flow may be the one that a hint without a destination names
)

// factHash hashes a QP of the host on a side of a group, and a fact about it.
func (p *Pairing) factHash(k *store.Key, side int, qp uint32, what uint64) uint64 {
	h := keyhash.Fold(k.Hosts[side].Hi^p.secret[0], k.Hosts[side].Lo^p.secret[1])
	return keyhash.Fold(h^uint64(k.Scope)^p.secret[4], (uint64(side)<<32|what<<24|uint64(qp))^p.secret[5]) | 1
}

// sourceHash hashes the source of the flows of a side.
func (p *Pairing) sourceHash(k *store.Key, side int) uint64 { return p.factHash(k, side, 0, 0) }

// isUD reports whether a QP has sent and received UD packets, by flows that have not ended; busy: another worker held a lock.
func (p *Pairing) isUD(k *store.Key, side int, qp uint32) (is, busy bool) {
	sent, busy := p.datagrams.find(p.answers, p.factHash(k, side, qp, sentUD))
	if !sent {
		return false, busy
	}
	return p.datagrams.find(p.answers, p.factHash(k, side, qp, receivedUD))
}

// connected reports whether the source QP in a UD flow's key is known to be one end of a connection, or may be.
func (p *Pairing) connected(k *flowtable.Key, static *QPMap) bool {
	if static.names(k.Scope(), k.Src, k.SourceQP) || p.hints.Load().names(k.Scope(), k.Src, k.SourceQP) {
		return true
	}
	key, side := p.groupOf(k)
	known, busy := p.connections.find(p.answers, p.factHash(&key, side, k.SourceQP, connects))
	if !known {
		return busy
	}
	ud, _ := p.isUD(&key, side, k.SourceQP)
	return !ud
}

// connect records that a flow to a QP has a slot. UD packets that were seen in one direction only no longer count. It returns false if another worker
// holds the lock. A set without space is rare: a full one of 15 facts, where there are 4 on average.
func (p *Pairing) connect(k *store.Key, side int, qp uint32, flow store.Ref) bool {
	if ud, busy := p.isUD(k, side, qp); !ud && !busy {
		p.datagrams.remove(p.factHash(k, side, qp, sentUD))
	}
	h := p.factHash(k, side, qp, connects)
	added, full := p.connections.add(p.answers, h, flow)
	return added || full && p.connections.lose(h)
}

// beginUD records what a new UD flow shows about its two QPs.
func (l *Learner) beginUD(x flowtable.Index, k *flowtable.Key) {
	l.counts.change().Evidence[EvidenceDETH]++
	p := l.pairing
	key, side := p.groupOf(k)
	if !p.connected(k, l.maps.static) {
		l.counts.Confirmed[EvidenceDETH]++
		p.datagrams.add(p.answers, p.factHash(&key, side, k.SourceQP, sentUD), l.ref(x))
	}
	p.datagrams.add(p.answers, p.factHash(&key, 1-side, k.DestQP, receivedUD), l.ref(x))
}

// Answer describes the source QP of a flow with this answer in the flow table, for notifications and reports.
func (l *Learner) Answer(x flowtable.Index, a flowtable.Answer) Answer {
	if Answer(a).written() == EvidenceDETH {
		return l.ofDatagrams(x, Answer(a))
	}
	return Answer(a)
}

// ofDatagrams is Answer for a UD flow. It is not inlined, so that Answer is.
//
//go:noinline
func (l *Learner) ofDatagrams(x flowtable.Index, a Answer) Answer {
	if l.pairing.connected(l.table.Key(x), l.maps.static) {
		return a & endedBits
	}
	return a
}

var _ [256]byte = [unsafe.Sizeof(factSet{})]byte{}
