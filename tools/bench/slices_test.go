package main

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// scripted is a side whose slices have given rates: the last one for ever, or until it fails.
type scripted struct {
	rate  func(n int) float64
	end   int // slices until it fails, 0 for never
	n     int
	order *[]int
	me    int
}

var errScript = errors.New("the script is over")

func (s *scripted) run(time.Duration) (*sample, error) {
	if s.end > 0 && s.n == s.end {
		return nil, errScript
	}
	if s.order != nil {
		*s.order = append(*s.order, s.me)
	}
	s.n++
	return &sample{Rate: s.rate(s.n - 1)}, nil
}

func constantly(rate float64) func(int) float64 { return func(int) float64 { return rate } }

// TestTakeSlices: each side runs once in every round, in another order each time, and its slices stay its own.
func TestTakeSlices(t *testing.T) {
	const rounds = 64
	var order []int
	var sides []side
	for me := range 3 {
		sides = append(sides, &scripted{rate: func(n int) float64 { return float64(1000*me + n) }, order: &order, me: me})
	}
	b, taken := bench{}, make(slicesOf, len(sides))
	for _, n := range []int{rounds / 2, rounds} { // the second call continues
		if err := b.takeSlices(taken, n, sides); err != nil {
			t.Fatal(err)
		}
	}
	follows := map[[2]int]int{}
	for round := range slices.Chunk(order, len(sides)) {
		if sorted := slices.Sorted(slices.Values(round)); !slices.Equal(sorted, []int{0, 1, 2}) {
			t.Fatalf("a round is %v", round)
		}
		follows[[2]int{round[0], round[1]}]++
	}
	if len(follows) != 6 {
		t.Errorf("not every side follows every other one: %v", follows)
	}
	for me, side := range taken {
		for n, s := range side {
			if s.Rate != float64(1000*me+n) {
				t.Fatalf("slice %d of side %d is %v", n, me, s.Rate)
			}
		}
		if len(side) != rounds {
			t.Errorf("%d slices of side %d", len(side), me)
		}
	}
}

// TestCompare: a comparison ends when every row's interval is narrow, or else with the most slices, from as many starts of the programs.
func TestCompare(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 7))
	for _, c := range []struct {
		name   string
		rate   func(int) float64
		once   bool
		runs   int
		starts int
		noisy  bool
	}{
		{"calm", constantly(9), false, 16, 4, false},
		{"calm, slow to start", constantly(9), true, 16, 1, false},
		{"the first slices are spoilt", func(n int) float64 {
			if n < 10 {
				return 9 - float64(n)/2
			}
			return 9
		}, false, 32, 8, false},
		{"noisy for ever", func(int) float64 { return 9 * (0.5 + rng.Float64()) }, false, 64, 16, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, starts := bench{runs: 16, noise: 0.05}, 0
			ours, theirs := &scripted{rate: c.rate}, &scripted{rate: constantly(10)}
			rows := []row{{Name: "a"}}
			for range 2 { // the second time, none of the first one's slices count
				ours.n, starts = 0, 0
				if err := b.measureGroup(&group{once: c.once, measure: func(b *bench, rows []row) error {
					starts++
					return b.compareOne(&rows[0], ours, theirs)
				}}, rows); err != nil {
					t.Fatal(err)
				}
			}
			if starts != c.starts {
				t.Errorf("the programs started %d times, want %d", starts, c.starts)
			}
			r := &rows[0]
			if r.Runs != c.runs || r.Noisy != c.noisy {
				t.Errorf("%d slices, error %q", r.Runs, r.Error)
			}
			if !c.noisy && *r.Ratio != *number3(9e-6 / 10e-6) {
				t.Errorf("the ratio is %v", *r.Ratio)
			}
		})
	}
	b := bench{aStart: 16, noise: 0.05, taken: map[string]slicesOf{}}
	if err := b.compareOne(&row{}, &scripted{rate: constantly(1), end: 3}, &scripted{rate: constantly(1)}); !errors.Is(err, errScript) {
		t.Errorf("a slice that fails: %v", err)
	}
}

// TestSlowNeighbour: a machine that neighbours slow to half its speed for many slices at a time has the same ratio as a calm one.
func TestSlowNeighbour(t *testing.T) {
	speed := func(n int) float64 {
		if n/20%2 == 1 {
			return 0.5
		}
		return 1
	}
	rng := rand.New(rand.NewPCG(8, 9))
	noise := func() float64 { return 1 + 0.02*rng.NormFloat64() }
	b := bench{aStart: 64, noise: 0.05, taken: map[string]slicesOf{}}
	var r row
	err := b.compareOne(&r, &scripted{rate: func(n int) float64 { return 12e6 * speed(n) * noise() }},
		&scripted{rate: func(n int) float64 { return 15e6 * speed(n) * noise() }})
	if err != nil || r.Error != "" || *r.Ratio < 0.79 || *r.Ratio > 0.81 || r.Runs != 64 {
		t.Errorf("%v, %s", err, r.line())
	}
}

// TestSliceValues: what rows take from samples.
func TestSliceValues(t *testing.T) {
	taken := slicesOf{{{Rate: 2e6, Extra: map[string]float64{"p99": 3}}, {Ops: 4, CPU: 1000}}}
	for what, c := range map[string][2][]float64{
		"millions": {taken.millions(0), {2, 4}}, "nanoseconds": {taken.nanoseconds(0), {500, 250}}, "extra": {taken.extra(0, "p99"), {3, 0}},
		"always": {taken.always(8), {8, 8}},
	} {
		if !slices.Equal(c[0], c[1]) {
			t.Errorf("%s: %v, expected %v", what, c[0], c[1])
		}
	}
}

// TestTogether: sides that run at the same time count as one with the sum of their rates; if one fails, so do all.
func TestTogether(t *testing.T) {
	sides := together{&scripted{rate: constantly(3)}, &scripted{rate: constantly(4), end: 1}}
	if s, err := sides.run(time.Millisecond); err != nil || s.rate() != 7 {
		t.Errorf("%+v, %v, want a rate of 7", s, err)
	}
	if _, err := sides.run(time.Millisecond); !errors.Is(err, errScript) {
		t.Errorf("%v, want %v", err, errScript)
	}
}
