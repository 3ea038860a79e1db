package congestion_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

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
					l, bytes, _, _ := s.Arrives(at, 1000, &flows[i], fair)
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

// bursts are a sender's packets, that are polled now and then.
type bursts struct {
	congestion.LawShare
	began, fair, poll float64
	packets           int // of a burst
	size              uint32
}

// send sends a part of F for 2 ms, each burst up to so many of their periods late. It returns whether the sender was above F.
func (b *bursts) send(part, late float64, random *rand.Rand) (over bool) {
	var f congestion.LawFlow
	period := float64(b.packets) * float64(b.size) / b.fair / part
	for n := range int(2e6 / period) {
		at := b.began + (float64(n)+late*random.Float64())*period
		now := int64(math.Ceil(at/b.poll) * b.poll)
		for range b.packets {
			if _, _, window, ended := b.Arrives(now, b.size, &f, b.fair); ended {
				b.Judge(window, b.fair)
			}
			over = over || b.Over(b.fair)
		}
	}
	b.began += 2e6
	return over
}

// TestSureOfRate: whatever bursts a sender's packets come in, each of them up to as late as the next one, it never counts as above F if it sends 0.9 of it. One that sends 1.1 of it does within 2 ms, if
// its bursts are at most what F is in 80 us. The rate is exact if they come in equal times.
func TestSureOfRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, least, most float64) float64 {
			return least * math.Pow(most/least, rapid.Float64Range(0, 1).Draw(t, name))
		}
		b := bursts{began: 1e9, fair: draw("F", 0.05, 2), size: rapid.Uint32Range(256, 4096).Draw(t, "bytes of a packet"), poll: draw("ns between polls", 100, 5000)}
		b.packets = int(draw("packets of a burst", 1, max(80_000*b.fair/float64(b.size), 1)))
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		below := rapid.Float64Range(0.1, 0.9).Draw(t, "below")
		if b.send(below, rapid.Float64Range(0, 1).Draw(t, "late"), random) {
			t.Error("one below F counts as above it")
		}
		if b.send(below, 0, random); !b.send(1.1, 0, random) && float64(b.packets)*float64(b.size) <= 80_000*b.fair {
			t.Error("one above F doesn't count as above it")
		}
		if rate := b.Rate() / b.fair; math.Abs(rate-1.1) > 0.02+(b.poll+64)/20_000*1.5 {
			t.Errorf("its rate is %.3f of F", rate)
		}
	})
}
