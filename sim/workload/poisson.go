// Package workload makes lists of flows: incasts, collectives, and Poisson arrivals with published flow sizes. It is pure; the same seed
// gives the same list.
package workload

import (
	"math"

	"github.com/cnpgate/cnpgate/internal/splitmix"
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
	random := make([]splitmix.Rand, p.Hosts)
	next := virtual.NewAgenda(p.Hosts)
	for h := range random {
		random[h] = splitmix.New(p.Seed, purposePoisson+uint64(h))
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
func exponential(r *splitmix.Rand, mean float64) int64 {
	return max(int64(-mean*math.Log(1-r.Float())), 1)
}

// Distribution is a distribution of flow sizes: points of its cumulative distribution function, linear in between.
type Distribution []Point

// Point is one point: this percentage of the flows has at most this many bytes.
type Point struct {
	Bytes   float64
	Percent float64
}

// Published distributions, with the figures of the HPCC simulator (traffic_gen in
// github.com/alibaba-edu/High-Precision-Congestion-Control).
var (
	// WebSearch is the web search cluster of the DCTCP paper (Alizadeh et al., SIGCOMM 2010, section 2.2), as the HPCC paper (SIGCOMM 2019,
	// section 5.1) uses it.
	WebSearch = Distribution{{0, 0}, {10_000, 15}, {20_000, 20}, {30_000, 30}, {50_000, 40}, {80_000, 53}, {200_000, 60}, {1_000_000, 70},
		{2_000_000, 80}, {5_000_000, 90}, {10_000_000, 97}, {30_000_000, 100}}
	// Hadoop is the Hadoop cluster of Facebook (Roy et al., SIGCOMM 2015), as the HPCC paper uses it.
	Hadoop = Distribution{{0, 0}, {100, 1}, {200, 2}, {300, 5}, {350, 15}, {400, 20}, {500, 30}, {600, 40}, {700, 50}, {1000, 60}, {2000, 67},
		{7000, 70}, {30_000, 72}, {50_000, 82}, {80_000, 87}, {120_000, 90}, {300_000, 95}, {1_000_000, 97.5}, {2_000_000, 99}, {10_000_000, 100}}
	// Storage is Alibaba's distributed storage of 2019 (AliStorage2019 of the HPCC simulator).
	Storage = Distribution{{0, 0}, {4000, 22.93}, {8000, 69.21}, {16_000, 80.61}, {32_000, 90.47}, {64_000, 93.53}, {128_000, 96.77},
		{256_000, 97.53}, {2_000_000, 100}}
)

// Mean is the mean size in bytes.
func (d Distribution) Mean() float64 {
	sum := 0.0
	for i, p := range d[1:] {
		sum += (p.Percent - d[i].Percent) * (p.Bytes + d[i].Bytes) / 2
	}
	return sum / 100
}

// Draw draws a size in bytes, at least 1.
func (d Distribution) Draw(r *splitmix.Rand) int64 {
	at := r.Float() * 100
	for i, p := range d[1:] {
		if before := d[i]; at < p.Percent {
			return max(int64(before.Bytes+(at-before.Percent)/(p.Percent-before.Percent)*(p.Bytes-before.Bytes)), 1)
		}
	}
	return int64(d[len(d)-1].Bytes)
}
