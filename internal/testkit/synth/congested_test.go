package synth

import "testing"

// congested is traffic like that of the real capture rc_write_congested_v4: WRITEs of Soft-RoCE on 4 QPs with path MTU 256, through a
// port of 5 Mbps and 512 KB, so that a full queue delays by six time-outs.
func congested() Config {
	return Config{Connections: 4, MTU: 256, Sizes: [2]int{16384, 16384}, Messages: 1 << 30, Window: 129, AckFull: NoAckIfFull,
		Gap: 2000, Period: 1000,
		Delay: [2]int64{10_000_000, 100_000}, RequestLoss: KindLoss{After: [2]float64{Fabric: .05}},
		Bottleneck: Bottleneck{From: Fabric, Rate: 5_000_000, Capacity: 512_000},
		Timeouts:   Timeouts{Requester: 130_000_000, Retries: Forever}, Duration: 115e9}
}

// TestCongested compares generated traffic with the capture's 115 s. These statistics agree, the capture's first:
//
//	requests                                                    441,000   467,000
//	of these, lost behind the tap                                  0.50      0.43
//	of these, retransmitted                                        0.88      0.93
//	packets from one going back to the next                         141       133
//	part of goings back that end behind the last ACK seen         0.055     0.055
//	NAKs for each going back                                       0.47      0.57
//
// One doesn't: duplicates reach Soft-RoCE less often than the generator's responder, which sends three times as many ACKs for them.
// So the share of NAKs in the responses is 0.013, where the capture has 0.033.
func TestCongested(t *testing.T) {
	tr := New(congested())
	rules := newChecker(256, true)
	lost := 0.0
	for e, ok := tr.Next(); ok; e, ok = tr.Next() {
		if err := rules.check(&e, tr.Conns()[e.Conn].StartPSN); err != nil {
			t.Fatal(err)
		}
		if e.Lost && e.From == Fabric {
			lost++
		}
	}
	n := func(what string) float64 { return float64(rules.counts[what]) }
	within(t, "lost behind the tap", lost/n("request"), .45, .05)
	within(t, "retransmitted", n("resent")/n("request"), .90, .05)
	within(t, "packets between goings back", n("request")/n("back"), 137, 15)
	within(t, "goings back that end behind the last ACK", n("back behind the acknowledged")/n("back"), .055, .02)
	within(t, "NAKs for each going back", n("NAK 3")/n("back"), .55, .1)
	within(t, "NAKs in the responses", n("NAK 3")/(n("NAK 3")+n("ACK")), .024, .015)
	for _, c := range tr.Conns() {
		if c.Failed || c.Packets[Fabric] < 50_000 {
			t.Errorf("a connection failed or starved: %+v", c)
		}
	}
}
