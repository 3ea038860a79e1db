package dataplane_test

import (
	"fmt"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// TestLawStorm: 64 million packets a second, each of a flow far above the fair rate, cause no more notifications than the default limits allow to a
// host and out of the port. Once the senders count as not reacting, each gets one a millisecond.
func TestLawStorm(t *testing.T) {
	const toHost, fromPort, flows = 1_000_000, 10_000_000, 1024
	for _, c := range []struct{ senders, perSecond int }{{1, toHost}, {64, fromPort}} {
		p := notifying(byAnything...)
		p.Ports[wan].Law = congestion.Law{Line: 0.001, Reference: 2000}
		p.PerDestination, p.PerPort = ratelimit.PerSecond(toHost), ratelimit.PerSecond(fromPort)
		s := testkit.New(t, testkit.Setup{Policy: p, Rate: 400e9, Burst: 64, Flows: 4096, Forget: true})
		var frames [][]byte
		for n := range flows {
			f := data(true, uint32(n))
			f.Src, f.Size = fmt.Sprintf("fd00:18::1:%x", n%c.senders), 90
			frames = append(frames, f.Frame())
		}
		sent := func() int { return int(s.Count(fabric, counters.SentFirst)) }
		next := 0
		run := func(us int) {
			for range us {
				for range 64 {
					s.Inject(t, fabric, frames[next%flows])
					next++
				}
				s.Plane.Worker(0).Step()
				s.Advance(1000)
			}
		}
		run(4000)
		if most := c.perSecond*4/1000 + int(ratelimit.Burst(uint64(c.perSecond))); sent() > most || sent() < min(most/3, 28_000) { // of several hosts at least twice what one may get
			t.Errorf("%d senders: %d notifications in 4 ms, expected at most %d, and not much less", c.senders, sent(), most)
		}
		run(16_000)
		braked := sent()
		run(4000)
		if n := sent() - braked; n < c.senders || n > 5*c.senders {
			t.Errorf("%d senders: %d notifications in 4 ms, expected one a millisecond to each", c.senders, n)
		}
		s.Drain()
		s.Close(t)
	}
}
