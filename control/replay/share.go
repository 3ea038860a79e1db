package replay

import (
	"math"
	"math/bits"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/splitmix"
)

// census estimates how many directions of connections a capture has, by linear counting: a bit for each hash, and how many of them stay 0.
type census [1 << 17]uint64

func (s *census) note(from, to packet.Addr, qp uint32) {
	h := splitmix.Mix(from.Hi^splitmix.Mix(from.Lo)) ^ splitmix.Mix(to.Hi^splitmix.Mix(to.Lo)+uint64(qp))
	h = splitmix.Mix(h)
	s[h>>6%uint64(len(s))] |= 1 << (h & 63)
}

// shares is in how many shares so many connections can be followed at a time. A share may have a tenth more of them than the mean.
func (s *census) shares(limit int) int {
	size, empty := len(s)*64, 0
	for _, word := range s {
		empty += 64 - bits.OnesCount64(word)
	}
	directions := float64(size) * math.Log(float64(size)/float64(max(empty, 1)))
	if directions <= 2*float64(limit) {
		return 1
	}
	return int(directions/2/(0.9*float64(limit))) + 1
}

// place says where a frame belongs, so that the passes for other shares need not parse it: a hash of two hosts, or one of these.
type place uint16

const (
	inNone place = 1<<16 - 1 - iota // not RoCEv2
	inAll                           // a CNP
	hashes = 1<<16 - 2
)

// mostPlaces bounds the memory of places, 2 bytes each.
const mostPlaces = 1 << 27

func placeOf(a, b packet.Addr) place {
	between := splitmix.Mix(a.Hi^splitmix.Mix(a.Lo)) + splitmix.Mix(b.Hi^splitmix.Mix(b.Lo)) // the same both ways
	return place(splitmix.Mix(between) % hashes)
}

// shareOf is the share that the connections between two hosts belong to.
func (h *judge) shareOf(a, b packet.Addr) int { return int(placeOf(a, b)) % h.shares }

// place notes where the frame at hand belongs, in the pass that counts directions.
func (h *judge) place(rdma bool) {
	switch {
	case h.directions == nil || h.places == nil || h.frames <= len(h.places):
	case !rdma:
		h.places = append(h.places, inNone)
	case h.parsed.Opcode == packet.CNP:
		h.places = append(h.places, inAll)
	default:
		h.places = append(h.places, placeOf(h.parsed.Src, h.parsed.Dst))
	}
}

// elsewhere reports whether the frame at hand need not be read: it belongs to another share. What isn't RoCEv2 was counted before, but pauses are followed with
// the first share.
func (h *judge) elsewhere() bool {
	switch p := h.places[min(h.frames, len(h.places))-1]; p {
	case inAll:
		return false
	case inNone:
		return h.follower == nil || h.share > 0
	default:
		return int(p)%h.shares != h.share
	}
}
