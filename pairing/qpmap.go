package pairing

import (
	"fmt"
	"math/bits"

	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// QPPair is one connection stated by the operator or a host agent: QP SourceQP at Source is connected to QP DestinationQP at Destination.
// It applies to both directions, or with OneWay to packets from Source only. Without a scope it applies where only one scope has such a flow.
// Without a Destination, which only a OneWay pair may lack, it applies where only one flow from Source goes to QP DestinationQP, of whatever host.
type QPPair struct {
	Source, Destination     packet.Addr
	SourceQP, DestinationQP uint32 // 2 to 0xFFFFFE
	InScope                 bool
	Scope                   packet.Scope // as packet.Scope.Named
	OneWay                  bool
}

// noScope is instead of the scope of a pair without one. No Named scope has a port.
const noScope packet.Scope = 1

func (p *QPPair) scope() packet.Scope {
	if p.InScope {
		return p.Scope.Named()
	}
	return noScope
}

// QPMap maps a flow's addresses, destination QP and scope to its source QP. It never changes, so any number of goroutines may use it. A nil
// QPMap has no pairs.
//
// It uses at most 16 slots of 48 bytes a pair; the caller must bound the number of pairs. A lookup ends at the first empty slot. At least
// half of the slots are empty, and the seed keys the hash, so that someone who chooses pairs but doesn't know the seed can't make long runs
// of used slots.
type QPMap struct {
	secret    [secrets]uint64
	mask      uint64
	slots     []qpSlot // open addressing; at most half full
	scopeless bool     // there are pairs without a scope
	anywhere  bool     // there are pairs without a destination
	serial    uint64   // of a map with such pairs, from 1 on: see number
}

// endOfPair, in a slot's destination QP, marks the slot of one end of a pair: its destination is empty, and both QPs are the end's.
const endOfPair = 1 << 24

// anywhere, in a slot's destination QP, marks a pair without a destination: instead of that, the slot has the serial number of the first map that had it.
const anywhere = 1 << 25

// qpSlot is one direction or one end of a pair; a destination QP of 0 is an empty slot.
type qpSlot struct {
	source, destination     packet.Addr
	destinationQP, sourceQP uint32
	scope                   packet.Scope
}

// NewQPMap builds a map of pairs, in both directions. It returns an error if two pairs give one flow two source QPs, or if no
// connection can have a QP number. The seed keys the hash and must be secret.
func NewQPMap(pairs []QPPair, seed uint64) (*QPMap, error) {
	n := 1 << bits.Len(uint(8*len(pairs)))
	m := &QPMap{secret: secretsFrom(seed), mask: uint64(n - 1), slots: make([]qpSlot, n)}
	for i, p := range pairs {
		toAny := p.Destination == packet.Addr{}
		if toAny && !p.OneWay {
			return nil, fmt.Errorf("QP pair %d (%v QP %d): no destination: expected one, as the pair applies to both directions", i+1, p.Source.Netip(), p.SourceQP)
		}
		m.scopeless, m.anywhere = m.scopeless || !p.InScope && !toAny, m.anywhere || toAny
		for _, qp := range [...]uint32{p.SourceQP, p.DestinationQP} {
			if !packet.ConnectionQP(qp) {
				return nil, fmt.Errorf("QP pair %d (%v to %v): QP %d: expected 2 to %d, the QPs a connection can have",
					i+1, p.Source.Netip(), p.Destination.Netip(), qp, packet.MaxQP-1)
			}
		}
		slots := [...]qpSlot{
			{p.Source, p.Destination, p.DestinationQP, p.SourceQP, p.scope()},
			{p.Source, packet.Addr{}, p.SourceQP | endOfPair, p.SourceQP, p.scope()},
			{p.Destination, p.Source, p.SourceQP, p.DestinationQP, p.scope()},
			{p.Destination, packet.Addr{}, p.DestinationQP | endOfPair, p.DestinationQP, p.scope()},
		}
		said := slots[:]
		if p.OneWay {
			said = slots[:2]
		}
		if toAny {
			said[0].destinationQP |= anywhere
		}
		for _, s := range said {
			if was := m.add(s); was != s.sourceQP {
				return nil, fmt.Errorf("QP pair %d (%v QP %d to %v QP %d): packets from %v to %v QP %d already have source QP %d "+
					"by an earlier pair: remove one of the two",
					i+1, p.Source.Netip(), p.SourceQP, p.Destination.Netip(), p.DestinationQP,
					s.source.Netip(), s.destination.Netip(), s.destinationQP&packet.MaxQP, was)
			}
		}
	}
	return m, nil
}

// add stores a direction, unless its slot is taken, and returns the source QP that the map then has for it.
func (m *QPMap) add(s qpSlot) uint32 {
	p := m.slot(s.scope, s.source, s.destination, s.destinationQP)
	if p.destinationQP == 0 {
		*p = s
	}
	return p.sourceQP
}

// slot returns the slot of a direction, or the empty slot for it. The map is never full, so the search ends.
func (m *QPMap) slot(scope packet.Scope, src, dst packet.Addr, destQP uint32) *qpSlot {
	for i := m.hash(scope, src, dst, destQP); ; i++ {
		s := &m.slots[i&m.mask]
		if s.destinationQP == 0 ||
			s.destinationQP == destQP && s.source == src && (s.destination == dst || destQP&anywhere != 0) && s.scope == scope {
			return s
		}
	}
}

// hash adds one word at a time: two words of the key in one factor could cancel each other, whatever the secrets.
func (m *QPMap) hash(scope packet.Scope, src, dst packet.Addr, destQP uint32) uint64 {
	h := m.secret[0]
	for i, w := range [...]uint64{src.Hi, src.Lo, dst.Hi, dst.Lo, uint64(destQP), uint64(scope)} {
		h = keyhash.Fold(h^w, m.secret[1+i%3])
	}
	return h
}

// Lookup returns the source QP, 24 bits, of packets from src to dst with this destination QP, by a pair without a scope; ok is false if the
// map has none.
func (m *QPMap) Lookup(src, dst packet.Addr, destQP uint32) (sourceQP uint32, ok bool) {
	return m.lookup(noScope, src, dst, destQP)
}

// LookupIn is Lookup by a pair of a scope.
func (m *QPMap) LookupIn(scope packet.Scope, src, dst packet.Addr, destQP uint32) (sourceQP uint32, ok bool) {
	return m.lookup(scope.Named(), src, dst, destQP)
}

func (m *QPMap) lookup(scope packet.Scope, src, dst packet.Addr, destQP uint32) (sourceQP uint32, ok bool) {
	if m == nil || destQP == 0 {
		return 0, false
	}
	s := m.slot(scope, src, dst, destQP)
	return s.sourceQP, s.destinationQP != 0
}

// names reports whether a host's QP is one end of a pair, of its scope or without one.
func (m *QPMap) names(scope packet.Scope, host packet.Addr, qp uint32) bool {
	_, here := m.LookupIn(scope, host, packet.Addr{}, qp|endOfPair)
	_, anywhere := m.Lookup(host, packet.Addr{}, qp|endOfPair)
	return here || anywhere
}
