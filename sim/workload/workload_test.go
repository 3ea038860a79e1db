package workload_test

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/splitmix"
	"github.com/cnpgate/cnpgate/sim"
	"github.com/cnpgate/cnpgate/sim/workload"
)

var distributions = map[string]struct {
	workload.Distribution
	mean float64 // by hand, from the points
}{
	"web search": {workload.WebSearch, 1_711_250},
	"hadoop":     {workload.Hadoop, 120_421},
	"storage":    {workload.Storage, 40_870},
}

// TestDistributions: drawn sizes have the mean and the percentiles of the points.
func TestDistributions(t *testing.T) {
	for name, d := range distributions {
		t.Run(name, func(t *testing.T) {
			if m := d.Mean(); math.Abs(m/d.mean-1) > 0.001 {
				t.Errorf("the mean is %.0f, want %.0f", m, d.mean)
			}
			r := splitmix.New(1, 1)
			const n = 200_000
			sizes, sum := make([]float64, n), 0.0
			for i := range sizes {
				sizes[i] = float64(d.Draw(&r))
				sum += sizes[i]
			}
			if m := sum / n; math.Abs(m/d.mean-1) > 0.03 {
				t.Errorf("the mean of what is drawn is %.0f, want %.0f", m, d.mean)
			}
			slices.Sort(sizes)
			for _, p := range d.Distribution[1:] {
				below, _ := slices.BinarySearch(sizes, p.Bytes+0.5)
				if got := 100 * float64(below) / n; math.Abs(got-p.Percent) > 0.5 {
					t.Errorf("%.2f %% are at most %v bytes, want %v", got, p.Bytes, p.Percent)
				}
			}
		})
	}
}

// TestPoisson: the load, the order and the destinations are right, and gaps between flows are as different as those of a Poisson process.
func TestPoisson(t *testing.T) {
	p := workload.Poisson{Hosts: 8, Sizes: workload.Storage, Load: 0.5, Rate: 10e9, Length: 1e9, Seed: 3}
	flows := p.Flows()
	if !reflect.DeepEqual(flows, p.Flows()) {
		t.Error("the same seed gave other flows")
	}
	bytes, to := int64(0), map[int]int{}
	var gaps []float64
	last := int64(0)
	for i, f := range flows {
		if f.From == f.To || f.Start < 0 || f.Start >= p.Length || i > 0 && f.Start < flows[i-1].Start {
			t.Fatalf("flow %d is %+v", i, f)
		}
		bytes += f.Bytes
		to[f.To]++
		if f.From == 0 {
			gaps = append(gaps, float64(f.Start-last))
			last = f.Start
		}
	}
	if load := float64(bytes) / (8 * 10e9 / 8); math.Abs(load-0.5) > 0.01 {
		t.Errorf("the load is %.3f, want 0.5", load)
	}
	for h := range 8 {
		if part := float64(to[h]) / float64(len(flows)); math.Abs(part-0.125) > 0.01 {
			t.Errorf("%.3f of the flows go to host %d, want an eighth", part, h)
		}
	}
	sum, squares := 0.0, 0.0
	for _, g := range gaps {
		sum += g
		squares += g * g
	}
	n := float64(len(gaps))
	if variation := math.Sqrt(squares/n-sum/n*sum/n) / (sum / n); math.Abs(variation-1) > 0.05 {
		t.Errorf("the gaps' coefficient of variation is %.3f, want 1", variation)
	}
}

// TestCollectives: if flows run in the order of their dependencies, every rank ends with everything that it needs.
func TestCollectives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 40).Draw(t, "ranks")
		ranks := make([]int, n)
		for i := range ranks {
			ranks[i] = 100 + i
		}
		const bytes = 1 << 20
		ring := workload.Ring(ranks, bytes)
		if len(ring) != 2*n*(n-1) || ring[0].Bytes != bytes/int64(n) {
			t.Fatalf("a ring of %d has %d flows of %d bytes", n, len(ring), ring[0].Bytes)
		}
		checkOrder(t, ring, ranks)
		tree := workload.Tree(ranks, bytes)
		if len(tree) != 2*(n-1) {
			t.Fatalf("a tree of %d has %d flows", n, len(tree))
		}
		checkOrder(t, tree, ranks)
		if all := workload.AllToAll(ranks, bytes); len(all) != n*(n-1) {
			t.Fatalf("an exchange of %d has %d flows", n, len(all))
		}
	})
}

// checkOrder follows which ranks' data each rank has a sum of: a flow takes along what its sender had when the flows it waits for had ended. A
// ring moves parts, of which the first is followed: rank 0 begins with it.
func checkOrder(t *rapid.T, flows []sim.Flow, ranks []int) {
	has := make([]map[int]bool, len(ranks))
	for i := range has {
		has[i] = map[int]bool{i: true}
	}
	for i, f := range flows {
		from, to := f.From-ranks[0], f.To-ranks[0]
		for _, after := range f.After {
			if after > i {
				t.Fatalf("flow %d waits for a later one", i)
			}
			if before := after - 1; after > 0 && flows[before].To != f.From && flows[before].From != f.From {
				t.Fatalf("flow %d, from %d, waits for one between others: %+v", i, f.From, flows[before])
			}
		}
		for rank := range has[from] {
			has[to][rank] = true
		}
	}
	for i := range has {
		if len(has[i]) != len(ranks) {
			t.Fatalf("rank %d ends with the data of %d of %d ranks", i, len(has[i]), len(ranks))
		}
	}
}

func TestIncast(t *testing.T) {
	flows := workload.Incast([]int{3, 1}, 2, 77, 1000, 9)
	if len(flows) != 2 || flows[0].From != 3 || flows[1].From != 1 {
		t.Fatalf("%+v", flows)
	}
	for _, f := range flows {
		if f.To != 2 || f.Bytes != 77 || f.Start < 0 || f.Start > 1000 {
			t.Errorf("%+v", f)
		}
	}
	if flows := workload.Incast([]int{0, 1}, 2, 1, 0, 9); flows[0].Start != 0 || flows[1].Start != 0 {
		t.Errorf("without a spread they start at %d and %d", flows[0].Start, flows[1].Start)
	}
}
