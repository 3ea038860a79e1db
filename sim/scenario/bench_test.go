package scenario_test

import (
	"sync/atomic"
	"testing"

	"github.com/cnpgate/cnpgate/sim/scenario"
)

// BenchmarkDraw simulates drawn networks, as many at a time as there are cores, and reports how many packets are put on links in a second.
func BenchmarkDraw(b *testing.B) {
	const networks = 6
	var number, hops atomic.Uint64
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			d := scenario.Draw(scenario.Published, 5, number.Add(1)%networks)
			s, err := scenario.Parse(d.Name, d.Text, nil, nil)
			if err != nil {
				b.Error(err)
				return
			}
			o, err := s.Run(scenario.StandardCNP, nil)
			if err != nil {
				b.Error(err)
				return
			}
			hops.Add(o.Hops)
		}
	})
	b.ReportMetric(float64(hops.Load())/b.Elapsed().Seconds()/1e6, "Mhops/s")
}
