package scenario_test

import (
	"sync/atomic"
	"testing"

	"github.com/cnpgate/cnpgate/sim/scenario"
)

// BenchmarkHops: a drawn network with standard CNPs, on all cores.
func BenchmarkHops(b *testing.B) {
	s := parse(b, string(scenario.Draw(scenario.Published, 3, 13).Text))
	var hops atomic.Uint64
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			o, err := s.Run(scenario.StandardCNP, nil)
			if err != nil {
				b.Error(err)
				return
			}
			hops.Add(o.Hops)
		}
	})
	b.ReportMetric(float64(hops.Load())/1e6/b.Elapsed().Seconds(), "Mhops/s")
}
