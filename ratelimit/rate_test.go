package ratelimit

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

const ms, sec = int64(1e6), int64(1e9)

func TestRateExamples(t *testing.T) {
	for _, c := range []struct {
		name  string
		rate  uint64
		at    []int64 // nanoseconds
		allow []bool
	}{
		{"off", 0, []int64{0, 0, 0, 0}, []bool{true, true, true, true}},
		{"one a second, no burst", 1, []int64{0, 0, sec - 1, sec, sec, 3 * sec, 3*sec + 1}, []bool{true, false, false, true, false, true, false}},
		{"burst of 2 in 200 a second", 200, []int64{0, 0, 0, 5*ms - 1, 5 * ms, 5 * ms}, []bool{true, true, false, false, true, false}},
		{"unused time is not saved", 100, []int64{0, sec, sec, sec + 10*ms}, []bool{true, true, false, true}},
		{"clock back by less than a second", 1, []int64{10 * sec, 10*sec - sec/2, 11*sec - 1, 11 * sec}, []bool{true, false, false, true}},
		{"clock set back by an hour", 1, []int64{7200 * sec, 3600 * sec, 3600 * sec}, []bool{true, true, false}},
		{"clock of the epoch", 1, []int64{1767225600 * sec, 1767225600 * sec, 1767225601 * sec}, []bool{true, false, true}},
		{"long idle", 1, []int64{1, 17 * 365 * 86400 * sec, 17 * 365 * 86400 * sec}, []bool{true, true, false}},
	} {
		r := PerSecond(c.rate)
		var tat atomic.Int64
		for i, now := range c.at {
			if got := r.Check(&tat, now); got != c.allow[i] {
				t.Errorf("%s: event %d at %d ns: checked %v, want %v", c.name, i, now, got, c.allow[i])
			}
			if got := r.Allow(&tat, now); got != c.allow[i] {
				t.Errorf("%s: event %d at %d ns: allowed %v, want %v", c.name, i, now, got, c.allow[i])
			}
		}
	}
}

// The gap is the rate's or a little longer, never shorter.
func TestGap(t *testing.T) {
	for _, rate := range []uint64{1, 3, 7, 999, 1000, 1e6, 3e6, 7e6 + 1, 1e9, second} {
		if over := PerSecond(rate).gap*int64(rate) - second; over < 0 || over >= int64(rate) {
			t.Errorf("%d/s: gap of %d/16 ns", rate, PerSecond(rate).gap)
		}
	}
	if r := PerSecond(math.MaxUint64); r.Off() || r.gap != 1 {
		t.Errorf("the fastest rate has a gap of %d/16 ns", r.gap)
	}
	if !PerSecond(0).Off() {
		t.Error("0/s is a limit")
	}
}

func TestBurst(t *testing.T) {
	for rate, want := range map[uint64]int64{0: 0, 1: 1, 100: 1, 101: 2, 1000: 10, 1e6: 1e4, math.MaxUint64: 16e9 / 100} {
		if got := Burst(rate); got != want {
			t.Errorf("burst of %d/s is %d, want %d", rate, got, want)
		}
	}
}

// anyRate draws rates of all magnitudes.
func anyRate(t *rapid.T) uint64 {
	return rapid.SampledFrom([]uint64{1, 10, 100, 1e3, 1e4, 1e5, 1e6}).Draw(t, "magnitude") * rapid.Uint64Range(1, 9).Draw(t, "digit")
}

// anyTimes draws times that come in clusters about as dense as the limit, with pauses between.
func anyTimes(t *rapid.T, rate uint64) []int64 {
	now := rapid.SampledFrom([]int64{0, 1, sec, 1767225600 * sec}).Draw(t, "start")
	times := make([]int64, rapid.IntRange(1, 300).Draw(t, "events"))
	gap := max(1, sec/int64(rate))
	for i := range times {
		now += rapid.SampledFrom([]int64{0, 0, 0, 1, gap / 7, gap / 2, gap, 3 * gap, sec}).Draw(t, "step")
		times[i] = now
	}
	return times
}

// mustKeepLimit checks every window that begins and ends with an allowed event.
func mustKeepLimit(t *rapid.T, rate uint64, allowed []int64) {
	for i := range allowed {
		for j := i; j < len(allowed); j++ {
			window := float64(allowed[j]-allowed[i]) / 1e9
			if n, most := j-i+1, window*float64(rate)+float64(Burst(rate)); float64(n) > most+1e-6 {
				t.Fatalf("%d/s: %d events in %g s, at most %g", rate, n, window, most)
			}
		}
	}
}

func TestRateNeverExceeds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := anyRate(t)
		r := PerSecond(rate)
		var tat atomic.Int64
		var allowed []int64
		for _, now := range anyTimes(t, rate) {
			checked := r.Check(&tat, now)
			ok := r.Allow(&tat, now)
			if ok != checked {
				t.Fatalf("%d/s at %d: checked %v, allowed %v", rate, now, checked, ok)
			}
			if ok {
				allowed = append(allowed, now)
			}
		}
		mustKeepLimit(t, rate, allowed)
	})
}

func TestRateExceedsNothingWithRefunds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := anyRate(t)
		r := PerSecond(rate)
		var tat atomic.Int64
		var allowed []int64
		for _, now := range anyTimes(t, rate) {
			if !r.Allow(&tat, now) {
				continue
			}
			if rapid.Bool().Draw(t, "refund") {
				r.Refund(&tat)
				if !r.Allow(&tat, now) {
					t.Fatalf("%d/s: refunded event not allowed again at once", rate)
				}
			}
			allowed = append(allowed, now)
		}
		mustKeepLimit(t, rate, allowed)
	})
}

// A caller that asks all the time gets the rate over any time, within the rounding of the gap to 1/16 ns. If the tolerance is less than the
// time between two calls (below 101/s there is none) that time is lost with each event.
func TestRateNeverStarves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := anyRate(t)
		r := PerSecond(rate)
		var tat atomic.Int64
		now := rapid.SampledFrom([]int64{0, 1767225600 * sec, 1 << 60 / 16 * 9}).Draw(t, "start")
		step := max(1, sec/int64(rate)/rapid.Int64Range(1, 5).Draw(t, "asks a gap"))
		n, start := int64(0), now
		for range 2000 {
			if r.Allow(&tat, now) {
				n++
			}
			now += step
		}
		window := float64(now-step-start) / 1e9
		gap := float64(r.gap) / 16e9
		if r.tolerance < step*units {
			gap += float64(step) / 1e9
		}
		least := min(2000, window/gap*(1-1e-12))
		if exact := 1 / float64(rate); float64(r.gap)/16e9 > exact+1/16e9 {
			t.Fatalf("%d/s: gap %g s", rate, float64(r.gap)/16e9)
		}
		if float64(n) < math.Floor(least) {
			t.Fatalf("%d/s, asked every %d ns: %d events in %g s, at least %g", rate, step, n, window, least)
		}
	})
}

// Whatever the clock did, an event is allowed at the latest a second and a gap after it runs evenly again.
func TestRateRecoversFromAnyClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := anyRate(t)
		r := PerSecond(rate)
		var tat atomic.Int64
		for range rapid.IntRange(1, 20).Draw(t, "jumps") {
			r.Allow(&tat, rapid.Int64().Draw(t, "now"))
		}
		now := rapid.Int64().Draw(t, "then")
		if !r.Allow(&tat, now) && !r.Allow(&tat, now+2*sec+sec/int64(rate)) {
			t.Fatalf("%d/s: starved at %d", rate, now)
		}
	})
}

// A limit that is raised at a reload applies from then on, without the old one's backlog.
func TestRateRaised(t *testing.T) {
	var tat atomic.Int64
	slow, fast := PerSecond(1), PerSecond(1000)
	slow.Allow(&tat, 0)
	if fast.Allow(&tat, ms) {
		t.Error("the TAT of the slow limit is forgotten while it may be a clock's skew")
	}
	if !fast.Allow(&tat, sec) {
		t.Error("the slow limit still holds")
	}
}

func TestRateSharedByWorkers(t *testing.T) {
	const burst = 200_000
	r := PerSecond(100 * burst)
	var tat, n atomic.Int64
	together(func(int) {
		allowed := int64(0)
		for range burst {
			if r.Allow(&tat, sec) {
				allowed++
			}
		}
		n.Add(allowed)
	})
	if n.Load() != burst {
		t.Fatalf("%d events at one instant, want %d", n.Load(), burst)
	}
}

func TestRateSharedByWorkersWithClocksApart(t *testing.T) {
	const asks = 20000
	r := PerSecond(1e6) // a burst of 10,000
	var tat, n atomic.Int64
	together(func(w int) {
		for i := range int64(asks) {
			if r.Allow(&tat, sec+i*100+int64(w)*10) {
				n.Add(1)
			}
		}
	})
	if most := int64(asks/10 + 10000 + 1); n.Load() > most || n.Load() < 10000 {
		t.Fatalf("%d events, want 10,000 to %d", n.Load(), most)
	}
}

// together runs f in four goroutines that begin at the same time.
func together(f func(worker int)) {
	const workers = 4
	var ready, wg sync.WaitGroup
	ready.Add(workers) // before the first one waits
	for w := range workers {
		wg.Go(func() {
			ready.Done()
			ready.Wait()
			f(w)
		})
	}
	wg.Wait()
}

func TestInterval(t *testing.T) {
	for _, c := range []struct {
		name      string
		interval  Interval
		last, now int64
		want      bool
	}{
		{"never", 100, 0, 5, true},
		{"too early", 100, 5, 104, false},
		{"on time", 100, 5, 105, true},
		{"off", 0, 5, 5, true},
		{"negative is off", -1, 5, 5, true},
		{"clock a little back", 100, 5 * sec, 4*sec + 1, false},
		{"clock set back", 100, 5 * sec, 4*sec - 1, true},
		{"longer than a second", Interval(10 * sec), sec, 11*sec - 1, false},
		{"across the wrap", 100, math.MaxInt64 - 10, math.MinInt64 + 88, false},
		{"across the wrap, on time", 100, math.MaxInt64 - 10, math.MinInt64 + 89, true},
	} {
		if got := c.interval.Ready(c.last, c.now); got != c.want {
			t.Errorf("%s: ready %v, want %v", c.name, got, c.want)
		}
	}
	if Stamp(0) != 1 || Stamp(7) != 7 || Stamp(-7) != -7 {
		t.Error("a stamp is the time, and never 0")
	}
}

// Events of one flow are at least the interval apart.
func TestIntervalProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := Interval(rapid.Int64Range(1, 1000).Draw(t, "interval"))
		now, last := int64(1), int64(0)
		for range 200 {
			now += rapid.Int64Range(0, 400).Draw(t, "step")
			want := last == 0 || now-last >= int64(v)
			if got := v.Ready(last, now); got != want {
				t.Fatalf("at %d, last at %d, interval %d: allowed %v", now, last, v, got)
			}
			if want {
				last = now
			}
		}
	})
}

func TestNoAllocation(t *testing.T) {
	d := newDestinations(t, 1000)
	r := PerSecond(1000)
	var tat atomic.Int64
	now := int64(0)
	if n := testing.AllocsPerRun(1000, func() {
		now += ms
		r.Allow(&tat, now)
		r.Refund(&tat)
		d.Allow(r, addr(uint64(now)), now)
		d.Refund(r, addr(uint64(now)))
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func BenchmarkRate(b *testing.B) {
	for _, c := range []struct {
		name string
		rate uint64
	}{{"allowed", 1e9}, {"limited", 1}} {
		b.Run(c.name, func(b *testing.B) {
			r := PerSecond(c.rate)
			var tat atomic.Int64
			for now := sec; b.Loop(); now++ {
				r.Allow(&tat, now)
			}
		})
	}
}

func BenchmarkInterval(b *testing.B) {
	now := int64(0)
	for b.Loop() {
		now++
		Interval(100).Ready(50, now)
	}
}
