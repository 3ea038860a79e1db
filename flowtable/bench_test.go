package flowtable

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

var benchSizes = []struct {
	name  string
	flows int
}{{"1Ki", 1 << 10}, {"1Mi", 1 << 20}}

// filled returns a full table and its keys.
func filled(b *testing.B, flows int) (*Table, []packet.Record) {
	rng := rand.New(rand.NewPCG(1, 2))
	tab := newTable(b, Config{Capacity: flows, Aging: 1e9, Seed: 3})
	keys := records(randomKeys(flows, rng.Uint64)...)
	tab.Lookup(keys, 1, make([]Ref, flows))
	return tab, keys
}

func reportFlows(b *testing.B, perOp int, flows int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*perOp), "ns/key")
	b.ReportMetric(float64(Size(flows))/float64(flows), "bytes/flow")
}

// BenchmarkLookup finds bursts of 64 random keys.
func BenchmarkLookup(b *testing.B) {
	for _, c := range benchSizes {
		b.Run(c.name, func(b *testing.B) {
			tab, keys := filled(b, c.flows)
			rng := rand.New(rand.NewPCG(4, 5))
			bursts := make([][64]packet.Record, max(16, c.flows/64)) // bursts in random order, in memory that is read in order
			for i := range bursts {
				for j := range bursts[i] {
					bursts[i][j] = keys[rng.IntN(len(keys))]
				}
			}
			var out [64]Ref
			now := int64(2)
			for i := 0; b.Loop(); i++ {
				tab.Lookup(bursts[i%len(bursts)][:], now, out[:])
				now++
			}
			reportFlows(b, 64, c.flows)
		})
	}
}

// BenchmarkLookupFirst compares the assembly with its twin in Go. With the build tag purego both are the twin.
func BenchmarkLookupFirst(b *testing.B) {
	for _, c := range benchSizes {
		for _, twin := range []struct {
			name   string
			lookup func(*Table, []packet.Record, int64, []Ref) uint64
		}{{"assembly", lookupFirst}, {"Go", lookupFirstGo}} {
			b.Run(c.name+"/"+twin.name, func(b *testing.B) {
				tab, packets := filled(b, c.flows)
				rng := rand.New(rand.NewPCG(4, 5))
				rng.Shuffle(len(packets), func(i, j int) { packets[i], packets[j] = packets[j], packets[i] })
				var out [64]Ref
				at := 0
				for b.Loop() {
					twin.lookup(tab, packets[at:at+64], 2, out[:])
					at = (at + 64) % len(packets)
				}
				reportFlows(b, 64, c.flows)
			})
		}
	}
}

// BenchmarkLookupAndSweep is BenchmarkLookup with the sweep that goes with each burst.
func BenchmarkLookupAndSweep(b *testing.B) {
	tab, keys := filled(b, 1<<20)
	rng := rand.New(rand.NewPCG(4, 5))
	bursts := make([][64]packet.Record, 1<<14)
	for i := range bursts {
		for j := range bursts[i] {
			bursts[i][j] = keys[rng.IntN(len(keys))]
		}
	}
	var out [64]Ref
	now := int64(2)
	for i := 0; b.Loop(); i++ {
		tab.Lookup(bursts[i%len(bursts)][:], now, out[:])
		tab.Sweep(now)
		now += 2000
	}
	reportFlows(b, 64, 1<<20)
}

// BenchmarkInsert adds flows to a table with free entries, in bursts of 64.
func BenchmarkInsert(b *testing.B) {
	for _, c := range benchSizes {
		b.Run(c.name, func(b *testing.B) {
			tab, keys := filled(b, c.flows)
			var out [64]Ref
			at := c.flows
			for b.Loop() {
				if at == c.flows { // all keys are in the table, begin again
					b.StopTimer()
					tab = newTable(b, Config{Capacity: c.flows, Aging: 1e9, Seed: 3})
					at = 0
					b.StartTimer()
				}
				tab.Lookup(keys[at:at+64], 1, out[:])
				at += 64
			}
			reportFlows(b, 64, c.flows)
		})
	}
}

// BenchmarkInsertFull adds flows to a full table, in bursts of 64; each evicts another.
func BenchmarkInsertFull(b *testing.B) {
	for _, c := range benchSizes {
		b.Run(c.name, func(b *testing.B) {
			tab, _ := filled(b, c.flows)
			rng := rand.New(rand.NewPCG(4, 5))
			keys := records(randomKeys(2*c.flows, rng.Uint64)...)
			var out [64]Ref
			now := int64(2)
			for at := 0; b.Loop(); at = (at + 64) % len(keys) {
				tab.Lookup(keys[at:at+64], now, out[:])
				now++
			}
			reportFlows(b, 64, c.flows)
			b.ReportMetric(float64(tab.Stats().Evictions)/float64(b.N*64), "evictions/key")
		})
	}
}

// BenchmarkFind measures a lookup by another goroutine.
func BenchmarkFind(b *testing.B) {
	for _, c := range benchSizes {
		b.Run(c.name, func(b *testing.B) {
			tab, keys := filled(b, c.flows)
			for i := uint64(0); b.Loop(); i++ {
				if _, _, ok := tab.Find(KeyOf(&keys[i*0x9e3779b97f4a7c15>>32%uint64(len(keys))])); !ok {
					b.Fatal("not found")
				}
			}
		})
	}
}

func ExampleSize() {
	fmt.Println(Size(1<<20)/(1<<20), "bytes a flow")
	// Output: 92 bytes a flow
}
