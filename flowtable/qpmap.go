package flowtable

import (
	"fmt"
	"math/bits"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// QPPair is one connection as the operator states it: the QP that Source sends from and the one that Destination receives with.
// It says the same of the opposite direction.
type QPPair struct {
	Source, Destination     packet.Addr
	SourceQP, DestinationQP uint32 // 2 to 0xFFFFFE
}

// QPMap answers which source QP sends to a destination QP. It doesn't change once made, so any number of goroutines may use it;
// a nil one knows nothing.
type QPMap struct {
	mask  uint64
	slots []qpSlot // open addressing; at most half full
}

// qpSlot is one direction of a pair; a destination QP of 0 is an empty slot.
type qpSlot struct {
	source, destination     packet.Addr
	destinationQP, sourceQP uint32
}

// NewQPMap builds a map from pairs and their reverses. Two pairs that give one flow two source QPs are an error, and so is a
// number that no connection's QP can have.
func NewQPMap(pairs []QPPair) (*QPMap, error) {
	n := 1 << bits.Len(uint(4*len(pairs)))
	m := &QPMap{uint64(n - 1), make([]qpSlot, n)}
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

// add stores a direction unless it is there, and returns the source QP that is in the map now.
func (m *QPMap) add(s qpSlot) uint32 {
	p := m.slot(s.source, s.destination, s.destinationQP)
	if p.destinationQP == 0 {
		*p = s
	}
	return p.sourceQP
}

// slot is where a direction is or would be. The map is never full, so there is an empty slot to end at.
func (m *QPMap) slot(src, dst packet.Addr, destQP uint32) *qpSlot {
	h := fold(src.Hi^0x9e3779b97f4a7c15, src.Lo^0xbf58476d1ce4e5b9)
	h = fold(h^dst.Hi^uint64(destQP)<<40, dst.Lo^0x94d049bb133111eb)
	for i := h; ; i++ {
		s := &m.slots[i&m.mask]
		if s.destinationQP == 0 || s.destinationQP == destQP && s.source == src && s.destination == dst {
			return s
		}
	}
}

// Lookup is the source QP of packets from src to dst with this destination QP.
func (m *QPMap) Lookup(src, dst packet.Addr, destQP uint32) (uint32, bool) {
	if m == nil || destQP == 0 {
		return 0, false
	}
	s := m.slot(src, dst, destQP)
	return s.sourceQP, s.destinationQP != 0
}
