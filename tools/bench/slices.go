package main

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// moreSlices is how many times the first number of slices a comparison takes at most before it counts as noisy.
const moreSlices = 4

// slicesOf has each side's slices. Those of the same index ran shortly after one another and make pairs.
type slicesOf [][]*sample

// compare lets the sides run slices in turn, and doubles their number until no row is noisy or it has taken the most. fill sets the rows'
// figures from the slices so far.
func (b *bench) compare(rows []row, fill func(slicesOf), sides ...side) error {
	taken := make(slicesOf, len(sides))
	for n := b.runs; ; n *= 2 {
		if err := b.takeSlices(taken, n, sides); err != nil {
			return err
		}
		fill(taken)
		if !slices.ContainsFunc(rows, func(r row) bool { return r.noisy() }) || 2*n > moreSlices*b.runs {
			return nil
		}
	}
}

// compareOne compares the rates of two sides in one row.
func (b *bench) compareOne(r *row, ours, theirs side) error {
	one := []row{*r}
	err := b.compare(one, func(taken slicesOf) { one[0].fill(taken.millions(0), taken.millions(1), b.noise) }, ours, theirs)
	*r = one[0]
	return err
}

// takeSlices takes slices until there are n of each side. Each round has another order, so that no side always follows the same other one,
// and a machine that becomes slower or faster in a round favours none.
func (b *bench) takeSlices(taken slicesOf, n int, sides []side) error {
	rng := rand.New(rand.NewPCG(1, uint64(len(taken[0]))))
	for len(taken[0]) < n {
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
