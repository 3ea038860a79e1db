package pairing

import (
	"fmt"
	"math/bits"

	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// QPPair is one connection stated by the operator or a host agent: QP SourceQP at Source is connected to QP DestinationQP at Destination.
// It applies to both directions.
type QPPair struct {
	Source, Destination     packet.Addr
	SourceQP, DestinationQP uint32 // 2 to 0xFFFFFE
}

// QPMap maps a flow's addresses and destination QP to its source QP. It never changes, so any number of goroutines may use it. A nil QPMap
// has no pairs.
//
// It uses at most 8 slots of 40 bytes a pair; the caller must bound the number of pairs. A lookup ends at the first empty slot. At least
// half of the slots are empty, and the seed keys the hash, so that someone who chooses pairs but doesn't know the seed can't make long runs
// of used slots.
type QPMap struct {
	secret [secrets]uint64
	mask   uint64
	slots  []qpSlot // open addressing; at most half full
}

// qpSlot is one direction of a pair; a destination QP of 0 is an empty slot.
type qpSlot struct {
	source, destination     packet.Addr
	destinationQP, sourceQP uint32
}

// NewQPMap builds a map of pairs, in both directions. It returns an error if two pairs give one flow two source QPs, or if no connection
// can have a QP number. The seed keys the hash and must be secret.
func NewQPMap(pairs []QPPair, seed uint64) (*QPMap, error) {
	n := 1 << bits.Len(uint(4*len(pairs)))
	m := &QPMap{secret: secretsFrom(seed), mask: uint64(n - 1), slots: make([]qpSlot, n)}
	for i, p := range pairs {
		for _, qp := range [...]uint32{p.SourceQP, p.DestinationQP} {
			if qp < 2 || qp > 0xfffffe {
				return nil, fmt.Errorf("QP pair %d (%v to %v): QP %d: expected 2 to %d, the QPs a connection can have",
					i+1, p.Source.Netip(), p.Destination.Netip(), qp, 0xfffffe)
			}
		}
		for _, s := range [...]qpSlot{
			{p.Source, p.Destination, p.DestinationQP, p.SourceQP},
			{p.Destination, p.Source, p.SourceQP, p.DestinationQP},
		} {
			if was := m.add(s); was != s.sourceQP {
				return nil, fmt.Errorf("QP pair %d (%v QP %d to %v QP %d): packets from %v to %v QP %d already have source QP %d "+
					"by an earlier pair: remove one of the two",
					i+1, p.Source.Netip(), p.SourceQP, p.Destination.Netip(), p.DestinationQP,
					s.source.Netip(), s.destination.Netip(), s.destinationQP, was)
			}
		}
	}
	return m, nil
}

// add stores a direction, unless its slot is taken, and returns the source QP that the map then has for it.
func (m *QPMap) add(s qpSlot) uint32 {
	p := m.slot(s.source, s.destination, s.destinationQP)
	if p.destinationQP == 0 {
		*p = s
	}
	return p.sourceQP
}

// slot returns the slot of a direction, or the empty slot for it. The map is never full, so the search ends.
func (m *QPMap) slot(src, dst packet.Addr, destQP uint32) *qpSlot {
	for i := m.hash(src, dst, destQP); ; i++ {
		s := &m.slots[i&m.mask]
		if s.destinationQP == 0 || s.destinationQP == destQP && s.source == src && s.destination == dst {
			return s
		}
	}
}

// hash adds one word at a time: two words of the key in one factor could cancel each other, whatever the secrets.
func (m *QPMap) hash(src, dst packet.Addr, destQP uint32) uint64 {
	h := m.secret[0]
	for i, w := range [...]uint64{src.Hi, src.Lo, dst.Hi, dst.Lo, uint64(destQP)} {
		h = keyhash.Fold(h^w, m.secret[1+i%3])
	}
	return h
}

// Lookup returns the source QP, 24 bits, of packets from src to dst with this destination QP; ok is false if the map has none.
func (m *QPMap) Lookup(src, dst packet.Addr, destQP uint32) (sourceQP uint32, ok bool) {
	if m == nil || destQP == 0 {
		return 0, false
	}
	s := m.slot(src, dst, destQP)
	return s.sourceQP, s.destinationQP != 0
}
