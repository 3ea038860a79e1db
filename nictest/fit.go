package nictest

import (
	"math"
	"slices"

	"github.com/cnpgate/cnpgate/endpoint"
)

// The parameters of DCQCN that a fit varies, on a logarithmic scale.
const (
	gain       = iota
	forgetting // time constant of alpha's decay, AlphaTimer / G: it determines the effect of CNPs far apart, the gain alone that of CNPs close together
	cutInterval
	rateTimer
	byteCounter
	additive
	hyper
	floor
	threshold5 // steps of fast recovery
	parameters
)

// candidate is a point of the search.
type candidate struct {
	v           [parameters]float64
	hold, atEnd bool
	err         float64
}

// noCounter is a byte counter that never ends.
const noCounter = 1e12

// bounds are those of the simulator's keys; rates are relative to the line rate. The least rate isn't below the lowest that came: what would come then isn't
// known.
func (m *model) bounds() (low, high [parameters]float64) {
	low = [parameters]float64{1e-5, 10_000, 1000, 2000, 10_000, m.line * 1e-6, m.line * 1e-6, m.lowest(), 1}
	high = [parameters]float64{1, 1e11, 1e8, 1e9, noCounter, m.line, m.line, m.line / 2, 50}
	return low, high
}

func (m *model) profile(c *candidate, delay, most int64) Profile {
	d := endpoint.DCQCNConfig{
		G: c.v[gain], AlphaTimer: max(100, int64(c.v[forgetting]*c.v[gain])), DecreaseInterval: int64(c.v[cutInterval]), RateTimer: int64(c.v[rateTimer]),
		ByteCounter: int64(c.v[byteCounter]), AdditiveIncrease: int64(c.v[additive]), HyperIncrease: int64(c.v[hyper]), MinRate: int64(c.v[floor]),
		FastRecovery: int(math.Round(c.v[threshold5])), HoldTarget: c.hold, AtPeriodEnd: c.atEnd,
	}
	if c.v[byteCounter] >= noCounter/2 {
		d.ByteCounter = -1
	}
	return Profile{StandardCNP: true, Delay: delay, DelayMax: most, DCQCN: d}
}

// choices are the values that the coarse search tries, as factors of a parameter's reference.
var choices = [parameters][]float64{
	gain:        {0.0005, 0.002, 0.004, 0.008, 0.03, 0.1},
	forgetting:  {50e3, 250e3, 2e6, 14e6, 100e6, 600e6, 3e9},
	cutInterval: {4e3, 50e3, 500e3, 4e6},
	rateTimer:   {10e3, 55e3, 300e3, 900e3, 5e6, 20e6, 75e6},
	byteCounter: {32e3, 300e3, 2e6, 10e6, noCounter},
	additive:    {0.0002, 0.001, 0.004, 0.02, 0.1, 0.5}, // of the line rate
	hyper:       {0.001, 0.004, 0.02, 0.1, 0.5},
	floor:       {0.00005, 0.001, 0.004, 0.02, 0.1},
	threshold5:  {1, 2, 3, 5, 8},
}

// search is a fit under way.
type search struct {
	m           *model
	delay, most int64
	low, high   [parameters]float64
}

// stages are the parameters that are searched together, and the trials that show them.
var stages = []struct {
	parameters []int
	flags      bool
	shows      func(t *TrialResult, seen int) bool
}{
	{[]int{cutInterval, rateTimer, byteCounter, threshold5, additive}, true, func(t *TrialResult, reduced int) bool { return t.Group == Single && reduced < 1 }},
	{[]int{gain, forgetting, cutInterval, byteCounter, additive}, true, func(t *TrialResult, _ int) bool { return t.Group != Flood }},
	{[]int{floor, additive, hyper, threshold5, rateTimer, byteCounter, gain, forgetting, cutInterval}, true, func(*TrialResult, int) bool { return true }},
}

// fit finds the profile that predicts the curves best. From each of several starts it searches parameter by parameter, in stages: first those of the
// recovery, by the first reduction alone. It refines the best of each kind of start.
func (m *model) fit(delay, most int64) (Profile, float64) {
	s := search{m: m, delay: delay, most: most}
	s.low, s.high = m.bounds()
	trials := m.trials
	best := candidate{err: math.MaxFloat64}
	for _, starts := range m.starts() {
		likely := candidate{err: math.MaxFloat64}
		for _, c := range starts {
			for _, stage := range stages {
				m.trials = nil
				reduced := 0
				for i := range trials {
					if stage.shows(&trials[i], reduced) {
						m.trials = append(m.trials, trials[i])
					}
					if trials[i].Response.Reduced {
						reduced++
					}
				}
				s.evaluate(&c, math.MaxFloat64)
				s.coarse(&c, stage.parameters, stage.flags)
				s.refine(&c, stage.parameters, []float64{2, 1.4, 1.15})
			}
			if c.err < likely.err {
				likely = c
			}
		}
		m.trials = trials
		s.coarse(&likely, stages[2].parameters, true)
		s.refine(&likely, stages[2].parameters, []float64{2, 1.5, 1.25, 1.1, 1.04, 1.015})
		if likely.err < best.err {
			best = likely
		}
	}
	return m.profile(&best, delay, most), best.err
}

func (s *search) evaluate(c *candidate, limit float64) {
	p := s.m.profile(c, s.delay, s.most)
	c.err = s.m.error(&p, limit)
}

// starts are where the search begins: recovery by time, then by bytes, within the time that the curves show.
func (m *model) starts() (all [2][]candidate) {
	half := m.halfRecovery()
	for i, byTime := range []bool{true, false} {
		for _, hold := range []bool{true, false} {
			c := candidate{hold: hold, atEnd: true}
			c.v = [parameters]float64{0.004, 14e6, 4e3, half, noCounter, m.line * 0.004, m.line * 0.02, m.lowest(), 3}
			if !byTime {
				c.v[rateTimer], c.v[byteCounter] = 20*half, max(10_000, m.line/bitsPerByte*half/second/2)
			}
			all[i] = append(all[i], c)
		}
	}
	return all
}

// lowest is the lowest rate that came. A sender that was slowed down to its least rate shows it.
func (m *model) lowest() float64 {
	least := m.line / 2
	for i := range m.trials {
		for _, p := range m.trials[i].Points {
			if p.Rate > 0 {
				least = min(least, p.Rate)
			}
		}
	}
	return max(1e3, least)
}

// halfRecovery is how long the sender takes to recover half of the cut after the first single notification that it obeyed visibly, ns.
func (m *model) halfRecovery() float64 {
	for i := range m.trials {
		t := &m.trials[i]
		if !t.Response.Reduced || t.Group != Single {
			continue
		}
		lowest := 0
		for j := range t.Points {
			if t.Points[j].Rate < t.Points[lowest].Rate {
				lowest = j
			}
		}
		half := (t.Response.Before + t.Points[lowest].Rate) / 2
		for j := lowest; j < len(t.Points); j++ {
			if t.Points[j].Rate > half {
				return max(5000, float64(t.Points[j].At-t.Points[lowest].At))
			}
		}
	}
	return 100_000
}

// coarse tries for each parameter all its choices, until nothing is better.
func (s *search) coarse(c *candidate, of []int, flags bool) {
	try := func(x candidate) bool {
		s.evaluate(&x, c.err)
		if x.err < c.err*0.995 {
			*c = x
			return true
		}
		return false
	}
	for range 3 {
		better := false
		for _, p := range of {
			for _, v := range choices[p] {
				x := *c
				if p == additive || p == hyper || p == floor {
					v *= s.m.line
				}
				if x.v[p] = min(s.high[p], max(s.low[p], v)); x.v[p] != c.v[p] {
					better = try(x) || better
				}
			}
		}
		if !flags {
			continue
		}
		x := *c
		x.hold = !x.hold
		better = try(x) || better
		x = *c
		x.atEnd = !x.atEnd
		better = try(x) || better
		if !better {
			return
		}
	}
}

// pairs are parameters whose effects resemble each other: they are also varied together, in the same and in opposite directions.
var pairs = [][2]int{{gain, forgetting}, {forgetting, cutInterval}, {gain, cutInterval}, {rateTimer, additive}, {byteCounter, additive}, {additive, hyper}, {rateTimer, byteCounter}, {floor, cutInterval}}

// refine multiplies and divides parameters, and pairs of them, by smaller and smaller factors while that is better. What was better is tried again
// further.
func (s *search) refine(c *candidate, of []int, factors []float64) {
	const rounds, repeats, enough = 8, 4, 0.97
	for _, factor := range factors {
		for range rounds {
			before := c.err
			for _, p := range of {
				s.move(c, repeats, map[int]float64{p: factor})
				s.move(c, repeats, map[int]float64{p: 1 / factor})
			}
			for _, pair := range pairs {
				if !slices.Contains(of, pair[0]) || !slices.Contains(of, pair[1]) {
					continue
				}
				for _, f := range [][2]float64{{factor, factor}, {factor, 1 / factor}, {1 / factor, factor}, {1 / factor, 1 / factor}} {
					s.move(c, repeats, map[int]float64{pair[0]: f[0], pair[1]: f[1]})
				}
			}
			if c.err > before*enough {
				break
			}
		}
	}
}

// move multiplies parameters by factors, as often as that is better. The steps of fast recovery change by one at least.
func (s *search) move(c *candidate, times int, by map[int]float64) {
	for range times {
		x := *c
		for p, f := range by {
			v := c.v[p] * f
			if p == threshold5 && math.Round(v) == math.Round(c.v[p]) {
				v = math.Round(c.v[p]) + math.Copysign(1, f-1)
			}
			x.v[p] = min(s.high[p], max(s.low[p], v))
		}
		if x.v == c.v {
			return
		}
		if s.evaluate(&x, c.err); x.err >= c.err {
			return
		}
		*c = x
	}
}
