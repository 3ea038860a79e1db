package respond

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/keyhash"
)

// slowFlows has, of a worker's senders, the flows that send too few packets for a rate of their own: those of one sender in a class count as one flow. So a sender
// can't hide what it sends by spreading it over many QPs, by bursts of one QP after the other, or by another destination QP for each datagram; and each of its packets
// may be followed by a CNP to the QP that sent it, with the probability by which all of them together exceed F.
//
// The size is fixed. Of more senders, those are known that send most (Misra and Gries: an entry has the bytes of its sender as credit, a packet of an unknown sender takes
// its bytes from the least credit of its places, and the sender has the entry once none is left). So one that isn't known sends at most about as much as the least of these.
type slowFlows struct {
	entries []slowFlow
	secret  [3]uint64
}

// slowFlow is the slow flows of a sender in a class.
type slowFlow struct {
	key    uint64 // hash of the address, the scope and the queue; 0: the entry is free
	ref    uint32 // the place, and above that how often it was replaced
	credit int32  // bytes
	last   int64  // time of the last packet, ns
	congestion.LawFlow
}

const (
	slowPlaces = 8192
	slowWays   = 4
	slowCredit = 1 << 18    // bytes, the most
	slowIdle   = 50_000_000 // ns without a packet after which an entry is free
	slowWatch  = 1 << 31    // with the place: what stands for a sender's slow flows in a congestion.Reaction
)

func slowFlowsSize() int { return slowPlaces * int(unsafe.Sizeof(slowFlow{})) }

// newSlowFlows needs memory that is zero and 8-byte aligned.
func newSlowFlows(memory []byte, seed uint64) slowFlows {
	s := slowFlows{entries: unsafe.Slice((*slowFlow)(unsafe.Pointer(unsafe.SliceData(memory))), slowPlaces)}
	s.entries[0].ref = slowPlaces // no flow's yet
	keyhash.Spread(s.secret[:], ^seed)
	return s
}

// of returns the entry for a packet of a slow flow of so many bytes, where `ref` is what it was for the flow's last packet; nil if its sender has none.
func (s *slowFlows) of(ref *uint32, k *flowtable.Key, queue int, bytes uint32, now int64) *slowFlow {
	e := &s.entries[*ref%slowPlaces]
	if e.ref != *ref {
		if e = s.find(k, queue, bytes, now); e == nil {
			return nil
		}
		*ref = e.ref
	}
	e.credit, e.last = min(e.credit+int32(bytes), slowCredit), now
	return e
}

func (s *slowFlows) find(k *flowtable.Key, queue int, bytes uint32, now int64) *slowFlow {
	key := keyhash.Fold(keyhash.Fold(k.Src.Hi^s.secret[0], k.Src.Lo^s.secret[1])^s.secret[2]^uint64(queue), uint64(k.Scope())^s.secret[0]) | 1
	first := uint32(key>>8) % (slowPlaces / slowWays) * slowWays
	set := s.entries[first:][:slowWays]
	e, place := &set[0], first
	for i := range set {
		switch o := &set[i]; {
		case o.key == key:
			return o
		case now-o.last > slowIdle:
			o.credit = 0
			fallthrough
		default:
			if o.credit < e.credit {
				e, place = o, first+uint32(i)
			}
		}
	}
	if e.credit -= int32(bytes); e.credit > 0 {
		return nil
	}
	next := (e.ref/slowPlaces + 1) * slowPlaces
	if next == 0 { // after 2^19 senders at this place: 0 is what a new flow has
		next = slowPlaces
	}
	*e = slowFlow{key: key, ref: next + place}
	return e
}
