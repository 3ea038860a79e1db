package replay

import (
	"math"
	"math/bits"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/splitmix"
)

// census estimates how many directions of connections a capture has, by linear counting: a bit for each hash, and how many of them stay 0.
type census [1 << 17]uint64

func (s *census) note(p *packet.Parsed) {
	h := splitmix.Mix(p.Src.Hi^splitmix.Mix(p.Src.Lo)) ^ splitmix.Mix(p.Dst.Hi^splitmix.Mix(p.Dst.Lo)+uint64(p.DestQP))
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

// shareOf is the share that the connections between two hosts belong to.
func (h *judge) shareOf(a, b packet.Addr) int {
	between := splitmix.Mix(a.Hi^splitmix.Mix(a.Lo)) + splitmix.Mix(b.Hi^splitmix.Mix(b.Lo)) // the same both ways
	return int(splitmix.Mix(between) % uint64(h.shares))
}
