package congestion

import (
	"testing"

	"pgregory.net/rapid"
)

// plant is a queue in virtual time whose senders react to notifications a round trip late. Each time the queue is above the notifying depth
// they halve their rate once in a round trip, and they recover steadily.
type plant struct {
	now, due int64 // ns; due: when the senders react
	depth    float64
	rate     float64 // of all senders, bytes a step
	capacity float64
	recovery float64 // bytes a step each step
	rtt      int64
	totals   QueueTotals
}

const (
	plantStep = int64(1e6)
	plantLine = 10_000 // bytes a step: 80 Mbit/s
)

// run advances to the next Look, 50 ms later, with the given K_max.
func (p *plant) run(kMax uint64) {
	for range 50 {
		p.now += plantStep
		p.rate += p.recovery
		if p.due != 0 && p.now >= p.due {
			p.rate, p.due = p.rate/2, 0
		}
		p.depth += p.rate
		sent := min(p.depth, plantLine)
		p.depth -= sent
		p.totals.LineBytes += uint64(sent)
		if p.depth > p.capacity {
			p.depth = p.capacity
			p.totals.Dropped++
		}
		if p.depth > float64(kMax) && p.due == 0 {
			p.totals.Notified++
			p.due = p.now + p.rtt
		}
	}
	p.totals.Depth = uint64(p.depth)
}

// TestAdjustConverges: a K_max that is much too low leaves the line idle, one that is much too high loses frames. From both, the percentage
// changes so that there is less of it, and stays within its bounds.
func TestAdjustConverges(t *testing.T) {
	for _, c := range []struct {
		name     string
		kMax     uint64 // calculated
		capacity float64
		from, to int // percent after two minutes
	}{
		{"too low: the line idles", 20_000, 4_000_000, 150, 200},
		{"too high: frames are dropped", 900_000, 1_000_000, 50, 90},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := plant{rate: plantLine, capacity: c.capacity, recovery: 20, rtt: 100 * millisecond}
			var a Adjuster
			bounds := AdjustPolicy{50, 200}
			for range 120 * 20 {
				kMax := timesPercent(c.kMax, a.Percent())
				p.run(kMax)
				a.Look(bounds, p.now, p.totals, kMax, plantLine*8000)
			}
			if got := a.Percent(); got < c.from || got > c.to {
				t.Errorf("%d percent, expected %d to %d", got, c.from, c.to)
			}
		})
	}
}

func TestAdjustLook(t *testing.T) {
	const kMax, rate = 1000, 8_000_000 // a MB a second
	half := QueueTotals{Notified: 1, LineBytes: 500_000}
	for _, c := range []struct {
		name   string
		policy AdjustPolicy
		looks  []QueueTotals // half a second apart
		want   int
	}{
		{"nothing happens", AdjustPolicy{50, 200}, []QueueTotals{{}, {}, {}}, 100},
		{"off", AdjustPolicy{}, []QueueTotals{{}, {}, {Dropped: 1}}, 100},
		{"not before a second", AdjustPolicy{50, 200}, []QueueTotals{{}, {Dropped: 1}}, 100},
		{"dropped", AdjustPolicy{50, 200}, []QueueTotals{{}, {}, {Dropped: 1}}, 88},
		{"dropped before only", AdjustPolicy{50, 200}, []QueueTotals{{Dropped: 9}, {Dropped: 9}, {Dropped: 9}}, 100},
		{"above K_max all the time", AdjustPolicy{50, 200}, []QueueTotals{{Depth: 1001}, {Depth: 1001}, {Depth: 1001}}, 88},
		{"not all the time", AdjustPolicy{50, 200}, []QueueTotals{{Depth: 1001}, {Depth: 1000}, {Depth: 1001}}, 100},
		{"notified, then idle", AdjustPolicy{50, 200}, []QueueTotals{{}, {}, half}, 105},
		{"notified, the queue not empty", AdjustPolicy{50, 200}, []QueueTotals{{Depth: 1}, {Depth: 1}, {Depth: 1, Notified: 1, LineBytes: 500_000}}, 100},
		{"notified, the line full", AdjustPolicy{50, 200}, []QueueTotals{{}, {}, {Notified: 1, LineBytes: 950_000}}, 100},
		{"idle without notifications", AdjustPolicy{50, 200}, []QueueTotals{{}, {}, {LineBytes: 500_000}}, 100},
		{"at the upper bound", AdjustPolicy{50, 103}, []QueueTotals{{}, {}, half}, 103},
		{"at the lower bound", AdjustPolicy{95, 200}, []QueueTotals{{}, {}, {Dropped: 1}}, 95},
	} {
		t.Run(c.name, func(t *testing.T) {
			var a Adjuster
			for i, q := range c.looks {
				a.Look(c.policy, aSecond+int64(i)*aSecond/2, q, kMax, rate)
			}
			if got := a.Percent(); got != c.want {
				t.Errorf("%d percent, expected %d", got, c.want)
			}
		})
	}
}

// TestAdjustOff: when the operator switches it off, all parameters are the calculated ones at once.
func TestAdjustOff(t *testing.T) {
	var a Adjuster
	for i := range int64(3) {
		a.Look(AdjustPolicy{50, 200}, i*aSecond, QueueTotals{Dropped: uint64(i)}, 1, 1)
	}
	if a.Percent() >= 100 {
		t.Fatalf("%d percent, not what was to be tested", a.Percent())
	}
	if !a.Look(AdjustPolicy{}, 3*aSecond, QueueTotals{}, 1, 1) || a.Percent() != 100 {
		t.Errorf("%d percent", a.Percent())
	}
}

// TestAdjustBounds: for any input, the percentage stays within the bounds.
func TestAdjustBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := AdjustPolicy{rapid.IntRange(1, 100).Draw(t, "min"), rapid.IntRange(100, 400).Draw(t, "max")}
		var a Adjuster
		var q QueueTotals
		now := int64(1)
		for range rapid.IntRange(1, 200).Draw(t, "looks") {
			now += rapid.Int64Range(0, 2*aSecond).Draw(t, "ns")
			q.Depth = rapid.Uint64Range(0, 20).Draw(t, "depth")
			q.Dropped += rapid.Uint64Range(0, 1).Draw(t, "dropped")
			q.Notified += rapid.Uint64Range(0, 1).Draw(t, "notified")
			q.LineBytes += rapid.Uint64Range(0, 1<<20).Draw(t, "bytes")
			a.Look(p, now, q, 10, 8_000_000)
			if got := a.Percent(); got < p.MinPercent || got > p.MaxPercent {
				t.Fatalf("%d percent is outside of %d to %d", got, p.MinPercent, p.MaxPercent)
			}
		}
	})
}

// TestTriggersAdjust: rates that are off stay off, and rates that are on stay on.
func TestTriggersAdjust(t *testing.T) {
	for _, c := range []struct {
		before, after Triggers
		percent       int
	}{
		{Triggers{}, Triggers{}, 200},
		{Triggers{Marking: 500_000, Growth: 1000}, Triggers{Marking: 250_000, Growth: 500}, 50},
		{Triggers{Marking: 600_000, Growth: 1000}, Triggers{Marking: 1_000_000, Growth: 2000}, 200},
		{Triggers{Marking: 1, Growth: 1}, Triggers{Marking: 1, Growth: 1}, 10},
	} {
		got := c.before
		if got.Adjust(c.percent); got != c.after {
			t.Errorf("%d percent of %+v is %+v, expected %+v", c.percent, c.before, got, c.after)
		}
	}
}

// TestSizingProperties: K_min is below K_max, which is below the queue's capacity, and follows RTT_est and the percentage.
func TestSizingProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		z := Sizing{
			KBase: rapid.Uint64Range(0, 1<<40).Draw(t, "k_base"), Alpha: rapid.Float64Range(0, 100).Draw(t, "alpha"),
			KMinPercent: rapid.IntRange(0, 100).Draw(t, "k_min_percent"), Capacity: rapid.Uint64Range(2, 1<<32).Draw(t, "capacity"),
		}
		rate, rtt := rapid.Uint64Range(100_000, 10e12).Draw(t, "rate"), rapid.Int64Range(0, 10e9).Draw(t, "rtt")
		percent := rapid.IntRange(1, 400).Draw(t, "percent")
		k := z.Thresholds(rate, rtt, percent)
		if k.KMin >= k.KMax || k.KMax >= z.Capacity {
			t.Fatalf("%+v of a capacity of %d", k, z.Capacity)
		}
		longer := z.Thresholds(rate, rtt+rapid.Int64Range(0, 10e9).Draw(t, "more"), percent+rapid.IntRange(0, 100).Draw(t, "percents"))
		if longer.KMax < k.KMax || longer.KMin < k.KMin {
			t.Fatalf("%+v for more than gave %+v", longer, k)
		}
		if a := Adaptive(z.KBase, z.Alpha, rate, rtt, z.KMinPercent); a.KMax < z.Capacity-max(z.Capacity/8, 1) && z.Thresholds(rate, rtt, 100) != a {
			t.Fatalf("%+v, expected %+v", z.Thresholds(rate, rtt, 100), a)
		}
	})
}
