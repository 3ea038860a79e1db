package congestion

import (
	"testing"

	"pgregory.net/rapid"
)

// testPacing recovers 0.3 Gbit/s a microsecond.
var testPacing = Pacing{HostRate: 100e9, Floor: 1e9, Keep: 30, Interval: 50_000, Recovery: 333_333}

func TestPace(t *testing.T) {
	var p Pace
	c := &testPacing
	for _, s := range []struct {
		at      int64
		cnp     bool
		reduced bool
		rate    uint64
	}{
		{1000, false, false, 100e9},
		{1000, true, true, 30e9},
		{2000, true, false, 30_300_000_300},
		{50_999, true, false, 44_999_714_999},
		{51_000, true, true, 13_500_004_500},
		{101_000, true, true, 8_550_005_850},
		{151_000, true, true, 7_065_006_255},
		{201_000, false, false, 22_065_021_255},
		{461_000, false, false, 100e9},
		{462_000, false, false, 100e9},
	} {
		if s.cnp && p.Reduce(c, s.at) != s.reduced {
			t.Errorf("at %d: reduced %v", s.at, !s.reduced)
		}
		if rate := p.Rate(c, s.at); rate != s.rate {
			t.Errorf("at %d: %d bit/s, expected %d", s.at, rate, s.rate)
		}
		if p.Slow(c, s.at) != (s.rate < c.HostRate) {
			t.Errorf("at %d: slow %v", s.at, p.Slow(c, s.at))
		}
	}
	if ns := p.Takes(c, 500_000, 12_500); ns != 1000 {
		t.Errorf("12,500 bytes take %d ns at 100 Gbit/s", ns)
	}
}

// TestPaceProperties: a pace is between its bounds, falls only at a CNP, and is back at HostRate after Recovery.
func TestPaceProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Pacing{HostRate: rapid.Uint64Range(1e6, 400e9).Draw(t, "host rate"), Keep: rapid.Uint64Range(1, 99).Draw(t, "keep"),
			Interval: rapid.Int64Range(0, 100_000).Draw(t, "interval"), Recovery: rapid.Int64Range(1, 1e9).Draw(t, "recovery")}
		c.Floor = rapid.Uint64Range(1, c.HostRate).Draw(t, "floor")
		var p Pace
		now, last := rapid.Int64Range(0, 1e15).Draw(t, "begin"), c.HostRate
		for range 50 {
			now += rapid.Int64Range(0, 2*c.Recovery/10).Draw(t, "ns")
			before := p.Rate(&c, now)
			if before < last {
				t.Fatalf("the pace fell from %d to %d without a CNP", last, before)
			}
			last = before
			if rapid.Bool().Draw(t, "cnp") && p.Reduce(&c, now) {
				if last = p.Rate(&c, now); last > max(before, c.Floor) {
					t.Fatalf("a CNP made %d of %d", last, before)
				}
			}
			if last < min(c.Floor, c.HostRate) || last > c.HostRate {
				t.Fatalf("%d bit/s", last)
			}
		}
		if rate := p.Rate(&c, now+c.Recovery); rate != c.HostRate {
			t.Fatalf("%d bit/s after the recovery", rate)
		}
	})
}

// TestPaceOfFlow: a flow's pace begins at a percentage of its rate, stays for Hold, and then recovers; Restore gives back a part of the last
// reduction.
func TestPaceOfFlow(t *testing.T) {
	c := &Pacing{HostRate: 100e9, Floor: 1e8, Keep: 50, Interval: 1000, Hold: 10_000_000, Recovery: 1_000_000_000}
	var p Pace
	if p.Restore(c, 0, 0) {
		t.Error("a pace that wasn't reduced was restored")
	}
	p.Limit(c, 20e9, 70, 0)
	for _, s := range []struct {
		at   int64
		do   func() bool
		did  bool
		rate uint64
	}{
		{0, nil, false, 14e9},
		{10_000_000, nil, false, 14e9},
		{20_000_000, nil, false, 15e9}, // 10 ms later
		{20_000_000, func() bool { return p.ReduceTo(c, 40, 20_000_000) }, true, 6e9},
		{20_000_500, func() bool { return p.ReduceTo(c, 40, 20_000_500) }, false, 6e9}, // too soon
		{21_000_000, func() bool { return p.Restore(c, 50, 21_000_000) }, true, 10_500_000_000},
		{22_000_000, func() bool { return p.Restore(c, 100, 22_000_000) }, true, 15e9}, // at most the rate before the reduction
		{23_000_000, func() bool { return p.ReduceTo(c, 0, 23_000_000) }, true, 1e8},
		{24_000_000, func() bool { return p.Restore(c, 0, 24_000_000) }, true, 50_100_000_000}, // half of the host's rate more
		{25_000_000, func() bool { return p.Restore(c, 0, 25_000_000) }, true, 100e9},
		{26_000_000, func() bool { return p.Restore(c, 0, 26_000_000) }, false, 100e9},
	} {
		if s.do != nil && s.do() != s.did {
			t.Errorf("at %d: it was done: %v", s.at, !s.did)
		}
		if rate := p.Rate(c, s.at); rate != s.rate {
			t.Errorf("at %d: %d bit/s, expected %d", s.at, rate, s.rate)
		}
	}
	if p.Limit(c, 500e9, 90, 0); p.Rate(c, 0) != 90e9 {
		t.Errorf("%d bit/s of a flow faster than its host's link, expected 90 %% of the link", p.Rate(c, 0))
	}
}
