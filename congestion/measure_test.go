package congestion

import (
	"testing"

	"pgregory.net/rapid"
)

// TestMeasurement: rates of packets in steady rhythms and in bursts; a gap begins the measurement again.
func TestMeasurement(t *testing.T) {
	for _, c := range []struct {
		name    string
		every   int64 // ns
		burst   int   // packets at once
		rate    uint64
		packets int // until the rate is known; 0: never
	}{
		{"10 Gbit/s", 1_000, 1, 10e9, 51},
		{"bursts", 10_000, 8, 8e9, 5*8 + 1},
		{"a slow flow", 1_000_000, 1, 10e6, 2},
		{"a packet in 10 ms", 10_000_000, 1, 1e6, 2},
		{"less than that", 10_000_001, 1, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var m Measurement
			now := int64(1e9)
			for n := 1; n <= 200; n++ {
				rate, complete := m.Add(1250, now)
				if complete {
					if n != c.packets || rate != c.rate {
						t.Errorf("%d bit/s after %d packets, expected %d after %d", rate, n, c.rate, c.packets)
					}
					return
				}
				if n%c.burst == 0 {
					now += c.every
				}
			}
			if c.packets != 0 {
				t.Error("the rate isn't known after 200 packets")
			}
		})
	}
}

// TestMeasurementProperties: a rate is between those of the fastest and the slowest interval, whatever the packets.
func TestMeasurementProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Measurement
		now := rapid.Int64Range(0, 1e15).Draw(t, "begin")
		for range 100 {
			if rate, complete := m.Add(rapid.Uint32Range(64, 9000).Draw(t, "bytes"), now); complete {
				if least, most := uint64(64*8e9/10e6), uint64(9000*8e9/10); rate < least || rate > most {
					t.Fatalf("%d bit/s, expected %d to %d", rate, least, most)
				}
				return
			}
			now += rapid.Int64Range(10, 10_000_000).Draw(t, "ns")
		}
	})
}
