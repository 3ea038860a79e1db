package workload

import (
	"math"

	"github.com/cnpgate/cnpgate/internal/virtual"
	"github.com/cnpgate/cnpgate/sim"
)

// Poisson makes flows that begin at random: a Poisson process at each host, with uniformly chosen receivers.
type Poisson struct {
	Hosts  int
	Sizes  Distribution
	Load   float64 // fraction of a host's rate that its flows use on average, without headers
	Rate   uint64  // of a host, bit/s
	Length int64   // ns in which flows begin
	Seed   uint64
}

// purposes of random numbers: a host has one.
const purposePoisson = 1 << 40

// gap is the mean time between two flows of a host, ns.
func (p *Poisson) gap() float64 {
	bytesPerNs := p.Load * float64(p.Rate) / 8e9
	return p.Sizes.Mean() / bytesPerNs
}

// Expected is the mean number of flows.
func (p *Poisson) Expected() float64 { return float64(p.Hosts) * float64(p.Length) / p.gap() }

// Flows makes the flows, in the order of their start.
func (p *Poisson) Flows() []sim.Flow {
	gap := p.gap()
	random := make([]virtual.Rand, p.Hosts)
	next := virtual.NewAgenda(p.Hosts)
	for h := range random {
		random[h] = virtual.NewRand(p.Seed, purposePoisson+uint64(h))
		next.Set(h, exponential(&random[h], gap))
	}
	var flows []sim.Flow
	for {
		h, at, _ := next.Next()
		if at >= p.Length {
			return flows
		}
		r := &random[h]
		to := int(r.Below(uint64(p.Hosts - 1)))
		if to >= h {
			to++
		}
		flows = append(flows, sim.Flow{From: h, To: to, Bytes: p.Sizes.Draw(r), Start: at})
		next.Set(h, at+exponential(r, gap))
	}
}

// exponential draws a time with the given mean, ns, at least 1.
func exponential(r *virtual.Rand, mean float64) int64 {
	return max(int64(-mean*math.Log(1-r.Float())), 1)
}
