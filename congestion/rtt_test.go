package congestion

import (
	"testing"

	"pgregory.net/rapid"
)

const (
	millisecond = int64(1e6)
	aSecond     = int64(1e9)
)

// preferring is a policy of sources in order, with a window of 8 seconds.
func preferring(sources ...RTTSource) *RTTPolicy {
	p := &RTTPolicy{Count: len(sources), Window: 8 * aSecond}
	copy(p.Sources[:], sources)
	return p
}

func TestRTT(t *testing.T) {
	type step struct {
		at      int64 // ms
		source  RTTSource
		sample  int64 // us, 0: none
		value   int64 // in force, us
		inForce RTTSource
		changed bool
	}
	bounded := preferring(RTTPassive)
	bounded.Min, bounded.Max = 5*millisecond, 20*millisecond
	for _, c := range []struct {
		name   string
		policy *RTTPolicy
		ms     int64 // configured
		steps  []step
	}{
		{"configured only", preferring(), 40, []step{{0, RTTPassive, 30_000, 40_000, RTTConfigured, true}, {2000, RTTSTAMP, 30_000, 40_000, RTTConfigured, false}}},
		{"unknown until measured", preferring(RTTPassive), 0, []step{{0, 0, 0, 0, RTTConfigured, true}, {1000, RTTPassive, 30_000, 30_000, RTTPassive, true}}},
		{"the preferred one wins", preferring(RTTSTAMP, RTTPassive), 40, []step{
			{0, RTTPassive, 30_000, 30_000, RTTPassive, true}, {1000, RTTSTAMP, 31_000, 31_000, RTTSTAMP, true}, {2000, RTTPassive, 10_000, 31_000, RTTSTAMP, false},
		}},
		{"a silent source is out of force", preferring(RTTSTAMP, RTTPassive, RTTConfigured), 40, []step{
			{0, RTTSTAMP, 30_000, 30_000, RTTSTAMP, true}, {6000, RTTPassive, 33_000, 30_000, RTTSTAMP, false},
			{8000, 0, 0, 33_000, RTTPassive, true}, {14_000, 0, 0, 40_000, RTTConfigured, true},
		}},
		{"behind configured nothing counts", preferring(RTTConfigured, RTTPassive), 40, []step{{0, RTTPassive, 30_000, 40_000, RTTConfigured, true}}},
		{"bounds", bounded, 40, []step{{0, RTTPassive, 30_000, 20_000, RTTPassive, true}, {1000, RTTPassive, 1_000, 5_000, RTTPassive, true}}},
		{"the least of the window", preferring(RTTPassive), 40, []step{
			{0, RTTPassive, 50_000, 50_000, RTTPassive, true}, {1000, RTTPassive, 30_000, 30_000, RTTPassive, true},
			{2000, RTTPassive, 90_000, 30_000, RTTPassive, false}, {8999, 0, 0, 30_000, RTTPassive, false}, {9000, 0, 0, 90_000, RTTPassive, true},
		}},
		{"an eighth is no change, for a while", preferring(RTTPassive), 40, []step{
			{0, RTTPassive, 40_000, 40_000, RTTPassive, true}, {2000, RTTPassive, 35_000, 40_000, RTTPassive, false},
			{3000, RTTPassive, 34_999, 34_999, RTTPassive, true}, {9000, RTTPassive, 34_000, 34_999, RTTPassive, false}, {13_000, 0, 0, 34_000, RTTPassive, true},
		}},
		{"not twice a second", preferring(RTTPassive), 40, []step{
			{0, RTTPassive, 40_000, 40_000, RTTPassive, true}, {999, RTTPassive, 10_000, 40_000, RTTPassive, false}, {1000, 0, 0, 10_000, RTTPassive, true},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r RTT
			for _, s := range c.steps {
				now := 8*aSecond + s.at*millisecond
				if s.sample > 0 {
					r.Sample(c.policy, s.source, now, s.sample*1000)
				}
				changed := r.Update(c.policy, c.ms*millisecond, now)
				if value, source := r.InForce(); value != s.value*1000 || source != s.inForce || changed != s.changed {
					t.Errorf("after %d ms: %d us by %v, changed %v, expected %+v", s.at, value/1000, source, changed, s)
				}
			}
		})
	}
}

// TestRTTProperties: the RTT_est is a sample of the window, or the configured value, within the bounds; and it changes at most once a
// second.
func TestRTTProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := preferring(rapid.Permutation([]RTTSource{RTTSTAMP, RTTPassive, RTTConfigured}).Draw(t, "sources")[:rapid.IntRange(1, 3).Draw(t, "n")]...)
		configured := rapid.Int64Range(0, 90*millisecond).Draw(t, "configured")
		p.Min = rapid.Int64Range(0, 30*millisecond).Draw(t, "min")
		p.Max = p.Min + rapid.Int64Range(0, 60*millisecond).Draw(t, "more")
		p.Window = rapid.Int64Range(1, 20*aSecond).Draw(t, "window")
		var r RTT
		now, changedAt := rapid.Int64Range(0, 1<<50).Draw(t, "begin"), int64(-aSecond)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += rapid.Int64Range(0, 3*aSecond).Draw(t, "ns")
			if rapid.Bool().Draw(t, "sample") {
				r.Sample(p, RTTSource(rapid.IntRange(1, 2).Draw(t, "source")), now, rapid.Int64Range(1, 200*millisecond).Draw(t, "rtt"))
			}
			if r.Update(p, configured, now) {
				if now-changedAt < aSecond {
					t.Fatalf("changed %d ns after the last change", now-changedAt)
				}
				changedAt = now
			}
			switch value, source := r.InForce(); {
			case source == RTTConfigured && value != configured:
				t.Fatalf("configured is %d", value)
			case source != RTTConfigured && (value < p.Min || p.Max > 0 && value > p.Max):
				t.Fatalf("%d is outside of %d to %d", value, p.Min, p.Max)
			case !p.Uses(source) && source != RTTConfigured:
				t.Fatalf("%v is not a source of the policy", source)
			}
		}
	})
}

// TestWindowedMin agrees with the minimum of all recent samples, with a tolerance of an eighth of the window.
func TestWindowedMin(t *testing.T) {
	type sample struct{ at, value int64 }
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.Int64Range(8, 1000).Draw(t, "window")
		part := window / windowParts
		var m windowedMin
		var samples []sample
		now := int64(0)
		for range rapid.IntRange(1, 100).Draw(t, "samples") {
			now += rapid.Int64Range(0, window).Draw(t, "ns")
			s := sample{now, rapid.Int64Range(1, 1000).Draw(t, "value")}
			samples = append(samples, s)
			m.add(window, now, s.value)
			least, surely := s.value, s.value
			for _, s := range samples {
				if now-s.at < part*windowParts {
					least = min(least, s.value)
				}
				if now-s.at < part*(windowParts-1) {
					surely = min(surely, s.value)
				}
			}
			if got, ok := m.get(window, now); !ok || got < least || got > surely {
				t.Fatalf("%d, expected %d to %d", got, least, surely)
			}
		}
		if _, ok := m.get(window, now+part*windowParts); ok {
			t.Fatal("a sample is older than the window")
		}
	})
}
