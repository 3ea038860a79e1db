package congestion_test

import (
	"math"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
)

// TestGrowth: what CNPs promise counts in full at first, and no longer once the queue's growth must show it.
func TestGrowth(t *testing.T) {
	const promised, grows, step = 4.0, 3.0, 20_000 // bytes/ns, bytes/ns, ns
	for _, loop := range []int64{0, 10_000, 1_000_000} {
		seen := loop + 50_000
		if loop == 0 {
			seen = 200_000
		}
		g := congestion.Growth{}.Next(step, grows*step, loop)
		g.Promised += promised
		if got := g.Surplus(); math.Abs(got-(grows-promised)) > 1e-9 {
			t.Errorf("loop of %d us: a surplus of %g after the CNPs, want %g", loop/1000, got, grows-promised)
		}
		for at := int64(0); at < 5*seen; at += step {
			g = g.Next(step, grows*step, loop)
			if left := g.Promised / promised; at < seen/8 && step < seen/8 && left < 0.7 || at > 4*seen && left > 0.05 {
				t.Errorf("loop of %d us: %.0f %% of what was promised is still to come after %d us", loop/1000, 100*left, at/1000)
			}
		}
	}
	if got := (congestion.Growth{}).Next(step, -step, 0).Surplus(); got != -1 {
		t.Errorf("a queue that drains by 1 byte/ns has a surplus of %g", got)
	}
}
