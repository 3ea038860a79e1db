package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// row is one line of the result. Value and PeerValue are medians of slices. Ratio says how cnpgate compares, above 1 is better than the
// peer: it is the median of the slice pairs' ratios, Value/PeerValue or its inverse where less is better, and lies between RatioLow and
// RatioHigh with a confidence of 95 %. A row that could not be measured has an Error and no figure.
type row struct {
	Name      string   `json:"name"`
	What      string   `json:"what"`
	Value     *float64 `json:"value"`
	Unit      string   `json:"unit"`
	Peer      string   `json:"peer"`
	PeerValue *float64 `json:"peer_value"`
	Ratio     *float64 `json:"ratio"`
	RatioLow  *float64 `json:"ratio_low"`
	RatioHigh *float64 `json:"ratio_high"`
	Runs      int      `json:"runs"`             // slice pairs
	Spread    *float64 `json:"spread,omitempty"` // width of the interval as a share of the ratio
	Noisy     bool     `json:"noisy,omitempty"`  // the interval stayed too wide
	Wanted    float64  `json:"wanted,omitempty"` // least ratio
	Error     string   `json:"error,omitempty"`

	less bool // is better
}

// result is the output of scripts/bench --json.
type result struct {
	Rows    []row   `json:"rows"`
	Machine machine `json:"machine"`
}

// fill sets a row's figures from the values of slice pairs, or the reason for none. noise is the greatest share of the ratio that its
// interval may be wide.
func (r *row) fill(values, peers []float64, noise float64) {
	r.clear()
	r.Runs = len(values)
	if len(values) == 0 || len(values) != len(peers) {
		r.Error = fmt.Sprintf("failed: %d slices against %d of the peer", len(values), len(peers))
		return
	}
	ratios := make([]float64, len(values))
	for i := range values {
		ratios[i] = r.compare(values[i], peers[i])
	}
	ratio := intervalOf(ratios)
	width := ratio.width()
	if math.IsNaN(width) || math.IsInf(width, 0) {
		r.Error = fmt.Sprintf("failed: the median of %d slices' ratios is %v", len(values), ratio.median)
		return
	}
	r.RatioLow, r.RatioHigh, r.Spread, r.Noisy = number3(ratio.low), number3(ratio.high), number3(width), width > noise
	r.Value, r.PeerValue, r.Ratio = number3(median(values)), number3(median(peers)), number3(ratio.median)
}

// clear removes all figures.
func (r *row) clear() {
	r.Value, r.PeerValue, r.Ratio, r.RatioLow, r.RatioHigh, r.Spread, r.Runs, r.Noisy, r.Error = nil, nil, nil, nil, nil, nil, 0, false, ""
}

func (r *row) compare(value, peer float64) float64 {
	if r.less {
		return peer / value
	}
	return value / peer
}

// number3 rounds to four digits.
func number3(v float64) *float64 {
	if v != 0 && !math.IsNaN(v) && !math.IsInf(v, 0) {
		scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(v))))
		v = math.Round(v*scale) / scale
	}
	return &v
}

// verdict returns whether the row meets its goal.
func (r *row) verdict() string {
	switch {
	case r.Error != "":
		return "no figure"
	case r.Wanted == 0:
		return ""
	case *r.Ratio >= r.Wanted:
		return "met"
	}
	return "missed"
}

// interval is a median with the bounds that hold it with a confidence of 95 %.
type interval struct{ low, median, high float64 }

const (
	confidence = 0.95
	resamples  = 2000
)

// intervalOf estimates the median of the distribution that the values were drawn from, with a percentile bootstrap: it draws as many values
// with replacement, again and again, and takes the quantiles of those samples' medians. The same values always give the same interval.
func intervalOf(values []float64) interval {
	sorted := slices.Sorted(slices.Values(values))
	rng := rand.New(rand.NewPCG(1, uint64(len(sorted))))
	drawn, medians := make([]int, len(sorted)), make([]float64, resamples)
	for i := range medians {
		clear(drawn)
		for range drawn {
			drawn[rng.IntN(len(drawn))]++
		}
		medians[i] = medianOfDrawn(sorted, drawn)
	}
	slices.Sort(medians)
	const tail = (1 - confidence) / 2
	return interval{sortedQuantile(medians, tail), sortedQuantile(sorted, 0.5), sortedQuantile(medians, 1-tail)}
}

// medianOfDrawn is the median of a sample that has each of the sorted values as often as it was drawn, as many in all as there are values.
func medianOfDrawn(sorted []float64, drawn []int) float64 {
	at, upTo := 0, drawn[0]
	find := func(rank int) float64 {
		for upTo <= rank {
			at++
			upTo += drawn[at]
		}
		return sorted[at]
	}
	n := len(sorted)
	low := find((n - 1) / 2)
	return (low + find(n/2)) / 2
}

// width is that of the interval as a share of the median; NaN or infinite if the median is 0.
func (i interval) width() float64 { return (i.high - i.low) / i.median }

func median(v []float64) float64 { return quantile(v, 0.5) }

func quantile(v []float64, q float64) float64 {
	return sortedQuantile(slices.Sorted(slices.Values(v)), q)
}

// sortedQuantile interpolates between the values next to it.
func sortedQuantile(s []float64, q float64) float64 {
	at := q * float64(len(s)-1)
	low := int(at)
	high := min(low+1, len(s)-1)
	return s[low] + (s[high]-s[low])*(at-float64(low))
}

// leastSlices are those of each side that a row has however late it is: an interval of fewer means nothing.
const leastSlices = 6

// moreSlices is how many times the usual number of slices a comparison takes at most before it counts as noisy.
const moreSlices = 4

// slicesOf has each side's slices. Those of the same index ran shortly after one another and make pairs.
type slicesOf [][]*sample

// compare lets the sides, which have just started, run slices in turn, and adds these to those of earlier starts. fill sets the rows' figures from
// all of them.
func (b *bench) compare(rows []row, fill func(slicesOf), sides ...side) error {
	taken := b.taken[rows[0].Name]
	if taken == nil {
		taken = make(slicesOf, len(sides))
		b.taken[rows[0].Name] = taken
	}
	if err := b.takeSlices(taken, len(taken[0])+b.aStart, sides); err != nil {
		return err
	}
	fill(taken)
	return nil
}

// compareOne compares the rates of two sides in one row.
func (b *bench) compareOne(r *row, ours, theirs side) error {
	one := []row{*r}
	err := b.compare(one, func(taken slicesOf) { one[0].fill(taken.millions(0), taken.millions(1), b.noise) }, ours, theirs)
	*r = one[0]
	return err
}

// takeSlices takes slices until there are n of each side, or the group's time is over and there are a few. Each round has another order, so that no side always follows the same other one,
// and a machine that becomes slower or faster in a round favours none.
func (b *bench) takeSlices(taken slicesOf, n int, sides []side) error {
	rng := rand.New(rand.NewPCG(1, uint64(len(taken[0]))))
	for len(taken[0]) < n && (len(taken[0]) < leastSlices || !b.late()) {
		for _, i := range rng.Perm(len(sides)) {
			s, err := sides[i].run(b.time)
			if err != nil {
				return err
			}
			taken[i] = append(taken[i], s)
		}
		if b.verbose {
			taken.printLast()
		}
	}
	return nil
}

func (taken slicesOf) printLast() {
	last := len(taken[0]) - 1
	var all []string
	for _, side := range taken {
		all = append(all, figure(side[last].rate()))
	}
	progress("slice %d: %s", last+1, strings.Join(all, " "))
}

// millions has a side's rates in millions a second.
func (taken slicesOf) millions(side int) []float64 {
	return mapped(taken[side], func(s *sample) float64 { return s.rate() / 1e6 })
}

// nanoseconds has a side's time of an operation.
func (taken slicesOf) nanoseconds(side int) []float64 {
	return mapped(taken[side], func(s *sample) float64 { return 1e9 / s.rate() })
}

// extra has another value of a side's samples.
func (taken slicesOf) extra(side int, name string) []float64 {
	return mapped(taken[side], func(s *sample) float64 { return s.Extra[name] })
}

// always has the same value for each slice.
func (taken slicesOf) always(v float64) []float64 {
	return mapped(taken[0], func(*sample) float64 { return v })
}

func mapped[T any](values []T, f func(T) float64) []float64 {
	out := make([]float64, len(values))
	for i := range values {
		out[i] = f(values[i])
	}
	return out
}
