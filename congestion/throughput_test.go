package congestion

import "testing"

// TestThroughput: the rate of a flow that sends so many packets of 4000 bytes in a burst each so many ns, ever since it was first observed.
func TestThroughput(t *testing.T) {
	const packet, ms = 4000, int64(1e6)
	for _, c := range []struct {
		name    string
		packets uint64 // of a burst
		every   int64  // ns
		after   int64  // when the rate is read, ns
		want    uint64 // bytes per millisecond
	}{
		{"paced", 1, ms / 2, 60 * ms, 8000},
		{"in bursts", 16, 8 * ms, 64 * ms, 8000},
		{"in a burst a span", 16, throughputSpan, 4 * throughputSpan, 16 * packet * 1_000_000 / uint64(throughputSpan)},
		{"for a long time", 16, 8 * ms, 8000 * ms, 8000},
		{"slow", 1, 40 * ms, 400 * ms, 100},
		{"too short", 1, ms / 2, 9 * ms, 0},
	} {
		var s Throughput
		now, bytes := int64(5), uint64(77)
		for s.Observe(now, bytes); now+c.every <= 5+c.after; s.Observe(now, bytes) {
			now += c.every
			bytes += c.packets * packet
			for range c.packets - 1 { // more packets of a burst
				s.Observe(now, bytes)
			}
		}
		if got := s.Rate(now, bytes); got != c.want {
			t.Errorf("%s: %d bytes a ms, expected %d", c.name, got, c.want)
		}
	}
}

// TestThroughputAfterSilence: the time since a flow's last packet counts once the next one has come, but not more than two spans of it.
func TestThroughputAfterSilence(t *testing.T) {
	var s Throughput
	s.Observe(1e9, 1000)
	s.Observe(61e9, 2000)
	s.Observe(61e9+200e6, 202_000)
	if got := s.Rate(61e9+200e6, 202_000); got != 1000 {
		t.Errorf("%d bytes a ms, expected 1000", got)
	}
}
