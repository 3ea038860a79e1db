package replay

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestRewritten: wrong ICRCs are a proof of corruption only if the other direction shows that the capture has them as they were on the wire.
func TestRewritten(t *testing.T) {
	a, b := packet.Addr{Lo: 1}, packet.Addr{Lo: 2}
	requests := func(psns ...uint32) *icrcCount {
		n := uint64(len(psns))
		c := &icrcCount{seen: n, whole: n}
		for _, psn := range psns {
			c.request(7, psn)
		}
		return c
	}
	for _, c := range []struct {
		name        string
		there, back *icrcCount
		want        bool
	}{
		{"no answers", &icrcCount{seen: 64, whole: 64, wrong: 64}, nil, false},
		{"right answers", &icrcCount{seen: 64, whole: 64, wrong: 64}, &icrcCount{seen: 9, whole: 9}, false},
		{"wrong answers, too", &icrcCount{seen: 64, whole: 64, wrong: 64}, &icrcCount{seen: 9, whole: 9, wrong: 9}, true},
		{"answers of which none is whole", &icrcCount{seen: 64, whole: 64, wrong: 64}, &icrcCount{seen: 9}, true},
		{"more answers than right packets", &icrcCount{seen: 64, whole: 64, wrong: 64}, &icrcCount{seen: 9, whole: 9, answers: 9}, true},
		{"answers to packets that were cut", &icrcCount{seen: 80, whole: 64, wrong: 64}, &icrcCount{seen: 9, whole: 9, answers: 9}, false},
		{"answers that are heard", &icrcCount{seen: 64, whole: 64, wrong: 64, answers: 64}, requests(5, 6, 7, 6, 7, 8), true},
		{"answers that aren't", &icrcCount{seen: 64, whole: 64, wrong: 64, answers: 64}, requests(5, 6, 7, 5), false},
		{"answers, of which a few are wrong", &icrcCount{seen: 64, whole: 64, wrong: 3, answers: 64}, requests(5, 6, 7), false},
		{"few are wrong", &icrcCount{seen: 64, whole: 64, wrong: 3}, &icrcCount{seen: 9}, false},
	} {
		s := icrcs{}
		for key, n := range map[[2]packet.Addr]*icrcCount{{a, b}: c.there, {b, a}: c.back} {
			if n != nil {
				s[key] = n
			}
		}
		if got := s.rewritten(a, b); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if n := len(s.verdicts(false)); c.name == "no answers" && n != 1 {
			t.Errorf("%s: %d verdicts", c.name, n)
		}
	}
}
