package main

import (
	"math"
	"strings"
	"testing"
	"time"
)

// TestPorts: the known figures of 100 Gbit/s Ethernet.
func TestPorts(t *testing.T) {
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"packets a second of 64 octets with FCS", packetsPerSecond(100e9, 60), 148_809_523.8},
		{"packets a second of 1518 octets with FCS", packetsPerSecond(100e9, 1514), 8_127_438.231},
		{"octets of 100 Gbit/s for 10 ms", bdp(100e9, 10*time.Millisecond), 125e6},
		{"octets of 400 Gbit/s for 100 ms", bdp(400e9, 100*time.Millisecond), 5e9},
		{"octets of a buffer for an MTU of 1500", bufferOctets(2048), 2624},
	} {
		if math.Abs(c.got/c.want-1) > 1e-8 {
			t.Errorf("%s: %f, expected %f", c.what, c.got, c.want)
		}
	}
	tables := portTables(map[string]float64{"nic64_1k_cold": 20e6})
	for _, row := range []string{
		"| 100G | 64-byte class | 148.8 M | 297.6 M | 15 (14.88) |", "| 400G | 4 KB payload | 11.97 M | 23.93 M | not measured |", "| 10ms | 119 MiB |",
	} {
		if !strings.Contains(tables, row) {
			t.Errorf("no %q in\n%s", row, tables)
		}
	}
}
