package main

import (
	"math/rand/v2"
	"slices"
)

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
