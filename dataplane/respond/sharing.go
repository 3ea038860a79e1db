package respond

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/keyhash"
)

// sharing has, of a worker's senders, what all flows of each send in a class. Those of its flows that send too few packets for a rate of their own count as one.
// So a sender can't have or hide more than its share by spreading it over many QPs, by bursts of one QP after the other, or by another destination QP for each
// datagram: while its slow flows together exceed their level, CNPs go to those of them that send now. Whether a sender reacts is seen by the rate of all its flows:
// that of one may grow while the others' falls, and that of a slow one is known too late.
//
// The size is fixed. Of more senders, those are known that send most (Misra and Gries: an entry has the bytes of its sender as credit, a packet of an unknown sender takes
// its bytes from the least credit of its places, and the sender has the entry once none is left). So one that isn't known sends at most about as much as the least of these.
type sharing struct {
	entries []sharer
	secret  [3]uint64
}

// sharer is a sender in a class.
type sharer struct {
	key    uint64 // hash of the address, the scope and the queue; 0: the entry is free
	ref    uint32 // the place, and above that how often it was replaced
	credit int32  // bytes
	congestion.LawShare
	slow   congestion.LawFlow // of the flows without a rate of their own
	began  uint32             // since when these have had a rate together, units of sharerTick
	others float32            // its rate at other workers, divided by that at this one
}

const (
	sharerTick    = 1024 // ns
	sharingPlaces = 32768
	sharingWays   = 8
	sharingCredit = 1 << 18    // bytes, the most
	sharingIdle   = 50_000_000 // ns without a packet after which an entry is free
	senderWatch   = 1 << 31    // with the place: what stands for all flows of a sender in a congestion.Reaction
)

func sharingSize() int { return sharingPlaces * int(unsafe.Sizeof(sharer{})) }

// newSharing needs memory that is zero and 8-byte aligned.
func newSharing(memory []byte, seed uint64) sharing {
	s := sharing{entries: unsafe.Slice((*sharer)(unsafe.Pointer(unsafe.SliceData(memory))), sharingPlaces)}
	s.entries[0].ref = sharingPlaces // no flow's yet
	keyhash.Spread(s.secret[:], ^seed)
	return s
}

// watch stands for the sender in a congestion.Reaction.
func (e *sharer) watch() uint32 { return senderWatch | e.ref%sharingPlaces }

// share is what of F is the sender's at this worker.
func (e *sharer) share(fair float64) float64 { return fair / (1 + float64(e.others)) }

// addSlow adds a packet of a flow without a rate of its own. It returns the time for which all of these have had a rate together, ns.
func (e *sharer) addSlow(now int64, bytes uint32) int64 {
	at := uint32(now / sharerTick)
	if e.slow.Rate() == 0 {
		e.began = at
	}
	e.slow.Add(now, bytes)
	return int64(at-e.began) * sharerTick
}

// of returns the entry for a packet of so many bytes, where `ref` is what it was for the flow's last packet; nil if its sender has none.
func (s *sharing) of(ref *uint32, k *flowtable.Key, queue int, bytes uint32, now int64) *sharer {
	e := s.last(*ref)
	if e == nil {
		if e = s.find(k, queue, bytes, now); e == nil {
			return nil
		}
		*ref = e.ref
	}
	e.credit = min(e.credit+int32(bytes), sharingCredit)
	return e
}

// last returns the entry that the last packet of a flow had, nil if that is another sender's by now.
func (s *sharing) last(ref uint32) *sharer {
	if e := &s.entries[ref%sharingPlaces]; e.ref == ref {
		return e
	}
	return nil
}

func (s *sharing) find(k *flowtable.Key, queue int, bytes uint32, now int64) *sharer {
	key := keyhash.Fold(keyhash.Fold(k.Src.Hi^s.secret[0], k.Src.Lo^s.secret[1])^s.secret[2]^uint64(queue), uint64(k.Scope())^s.secret[0]) | 1
	first := uint32(key>>8) % (sharingPlaces / sharingWays) * sharingWays
	set := s.entries[first:][:sharingWays]
	e, place := &set[0], first
	for i := range set {
		switch o := &set[i]; {
		case o.key == key:
			return o
		case now-o.Last > sharingIdle:
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
	next := (e.ref/sharingPlaces + 1) * sharingPlaces
	if next == 0 { // after 2^17 senders at this place: 0 is what a new flow has
		next = sharingPlaces
	}
	*e = sharer{key: key, ref: next + place}
	return e
}
