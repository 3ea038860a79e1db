package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestIntervalOfKnown(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []float64
		want   interval
	}{
		{"one value", []float64{7}, interval{7, 7, 7}},
		{"equal values", []float64{3, 3, 3, 3}, interval{3, 3, 3}},
		{"two values: each resample is one of them or both", []float64{1, 2}, interval{1, 1.5, 2}},
		{"infinite ratios of a side that did nothing", []float64{math.Inf(1), math.Inf(1)}, interval{math.Inf(1), math.Inf(1), math.Inf(1)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := intervalOf(c.values)
			for _, x := range [][2]float64{{got.low, c.want.low}, {got.median, c.want.median}, {got.high, c.want.high}} {
				if x[0] != x[1] && !(math.IsInf(x[1], 1) && !(x[0] < math.MaxFloat64)) {
					t.Errorf("%+v, expected %+v", got, c.want)
				}
			}
		})
	}
	if w := intervalOf([]float64{0, 0}).width(); w <= 1 {
		t.Errorf("an interval around 0 has width %v", w)
	}
}

// TestMedianOfDrawn: it is the median of the sample written out.
func TestMedianOfDrawn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sorted := slices.Sorted(slices.Values(rapid.SliceOfN(rapid.Float64Range(-9, 9), 1, 12).Draw(t, "values")))
		drawn, sample := make([]int, len(sorted)), []float64(nil)
		for range sorted {
			i := rapid.IntRange(0, len(sorted)-1).Draw(t, "index")
			drawn[i]++
			sample = append(sample, sorted[i])
		}
		if got, want := medianOfDrawn(sorted, drawn), median(sample); math.Abs(got-want) > 1e-12 {
			t.Fatalf("%v of %v drawn %v times, expected %v", got, sorted, drawn, want)
		}
	})
}

// TestIntervalOrder: an interval holds its median, lies within the values, doesn't depend on their order and grows with their scale.
func TestIntervalOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0.01, 100), 1, 20).Draw(t, "values")
		got := intervalOf(values)
		if got.low > got.median || got.median > got.high || got.low < slices.Min(values) || got.high > slices.Max(values) {
			t.Fatalf("%+v of %v", got, values)
		}
		if again := intervalOf(rapid.Permutation(values).Draw(t, "permutation")); again != got {
			t.Fatalf("%+v in another order, %+v before", again, got)
		}
		if twice := intervalOf(mapped(values, func(v float64) float64 { return 2 * v })); math.Abs(twice.width()-got.width()) > 1e-9 {
			t.Fatalf("twice as large values have width %v, %v before", twice.width(), got.width())
		}
	})
}

// TestIntervalCoverage: on synthetic slices with a known median, some 95 % of the intervals hold it, whatever the distribution.
func TestIntervalCoverage(t *testing.T) {
	const trials, slices = 200, 64
	for _, c := range []struct {
		name   string
		median float64
		draw   func(*rand.Rand) float64
	}{
		{"normal", 0.9, func(r *rand.Rand) float64 { return 0.9 + 0.05*r.NormFloat64() }},
		{"skewed", math.Ln2, func(r *rand.Rand) float64 { return r.ExpFloat64() }},
		{"a tenth of the slices at half the ratio", 0, func(r *rand.Rand) float64 {
			if r.IntN(10) == 0 {
				return 0.45 + 0.02*r.NormFloat64()
			}
			return 0.9 + 0.02*r.NormFloat64()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(2, 3))
			want := c.median
			if want == 0 { // the median of a mixture: that of very many draws
				many := make([]float64, 200_001)
				for i := range many {
					many[i] = c.draw(rng)
				}
				want = median(many)
			}
			held := 0
			for range trials {
				values := make([]float64, slices)
				for i := range values {
					values[i] = c.draw(rng)
				}
				if got := intervalOf(values); got.low <= want && want <= got.high {
					held++
				}
			}
			if share := float64(held) / trials; share < 0.91 || share > 0.985 {
				t.Errorf("%.3f of the intervals hold the median, expected 0.95", share)
			}
		})
	}
}

// TestIntervalOutliers: slices that a neighbour spoilt move the interval hardly, and more slices make it narrower.
func TestIntervalOutliers(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 5))
	values := make([]float64, 256)
	for i := range values {
		values[i] = 1 + 0.03*rng.NormFloat64()
	}
	few, many := intervalOf(values[:16]), intervalOf(values)
	if many.width() > few.width()/2 || many.width() > 0.02 {
		t.Errorf("width %v of 256 values, %v of 16", many.width(), few.width())
	}
	spoilt := slices.Clone(values)
	for i := range spoilt[:25] {
		spoilt[i] *= 100
	}
	if got := intervalOf(spoilt); got.width() > 0.02 || math.Abs(got.median/many.median-1) > 0.01 {
		t.Errorf("with a tenth of outliers %+v, without %+v", got, many)
	}
}

func TestQuantile(t *testing.T) {
	v := []float64{4, 1, 3, 2}
	for q, want := range map[float64]float64{0: 1, 0.5: 2.5, 0.75: 3.25, 1: 4} {
		if got := quantile(v, q); got != want {
			t.Errorf("quantile %v is %v, expected %v", q, got, want)
		}
	}
	if quantile([]float64{7}, 0.25) != 7 {
		t.Error("one value is not its own quantile")
	}
}
