package dataplane_test

import (
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// TestLongHaulLimits: Long-haul CNPs of either format keep a flow's interval and the port's limit (draft-tian 5.5, 9), and what
// a limit holds back is counted.
func TestLongHaulLimits(t *testing.T) {
	for _, format := range []packet.Notification{packet.LongHaulCNP, packet.LongHaulCNPICMPv6} {
		for _, c := range []struct {
			name     string
			limit    func(*dataplane.Policy)
			notified int
			reason   string
		}{
			{"none", func(*dataplane.Policy) {}, 100, ""},
			{"a flow each 10 ms", func(p *dataplane.Policy) { p.Ports[wan].PerFlow = ratelimit.Interval(10 * ms) }, 10, "flow-limit"},
			{"50 a second out of the port", func(p *dataplane.Policy) { p.PerPort = perSecond(50) }, 5, "port-limit"},
		} {
			t.Run(format.String()+"/"+c.name, func(t *testing.T) {
				p := notifying(grant("fd00:18::/32", format))
				above(p)
				c.limit(p)
				s := newScene(t, p, nil)
				for range 100 { // one each millisecond
					s.arrive(data(true, 0).Frame())
					s.Advance(ms)
				}
				want := map[string]uint64{}
				if c.reason != "" {
					want[c.reason] = uint64(100 - c.notified)
				}
				s.wantSuppressed(want)
				if notes := s.finish(); len(notes) != c.notified || s.Count(fabric, counters.SentFirst+counters.Counter(format)) != uint64(c.notified) {
					t.Errorf("%d notifications, expected %d", len(notes), c.notified)
				}
			})
		}
	}
}
