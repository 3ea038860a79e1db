package main

import (
	"math"
	"os"
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
	tables := portTables(map[string]float64{"fwd64_1k": 20e6})
	for _, row := range []string{
		"| 100G | 64-byte class | 148.8 M | 297.6 M | 15 (14.88) |", "| 400G | 4 KB payload | 11.97 M | 23.93 M | not measured |", "| 10ms | 119 MiB |",
	} {
		if !strings.Contains(tables, row) {
			t.Errorf("no %q in\n%s", row, tables)
		}
	}
}

// TestDocs: the document has its place for the tables, and keeps the rest.
func TestDocs(t *testing.T) {
	document, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	changed, err := replaceTables(string(document), "TABLES\n")
	if err != nil {
		t.Fatal(err)
	}
	again, err := replaceTables(changed, "TABLES\n")
	if err != nil || again != changed || !strings.Contains(changed, "TABLES") || !strings.HasPrefix(changed, string(document[:100])) {
		t.Errorf("%v; the document became\n%s", err, changed)
	}
	if _, err := replaceTables("nothing", "TABLES\n"); err == nil {
		t.Error("a document without a place for the tables was taken")
	}
}

// TestMarkdown: every row is there, with its figure or why it has none.
func TestMarkdown(t *testing.T) {
	r := result{Rows: []row{{Name: "fwd64_1k_csum", Unit: "Mpps", Peer: "testpmd csum", Wanted: 1}, {Name: "b", Error: "noisy: it is"}}}
	r.Rows[0].fill([]float64{30}, []float64{20}, 1)
	text := r.markdown()
	for _, part := range []string{"| `fwd64_1k_csum` |  | 30 | Mpps | testpmd csum | 20 | 1.5 | ≥ 1: met | 1 |", "| `b` |  | noisy: it is |", "| 10 (9.92) |"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}
