package dataplane_test

import (
	"fmt"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// BenchmarkNotify is the time a packet of a worker with a congested queue, in which all of 12,000 flows have the same share: the flows of one
// sender, or of a sender each; and if the senders may be notified, or not. One sender must not cost more than many.
func BenchmarkNotify(b *testing.B) {
	const flows = 12_000
	for _, may := range []bool{true, false} {
		for _, senders := range []int{1, flows} {
			b.Run(fmt.Sprintf("permitted=%v/senders=%d", may, senders), func(b *testing.B) {
				p := notifying(byAnything...)
				above(p)
				if !may {
					p.Who = &congestion.Policy{}
				}
				var frames [][]byte
				for n := range flows {
					f := data(true, uint32(n))
					f.Src, f.Size = fmt.Sprintf("fd00:18::1:%x", n%senders), 90
					frames = append(frames, f.Frame())
				}
				r := testkit.New(b, testkit.Setup{Policy: p, Rate: 400e9, Flows: 1 << 14, Change: func(c *dataplane.Config) {
					c.Backends[0] = newTreadmill(frames, burst.MaxSize, true)
				}})
				w := r.Plane.Worker(0)
				for range 2 * flows / burst.MaxSize {
					w.Step()
				}
				for b.Loop() {
					w.Step()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*burst.MaxSize), "ns/packet")
			})
		}
	}
}
