package congestion_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/congestion"
)

const gigabit = 0.125 // bytes per ns

// filled is F after many updates at a queue of its reference depth, for flows at these rates that don't react.
func filled(l *congestion.Law, rates []float64, depth float64) float64 {
	const elapsed = 20_000
	fair := l.Line
	for range 400 {
		in := congestion.Inflow{Elapsed: elapsed}
		for _, r := range rates {
			in.Obeyed += elapsed * min(r, fair)
			in.Largest = max(in.Largest, r)
		}
		fair = l.Next(fair, in, depth, 0)
	}
	return fair
}

// TestWaterFilling: at its fixed point, F is the level at which the flows, cut to it, fill the line: for any number of flows and any rates.
func TestWaterFilling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.Uint64Range(1e9, 400e9).Draw(t, "line")
		l := congestion.NewLaw(line, 256_000_000, 0)
		n := rapid.IntRange(1, 64).Draw(t, "flows")
		rates, sum, largest := make([]float64, n), 0.0, 0.0
		for i := range rates {
			rates[i] = l.Line * rapid.Float64Range(0.001, 4).Draw(t, "rate")
			sum, largest = sum+rates[i], max(largest, rates[i])
		}
		fair := filled(&l, rates, l.Reference)
		obeyed := 0.0
		for _, r := range rates {
			obeyed += min(r, fair)
		}
		want := min(sum, l.Line)
		if sum > 1.05*l.Line && math.Abs(obeyed-want) > want/50 {
			t.Fatalf("%d flows at F bring %v, want %v", n, obeyed, want)
		}
		if fair > l.Line || fair > largest*1.0001 || fair <= 0 {
			t.Fatalf("F is %v of a line of %v, and the largest flow has %v", fair, l.Line, largest)
		}
		if deeper := filled(&l, rates, 3*l.Reference); deeper > fair*1.001 {
			t.Fatalf("F is %v at a longer queue, and %v at the reference", deeper, fair)
		}
	})
}

// TestTooSlow: of senders that are all slower than an equal share of the line, each gets that once they come back, at once, whatever one of them had before.
func TestTooSlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := congestion.NewLaw(rapid.Uint64Range(1e9, 400e9).Draw(t, "line"), 256_000_000, 0)
		n := rapid.Float64Range(1, 64).Draw(t, "senders")
		slow := l.Line / n * rapid.Float64Range(0.001, 0.9).Draw(t, "of the equal share")
		in := congestion.Inflow{Elapsed: 20_000, Obeyed: 20_000 * n * slow, Largest: slow, Senders: n}
		fair := l.Line * rapid.Float64Range(0.01, 1).Draw(t, "F")
		for range 400 {
			fair = l.Next(fair, in, l.Reference, 0)
		}
		if math.Abs(fair*n/l.Line-1) > 0.001 {
			t.Fatalf("F is %v, an equal share of the line %v", fair, l.Line/n)
		}
		if in.Senders = 0; l.Next(fair, in, l.Reference, 0) > slow {
			t.Fatal("F is above the fastest of senders whose number isn't known")
		}
	})
}

// at is a decision about a flow.
func at(c *congestion.LawState, f *congestion.LawFlow) *congestion.LawState {
	c.Rate = f.Rate()
	return c
}

// TestNothingBelowF: a flow at or below F is never asked for anything, whatever was learned of its sender.
func TestNothingBelowF(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f congestion.LawFlow
		rate := rapid.Float64Range(0.1, 100).Draw(t, "rate") * gigabit
		now := rapid.Int64Range(1, 1<<50).Draw(t, "now")
		for range 200 {
			f.Add(now, 4096)
			now += int64(4096 / rate)
		}
		if measured := f.Rate(); math.Abs(measured-rate) > rate/20+gigabit/100 {
			t.Fatalf("measured %v, sent %v", measured, rate)
		}
		fair := f.Rate() * rapid.Float64Range(1, 10).Draw(t, "F")
		if f.Over(fair) {
			t.Fatalf("a flow at %v is above F %v", f.Rate(), fair)
		}
		if s := f.Share(now, fair); s != 1 {
			t.Fatalf("its share is %v", s)
		}
	})
}

// TestConvergence: with senders that obey a requested rate after the loop's delay, a queue returns to its reference and the flows get equal rates, without
// oscillation, for any number of flows and loops of up to 300 us.
func TestConvergence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const step = 20_000 // ns
		l := congestion.NewLaw(100e9, 62_500_000, 0)
		n := rapid.IntRange(2, 64).Draw(t, "flows")
		delay := rapid.Int64Range(1, 15).Draw(t, "delay") // steps
		rates := make([]float64, n)
		for i := range rates {
			rates[i] = 100 * gigabit * rapid.Float64Range(0.2, 1).Draw(t, "rate") * 8 / float64(n)
		}
		fair, depth := l.Line, 0.0
		var history []float64 // F
		lowest, highest := math.Inf(1), 0.0
		for i := range 4000 {
			in := congestion.Inflow{Elapsed: step, Resumes: true}
			arrived := 0.0
			for k := range rates {
				if len(history) > int(delay) { // they obey the F of a loop ago
					rates[k] = min(history[len(history)-1-int(delay)], 100*gigabit)
				}
				arrived += step * rates[k]
				in.Obeyed += step * min(rates[k], fair)
				in.Largest = max(in.Largest, rates[k])
			}
			depth = max(0, depth+arrived-step*l.Line)
			fair = l.Next(fair, in, depth, delay*step)
			history = append(history, fair)
			if i > 3000 {
				lowest, highest = min(lowest, depth), max(highest, depth)
			}
		}
		if highest-lowest > l.Reference || highest > 2*l.Reference || lowest == 0 {
			t.Fatalf("%d flows, delay of %d us: the queue is between %.0f and %.0f, and its reference %.0f", n, delay*step/1000, lowest, highest, l.Reference)
		}
	})
}

// TestRates: a sender's mirrored limit follows what it was asked for; until that can have had an effect it isn't asked again, and a Resume brings it back to F.
func TestRates(t *testing.T) {
	l := congestion.NewLaw(100e9, 62_500_000, 0)
	var f congestion.LawFlow
	s := congestion.LawSender{Delay: 10_000}
	now := int64(1e9)
	for range 100 {
		f.Add(now, 4096)
		now += 327 // 100 Gbps
	}
	c := congestion.LawState{Law: &l, Drained: 1, Now: now, Fair: 25 * gigabit, Depth: l.Reference, Space: 58_500_000}
	percent := f.Reduce(at(&c, &f), &s, 0)
	if percent < 74 || percent > 75 {
		t.Fatalf("from 100 to 25 Gbps by %d percent", percent)
	}
	f.Reduced(at(&c, &f), &s, 1, percent)
	if again := f.Reduce(at(&c, &f), &s, 0); again != 0 {
		t.Errorf("asked again at once, by %d percent", again)
	}
	for range 60 {
		f.Add(c.Now, 4096)
		c.Now += 1310 // 25 Gbps
	}
	c.Fair = 50 * gigabit
	if !f.Limited(c.Fair) {
		t.Fatal("a limit of 25 Gbps is below an F of 50")
	}
	up, again, ok := f.ResumeRate(&c, &s)
	if !ok || again != 0 || up < 32 || up > 34 {
		t.Fatalf("to 50 Gbps by %d percent of 75 Gbps, %d, %v", up, again, ok)
	}
	f.Resumed(&c, &s, up, again)
	if f.Limited(49 * gigabit) {
		t.Error("the limit is still below 49 Gbps")
	}
}

// TestSlowRates: a flow whose rate can't be measured is asked for the part by which all such flows of its sender exceed F, at most half, and gets all of it back. A sender's first
// ones aren't asked: they may have a rate soon.
func TestSlowRates(t *testing.T) {
	l := congestion.NewLaw(1e9, 4_000_000, 0)
	var f congestion.LawFlow
	s := congestion.LawSender{Delay: 10_000}
	c := congestion.LawState{Law: &l, Drained: 1, Now: 1e9, Fair: gigabit, Depth: l.Reference, Space: 58_500_000}
	for range 2 {
		c.Now += 4_000_000
		f.Add(c.Now, 4096)
	}
	c.Rate = 4 * c.Fair
	if percent := f.Reduce(&c, &s, 0); percent != 0 {
		t.Errorf("the first flow of a sender is asked, by %d percent", percent)
	}
	c.Slow = 200_000
	for _, q := range []struct {
		together float64 // F
		percent  uint16
	}{{1.25, 20}, {4, 50}, {0.9, 0}} {
		c.Now += 1_000_000
		c.Rate = q.together * c.Fair
		percent := f.Reduce(&c, &s, 0)
		if percent != q.percent && percent+1 != q.percent { // rounded down
			t.Errorf("all slow flows at %.2f of F: by %d percent, want %d", q.together, percent, q.percent)
		}
		if percent == 0 {
			continue
		}
		f.Reduced(&c, &s, 1, percent)
		if again := f.Reduce(&c, &s, 0); again != 0 || !f.Limited(c.Fair) {
			t.Errorf("asked again at once, by %d percent", again)
		}
		c.Now += 1_000_000
		up, again, ok := f.ResumeRate(&c, &s)
		if f.Resumed(&c, &s, up, again); !ok || up != 100 || f.Limited(c.Fair) {
			t.Errorf("restored by %d percent, %t", up, ok)
		}
	}
}

// TestFairBounded: while the line isn't full, F grows up to the fastest sender's rate, up to twice that if a sender can be asked for more, and to the line if no rate is known.
func TestFairBounded(t *testing.T) {
	l := congestion.NewLaw(100e9, 62_500_000, 0)
	for _, c := range []struct {
		largest float64
		resumes bool
		want    float64
	}{
		{5 * gigabit, false, 5 * gigabit}, {5 * gigabit, true, 10 * gigabit}, {0, false, l.Line}, {0, true, l.Line},
	} {
		fair := gigabit
		for range 1000 {
			fair = l.Next(fair, congestion.Inflow{Elapsed: 10_000, Obeyed: 50_000, Largest: c.largest, Resumes: c.resumes}, 0, 0)
		}
		if fair != c.want {
			t.Errorf("F is %.2f Gbps, want %.2f: %+v", fair/gigabit, c.want/gigabit, c)
		}
	}
}

// TestDrained: while a queue drains, F is below a sender's share of the line. A sender between the two gets no CNPs, unless the queue would grow without them, or it has several
// flows above F.
func TestDrained(t *testing.T) {
	l := congestion.NewLaw(100e9, 250_000_000, 0)
	const fair, depth = 10 * gigabit, 30e6
	drained := l.Drained(fair, depth, 0, true)
	if drained < 1.1 || drained > 1.25 || l.Drained(fair, l.Reference/2, 0, true) != 1 {
		t.Fatalf("once drained, F is %.2f times as high; of a short queue %.2f", drained, l.Drained(fair, l.Reference/2, 0, true))
	}
	for _, q := range []struct {
		name    string
		rate    float64 // of each flow, in shares
		flows   int
		surplus float64
		notices bool
	}{
		{"a share", 0.97, 1, 0, false},
		{"above a share", 1.03, 1, -gigabit, true},
		{"a share, the queue will grow", 0.97, 1, gigabit, true},
		{"a share, the queue will drain", 0.97, 1, -gigabit, false},
		{"three flows of a share", 0.97, 3, -gigabit, true},
	} {
		c := congestion.LawState{Law: &l, Drained: drained, Surplus: q.surplus, Now: 1e9, Fair: fair, Depth: depth, Space: 95e6}
		flows := make([]congestion.LawFlow, q.flows)
		var s congestion.LawSender
		s.Begin()
		sent := 0
		for range 1000 {
			c.Now += int64(4096 / (q.rate * drained * fair))
			for i := range flows {
				f := &flows[i]
				f.Add(c.Now, 4096)
				s.Arrives(c.Now, 4096)
				if f.Over(c.Fair) && f.CNP(at(&c, f), &s) {
					sent++
				}
			}
		}
		if sent > 0 != q.notices {
			t.Errorf("%s: %d CNPs", q.name, sent)
		}
	}
}

// TestSpace: of a default queue half is kept for what comes before senders have slowed down, of one that is no longer than a full queue nothing.
func TestSpace(t *testing.T) {
	for _, q := range []struct{ capacity, depth, want float64 }{{250e6, 0, 125e6}, {250e6, 100e6, 25e6}, {250e6, 130e6, 0}, {40e6, 10e6, 30e6}, {40e6, 40e6, 0}} {
		l := congestion.NewLaw(100e9, uint64(q.capacity), 0)
		if got := l.Space(q.depth, q.capacity-q.depth); got != q.want {
			t.Errorf("of %.0f bytes %.0f are queued: %.0f left, want %.0f", q.capacity, q.depth, got, q.want)
		}
	}
}

// TestPaused: a flow that can only be paused and comes in bursts gets F over time, and its bytes count as they come.
func TestPaused(t *testing.T) {
	l := congestion.NewLaw(100e9, 62_500_000, 0)
	var f congestion.LawFlow
	fair := 10 * gigabit
	bytes, until := 0, int64(0)
	const packet, loop, length = 4096, 5_000, 10_000_000
	for now := int64(1e9); now < 1e9+length; now += 327 { // 100 Gbps
		if now < until {
			continue
		}
		bytes += packet
		f.Add(now, packet)
		if us := f.Pause(&congestion.LawState{Law: &l, Drained: 1, Now: now, Fair: fair}, packet); us > 0 {
			until = now + int64(us)*1000
		}
		if s := f.Share(now, fair); s != 1 {
			t.Fatalf("a paused flow's share is %v", s)
		}
	}
	if rate := float64(bytes) / length; math.Abs(rate/fair-1) > 0.05 {
		t.Errorf("a paused flow has %.1f Gbps, F is 10", rate/gigabit)
	}
}

// TestDelayBounded: a sender that is back after a pause of 0.2 s, at less than it was asked for, teaches no delay of the loop.
func TestDelayBounded(t *testing.T) {
	l := congestion.NewLaw(100e9, 62_500_000, 0)
	for _, q := range []struct {
		pause int64 // ns
		known bool
	}{{10_000, true}, {2_000_000, true}, {200_000_000, false}} {
		var f congestion.LawFlow
		var s congestion.LawSender
		s.Begin()
		c := congestion.LawState{Law: &l, Drained: 1, Now: 1e9, Fair: 25 * gigabit, Depth: l.Reference, Space: 58_500_000}
		send := func(gap int64) {
			for range 100 {
				if window, ended := f.Add(c.Now, 4096); ended {
					s.Ended(&c, &f, 1, window)
				}
				c.Now += gap
			}
		}
		send(327) // 100 Gbps
		f.Reduced(at(&c, &f), &s, 1, f.Reduce(at(&c, &f), &s, 0))
		c.Now += q.pause
		send(1500) // 22 Gbps
		if known := s.Delay > 0; known != q.known {
			t.Errorf("after a pause of %d us, a delay of %.0f ns is known", q.pause/1000, s.Delay)
		}
	}
}

// TestDelayOfSlowFlows: flows whose packets come far apart show late that a request has had an effect. That is no longer delay of the loop, if one is known.
func TestDelayOfSlowFlows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loop, gap := rapid.Int64Range(5_000, 500_000).Draw(t, "loop"), rapid.Int64Range(2_000, 500_000).Draw(t, "gap") // ns
		l := congestion.NewLaw(100e9, 62_500_000, 0)
		var f congestion.LawFlow
		var s congestion.LawSender
		s.Begin()
		c := congestion.LawState{Law: &l, Drained: 1, Now: 1e9, Depth: l.Reference, Space: 58_500_000, Loop: loop}
		send := func(until int64) {
			for ; c.Now+gap <= until; c.Now += gap {
				if window, ended := f.Add(c.Now, 4096); ended {
					s.Ended(&c, &f, 1, window)
				}
			}
		}
		for range 4 {
			send(c.Now + 3*loop + 20*gap)
			c.Fair = f.Rate() / 2
			f.Reduced(at(&c, &f), &s, 1, f.Reduce(at(&c, &f), &s, 0))
			send(c.Now + loop)
			gap *= 2
		}
		if s.Delay == 0 || math.Abs(float64(s.Delay)-float64(loop)) > float64(20_000+gap/8) { // a window, and two gaps before the first request
			t.Errorf("a delay of %.0f ns was learned, it is %d", s.Delay, loop)
		}
	})
}
