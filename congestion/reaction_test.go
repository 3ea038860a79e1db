package congestion_test

import (
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/internal/splitmix"
)

// reacting is a sender in front of a fair rate of 1: its rate at a time (ms) since it was notified first.
type reacting struct {
	name         string
	rate         func(ms float64) float64
	brakes       bool // at any time in 500 ms
	unresponsive bool // the same
}

// TestReaction: a sender that ignores notifications is braked and then unresponsive, whatever its rates' noise. One that reacts within 39 ms, however little at a time, or oscillates, is
// never unresponsive.
func TestReaction(t *testing.T) {
	noise := splitmix.New(1, 1)
	noisy := func() float64 { return 0.8 + 0.4*noise.Float() } // of a few packets a window
	for _, c := range []reacting{
		{"ignores", func(float64) float64 { return 4 }, true, true},
		{"ignores, noisy", func(float64) float64 { return 4 * noisy() }, true, true},
		{"ignores, a little above F", func(float64) float64 { return 1.25 * noisy() }, true, true},
		{"goes on increasing", func(ms float64) float64 { return 2 + ms/100 }, true, true},
		{"reacts after 100 us", func(ms float64) float64 { return max(1, 4-30*max(ms-0.1, 0)) }, false, false},
		{"reacts after 39 ms by 30 %, recovers", func(ms float64) float64 {
			if at := int(ms) % 45; at >= 39 {
				return 2.8
			}
			return 4
		}, true, false},
		{"reacts by 1 % a ms", func(ms float64) float64 { return max(1, 4-ms/25) }, true, false},
		{"saw tooth", func(ms float64) float64 { return 2 - float64(int(ms*10)%100)/100 }, false, false},
	} {
		var r congestion.Reaction
		brakes, unresponsive := false, false
		for now := int64(0); now < 500_000_000; now += 20_000 {
			rate := c.rate(float64(now) / 1e6)
			if now%60_000 == 0 && rate > 1.02 && !r.Probes(now) {
				r.Notified(now+1, 7, rate, true, 0)
			}
			r.Ended(now, 7, rate, 1)
			brakes, unresponsive = brakes || r.Brakes(now), unresponsive || r.Unresponsive()
		}
		if brakes != c.brakes || unresponsive != c.unresponsive {
			t.Errorf("%s: brake %v, unresponsive %v; expected %v and %v", c.name, brakes, unresponsive, c.brakes, c.unresponsive)
		}
	}
}
