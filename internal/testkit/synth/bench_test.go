package synth

import "testing"

// BenchmarkNext counts events; one core.
func BenchmarkNext(b *testing.B) {
	for _, c := range []struct {
		name string
		Config
	}{
		{"write", Config{}},
		{"lockstep", Config{Schedule: Lockstep, StartPSN: PSNZero, Ports: PortsEqual, QPNs: QPSequential}},
		{"small", Config{Sizes: [2]int{64, 1024}}},
		{"all", Config{IPv6: true, Hosts: [2]int{4, 4}, Transports: Transports{4, 1, 1, 1}, Mix: Mix{2, 1, 2, 1, 2, 1}, CM: true, Requesters: FromBoth,
			LossBefore: [2]float64{.01, .01}, LossAfter: [2]float64{.01, .01}, Reorder: .01, CE: .01, RNR: .01, Generations: 3,
			Attack: Attack{Interval: 10_000, ACK: true, CNP: true, CM: true, KnowsQPs: true}}},
		{"half lost, bottleneck", Config{LossBefore: [2]float64{.3, .3}, LossAfter: [2]float64{.3, .3}, Timeouts: Timeouts{Retries: Forever},
			Bottleneck: Bottleneck{Rate: 10_000_000_000, Capacity: 4_000_000}, NAKs: NAKs{Every: true}}},
	} {
		c.Messages = 1 << 30
		b.Run(c.name, func(b *testing.B) {
			t := New(c.Config)
			for range 1 << 17 { // until all memory there will be is there
				t.Next()
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := t.Next(); !ok {
					b.Fatal("came to an end")
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
}

// BenchmarkRun is the price of a whole run of 256 connections with a few messages each, memory and all: what a test that pairs many
// QPs pays for a connection.
func BenchmarkRun(b *testing.B) {
	events := 0
	for i := 0; b.Loop(); i++ {
		t := New(Config{Seed: uint64(i), Messages: 8, Sizes: [2]int{256, 4096}})
		for _, ok := t.Next(); ok; _, ok = t.Next() {
			events++
		}
	}
	n := float64(b.N) * 256
	b.ReportMetric(float64(events)/n, "events/conn")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/conn")
}

func BenchmarkHead(b *testing.B) {
	e, _ := New(Config{}).Next()
	var head [HeadLen]byte
	for b.Loop() {
		Head(&e, head[:])
	}
}
