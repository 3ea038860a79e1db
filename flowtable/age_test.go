package flowtable

import (
	"testing"

	"pgregory.net/rapid"
)

// An idle flow ends within one and a half aging periods after its last packet, and an active one never ages, however fast bursts come.
func TestSweepCoversTableTwiceAnAgingPeriod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const aging = 1_000_000
		flows := rapid.IntRange(1, 400).Draw(t, "flows")
		perLap := (flows + sweepWindow - 1) / sweepWindow // Sweeps that a round takes at the least
		bursts := rapid.IntRange(laps*perLap+1, 1000).Draw(t, "bursts an aging period")
		start := rapid.SampledFrom([]int64{0, 1767225600e9}).Draw(t, "start")
		tab, _ := New(make([]byte, Size(flows+1)), Config{Capacity: flows + 1, Aging: aging})
		keys := make([]Key, flows)
		for i := range keys {
			keys[i] = keyOf(uint64(i))
		}
		out := make([]Ref, flows)
		tab.Lookup(records(keys...), start, out)
		active, step := keyOf(1<<20), int64(aging/bursts)
		x := one(tab, active, start)
		for now := start; now <= start+aging*3/2+2*step; now += step {
			if one(tab, active, now) != x {
				t.Fatal("the active flow has moved")
			}
			before := tab.Stats().Flows
			tab.Sweep(now)
			gone := before - tab.Stats().Flows
			if gone > sweepWindow {
				t.Fatalf("one sweep removed %d flows", gone)
			}
			if gone > 0 && now-start <= aging {
				t.Fatalf("%d flows gone after %d ns", gone, now-start)
			}
		}
		if s := tab.Stats(); s.Flows != 1 || s.Aged != uint64(flows) {
			t.Fatalf("after one and a half aging periods: %+v", s)
		}
	})
}

// After a pause the next sweeps catch up with one round, whatever the clock says.
func TestSweepCatchesUp(t *testing.T) {
	tab := newTable(t, Config{Capacity: 1000, Aging: 100})
	for n := range uint64(1000) {
		one(tab, keyOf(n), 0)
	}
	const later = int64(1e18)
	for left := uint64(1000); left > 0; left -= min(left, sweepWindow) {
		if n := tab.Stats().Flows; n != left {
			t.Fatalf("%d flows left, want %d", n, left)
		}
		tab.Sweep(later)
	}
	if n := tab.Stats().Flows; n != 0 {
		t.Fatalf("%d flows left", n)
	}
	one(tab, keyOf(1), later)
	tab.Sweep(5) // the clock goes back
	for now := int64(5); now < 1000; now += 5 {
		tab.Sweep(now)
	}
	if n := tab.Stats().Flows; n != 1 {
		t.Fatalf("%d flows, want the one that was last seen in the future", n)
	}
}
