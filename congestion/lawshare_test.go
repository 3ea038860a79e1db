package congestion_test

import (
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
)

// TestLevels: of a sender above F, the flows' level is that of max-min between them; a sender with one flow has all of F, and so has one below F.
func TestLevels(t *testing.T) {
	const fair = 1.0 // bytes/ns
	for _, c := range []struct {
		rates []float64
		level float64
	}{
		{[]float64{3}, fair},
		{[]float64{2, 2}, fair / 2},
		{[]float64{2, 0.2}, 0.8},
		{[]float64{0.7, 0.7, 0.1, 0.1}, 0.4},
		{[]float64{0.3, 0.2}, fair},
		{slices.Repeat([]float64{0.1}, 64), fair / 64},
	} {
		var s congestion.LawShare
		flows, next := make([]congestion.LawFlow, len(c.rates)), make([]float64, len(c.rates))
		level, obeyed, n := 0.0, 0.0, 0
		for now := 0; now < 10_000_000; now += 100 {
			for i := range flows {
				for ; next[i] <= float64(now); next[i] += 1000 / c.rates[i] {
					at := 1e9 + int64(now)
					flows[i].Add(at, 1000)
					l, bytes, _ := s.Arrives(at, 1000, &flows[i], fair, false)
					if now > 5_000_000 {
						level, obeyed, n = level+l, obeyed+bytes, n+1
					}
				}
			}
		}
		level /= float64(n)
		if level < 0.93*c.level || level > 1.07*c.level {
			t.Errorf("flows with %v: the level is %.3f, expected %.3f", c.rates[:min(len(c.rates), 4)], level, c.level)
		}
		sum := 0.0
		for _, r := range c.rates {
			sum += r
		}
		if rate := obeyed / 5e6; rate < 0.95*min(sum, fair) || rate > 1.05*min(sum, fair) {
			t.Errorf("flows with %v: %.3f bytes/ns obey F", c.rates[:min(len(c.rates), 4)], rate)
		}
	}
}
