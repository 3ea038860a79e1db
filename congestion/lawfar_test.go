package congestion_test

import (
	"math/rand/v2"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
)

// goBackN is a sender with go-back-N, whose packets reach a receiver over a path that loses some: it learns of a loss `flight` packets later.
type goBackN struct {
	law   congestion.Law
	flow  congestion.LawFlow
	far   congestion.Far
	now   int64
	limit float64
	here  bool // this gateway loses the packets
}

// run sends so many packets, of which lost loses some, beginning with a PSN.
func (s *goBackN) run(psn uint32, packets int, flight uint32, lost func() bool) {
	const gap = 1000 // ns
	missing, gone := uint32(0), false
	for range packets {
		s.now += gap
		loses := lost()
		if back := s.flow.Returns(psn&(1<<24-1), loses && s.here); back != congestion.NeverReturned {
			s.limit = s.far.Limit(&congestion.LawState{Law: &s.law, Now: s.now, Fair: s.law.Line}, back, 1, psn&(1<<24-1), 4096)
		}
		if !gone && loses {
			gone, missing = true, psn
		}
		psn++
		if gone && psn-missing > flight {
			gone, psn = false, missing
		}
	}
}

// TestFar: a flow that loses each tenth packet gets a limit, which is lowered while that goes on, and goes once it has grown to the line's rate. One that loses a packet
// now and then gets none, nor does one whose packets this gateway drops, or one without loss. PSNs wrap.
func TestFar(t *testing.T) {
	for name, c := range map[string]struct {
		loss    float64
		here    bool
		limited bool
	}{"overload": {0.1, false, true}, "here": {0.1, true, false}, "bit errors": {1e-4, false, false}, "no loss": {}} {
		random := rand.New(rand.NewPCG(1, 2))
		s := goBackN{law: congestion.NewLaw(100e9, 64e6, 0), here: c.here}
		lost := func() bool { return random.Float64() < c.loss }
		s.run(1<<24-5000, 5000, 1000, lost)
		first := s.limit
		if s.run(1<<24, 100_000, 1000, lost); (s.limit > 0) != c.limited || c.limited && s.limit >= first {
			t.Errorf("%s: the limit is %v, and was %v", name, s.limit, first)
		}
		if s.run(1<<25, 200_000, 1000, func() bool { return false }); s.limit != 0 {
			t.Errorf("%s: long after the last loss, the limit is %v", name, s.limit)
		}
	}
}
