package congestion_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/congestion"
)

// TestCNPsOnTheirWay: a gateway that doesn't know the loop's delay sends a flow as many CNPs as bring it to F by DCQCN, and no more for the time in which most have their
// effect. Then it knows the delay to within a window, however long that is, and however far the rate has fallen.
func TestCNPsOnTheirWay(t *testing.T) {
	for _, delay := range []int64{10_000, 60_000, 100_000, 200_000, 1_000_000} {
		l := congestion.NewLaw(100e9, 62_500_000, 0)
		var f congestion.LawFlow
		var s congestion.LawSender
		s.Begin()
		c := congestion.LawState{Law: &l, Drained: 1, Now: 1e9, Fair: 10 * gigabit, Depth: l.Reference, Space: 58_500_000}
		var cuts []int64 // when the sender gets CNPs
		rate, sent, learned := 100*gigabit, 0, int64(0)
		for c.Now < 1e9+1_500_000 {
			for len(cuts) > 0 && cuts[0] <= c.Now {
				rate, cuts = rate/2, cuts[1:]
			}
			if window, ended := f.Add(c.Now, 4096); ended {
				if s.Ended(&c, &f, 1, window) && learned == 0 {
					learned = int64(s.Delay)
				}
			}
			if f.Over(c.Fair) {
				s.Arrives(c.Now, 4096)
			}
			if f.Over(c.Fair) && f.CNP(at(&c, &f), &s) {
				f.SentCNP(&c, &s, 1)
				cuts = append(cuts, c.Now+delay)
				sent++
			}
			c.Now += int64(4096 / rate)
		}
		if most := int(8 * max(delay/200_000, 1)); sent < 3 || sent > most { // it expects that the sender comes back between them
			t.Errorf("%d CNPs were sent in a loop of %d us, from 100 to 10 Gbps by halves", sent, delay/1000)
		}
		if learned == 0 || learned < delay-20_000 || learned > delay+20_000 {
			t.Errorf("a delay of %d us was measured, it is %d", learned/1000, delay/1000)
		}
	}
}

// TestFirstCNPsAnyTime: the first CNPs of a flow are counted from the first one on, whatever the clock shows, which is near 0 where a simulation begins: once the loop's delay is
// known, by another sender, a flow gets no more while these are on their way.
func TestFirstCNPsAnyTime(t *testing.T) {
	for _, at := range []int64{1000, 1_000_000, 1 << 38, 1<<38 + 60_000, 1 << 50} {
		l := congestion.NewLaw(100e9, 62_500_000, 0)
		var f congestion.LawFlow
		var s congestion.LawSender
		s.Begin()
		c := congestion.LawState{Law: &l, Drained: 1, Now: at, Fair: 21 * gigabit, Depth: l.Reference, Space: 58_500_000}
		sent, before := 0, 0
		for c.Now < at+160_000 {
			f.Add(c.Now, 4096)
			if c.Now >= at+130_000 && before == 0 {
				before, c.Loop = sent, 150_000
			}
			if c.Rate = f.Rate(); f.Over(c.Fair) && f.CNP(&c, &s) {
				f.SentCNP(&c, &s, 1)
				sent++
			}
			c.Now += 328
		}
		if before < 2 || sent != before {
			t.Errorf("%d CNPs from %d on, from 100 to 21 Gbps by halves, and %d once the loop's delay was known", before, at, sent-before)
		}
	}
}

// TestFarAbove: a flow far above F, whose sender cuts its rate at each CNP, or once in 50 us, gets one CNP at a time: soon it is within twice F, and in the end not far below it.
func TestFarAbove(t *testing.T) {
	const loop, fair = 20_000, 3 * gigabit
	for _, nic := range []struct{ interval, within int64 }{{4_000, 300_000}, {50_000, 600_000}} {
		l := congestion.NewLaw(10e9, 62_500_000, 0)
		var f congestion.LawFlow
		var s congestion.LawSender
		s.Begin()
		s.Delay = loop
		c := congestion.LawState{Law: &l, Drained: 1, Now: 1e9, Fair: fair, Depth: l.Reference, Space: 58_500_000, Surplus: gigabit, Loop: loop}
		var cnps []int64 // when the sender gets them
		rate, cut, there := 400*gigabit, int64(0), int64(0)
		for c.Now < 1e9+1_500_000 {
			for len(cnps) > 0 && cnps[0] <= c.Now {
				if cnps[0] >= cut+nic.interval {
					rate, cut = rate/2, cnps[0]
				}
				cnps = cnps[1:]
			}
			if rate < 2*fair && there == 0 {
				there = c.Now - 1e9
			}
			if window, ended := f.Add(c.Now, 4096); ended {
				s.Ended(&c, &f, 1, window)
			}
			if f.Over(c.Fair) && f.CNP(at(&c, &f), &s) {
				f.SentCNP(&c, &s, 1)
				cnps = append(cnps, c.Now+loop)
			}
			c.Now += int64(4096 / rate)
		}
		if there == 0 || there > nic.within {
			t.Errorf("cuts each %d us: within twice F after %d us, want %d", nic.interval/1000, there/1000, nic.within/1000)
		}
		if rate < fair/4 {
			t.Errorf("cuts each %d us: in the end at %.2f of F, want 0.25 at least", nic.interval/1000, rate/fair)
		}
	}
}

// TestWeakCNPs: a NIC that halves its rate at a CNP, and makes up for that within microseconds, needs CNPs as close together. That is found out while the queue is far from full:
// the first small fall shows the loop's delay, and what the next CNPs do, how many are needed.
func TestWeakCNPs(t *testing.T) {
	const loop, line, fair, interval = 10_000, 25 * gigabit, 7 * gigabit, 4_000
	for _, recovery := range []float64{10_000, 20_000, 100_000} { // ns in which it makes up for all but 1/e
		l := congestion.NewLaw(200e9, 500_000_000, 0)
		var f congestion.LawFlow
		var s congestion.LawSender
		s.Begin()
		c := congestion.LawState{Law: &l, Drained: 1, Now: 1e9, Fair: fair, Depth: 2 * l.Reference, Space: 250_000_000, Surplus: gigabit}
		var cnps []int64 // when the sender gets them
		rate, cut, mean, there := line, int64(0), line, int64(0)
		for c.Now < 1e9+5_000_000 {
			elapsed := 4096 / rate
			c.Now += int64(elapsed)
			rate = line - (line-rate)*math.Exp(-elapsed/recovery)
			for len(cnps) > 0 && cnps[0] <= c.Now {
				if cnps[0] >= cut+interval {
					rate, cut = rate/2, cnps[0]
				}
				cnps = cnps[1:]
			}
			if window, ended := f.Add(c.Now, 4096); ended {
				s.Ended(&c, &f, 1, window)
			}
			if mean += (f.Rate() - mean) / 64; mean < 1.25*fair && there == 0 {
				there = c.Now - 1e9
			}
			if f.Over(c.Fair) && f.CNP(at(&c, &f), &s) {
				f.SentCNP(&c, &s, 1)
				cnps = append(cnps, c.Now+loop)
			}
		}
		if there == 0 || there > 3_000_000 {
			t.Errorf("recovery in %.0f us: near F after %d us, want 3000; in the end at %.2f of F", recovery/1000, there/1000, mean/fair)
		}
	}
}

// TestOverflow: a flow far above F gets as many CNPs as can matter while the queue has no space, however many are on their way; the less space there is, the more. A flow
// little above F gets no more than bring it there, one below F none.
func TestOverflow(t *testing.T) {
	const capacity, each, length = 62_500_000, 5_000, 1_000_000 // bytes, ns, ns
	for _, q := range []struct {
		name  string
		depth float64 // of the capacity
		rate  float64 // Gbps; F is 10
		least int
		most  int
		delay float32 // of the loop, ns; 0: not known
	}{
		{"full", 1, 100, length / each, length / each, 0},
		{"full, above F", 1, 13, 1, length / each / 10, 0},
		{"half full", 0.5, 100, 3, length / each / 10, 0},
		{"half full, little above F", 0.5, 11, 1, 8, 0},
		{"full, below F", 1, 9, 0, 0, 0},
		{"full, known delay", 1, 100, length / each, length / each, 50_000},
		{"full, above F, known delay", 1, 13, 1, length / each / 10, 50_000},
		{"half full, known delay", 0.5, 100, 8, length / each / 3, 50_000},
		{"nearly full, known delay", 0.99, 100, length / each / 8, length / each / 2, 50_000},
	} {
		l := congestion.NewLaw(100e9, capacity, 0)
		c := congestion.LawState{Law: &l, Drained: 1, Now: 1e9, Fair: 10 * gigabit, Depth: q.depth * capacity, Space: (1 - q.depth) * capacity, Surplus: gigabit}
		var f congestion.LawFlow
		var s congestion.LawSender
		s.Begin()
		s.Delay = q.delay
		for range 100 {
			f.Add(c.Now, 4096)
			c.Now += int64(4096 / (q.rate * gigabit))
		}
		sent := 0
		for range length / each {
			c.Now += each
			if f.Over(c.Fair) && f.CNP(at(&c, &f), &s) {
				f.SentCNP(&c, &s, 1)
				sent++
			}
		}
		if sent < q.least || sent > q.most {
			t.Errorf("%s: %d CNPs in 1 ms, want %d to %d", q.name, sent, q.least, q.most)
		}
	}
}

// TestEachAlphaTimer: where no CNP can be too many, one comes in each microsecond, the shortest alpha timer of a NIC, whatever the time between a flow's packets, up to that.
func TestEachAlphaTimer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const capacity = 62_500_000
		each := rapid.Int64Range(64, 980).Draw(t, "ns between packets")
		l := congestion.NewLaw(100e9, capacity, 0)
		c := congestion.LawState{Law: &l, Drained: 1, Now: rapid.Int64Range(1, 1<<50).Draw(t, "now"), Fair: gigabit, Depth: capacity}
		var f congestion.LawFlow
		var s congestion.LawSender
		s.Begin()
		if rapid.Bool().Draw(t, "CNPs seem to be weak") {
			c.Depth, c.Space, s.Spacing, s.Delay, s.Effect = capacity/4, capacity/4, 900, 10_000, 0.005
		}
		last := int64(0)
		for range 500 {
			c.Now += each
			f.Add(c.Now, 4096)
			if c.Rate = f.Rate(); !f.Over(c.Fair) || !f.CNP(&c, &s) {
				continue
			}
			if f.SentCNP(&c, &s, 1); last != 0 && c.Now-last > 1000 {
				t.Fatalf("a CNP came %d ns after the one before", c.Now-last)
			}
			last = c.Now
		}
		if c.Now-last > 1000 {
			t.Fatalf("no CNP came in the last %d ns", c.Now-last)
		}
	})
}
