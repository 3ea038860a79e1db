package synth

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/transport"
)

// lossy are long connections that survive a loss of 50% each way, half of it before the tap.
func lossy() Config {
	const half = .29289 // lost before the tap, and lost behind it: 1-.29289^2 is .5
	return Config{Connections: 32, Messages: 40, Requesters: FromBoth, Timeouts: Timeouts{Retries: Forever},
		LossBefore: [2]float64{half, half}, LossAfter: [2]float64{half, half}}
}

// TestHalfLost: connections survive a loss of 50% each way and send all their messages.
func TestHalfLost(t *testing.T) {
	counts := map[string]int{}
	if err := checkRun(lossy(), counts); err != nil {
		t.Fatal(err)
	}
	if counts["NAK 3"] < 1000 || counts["resent"] < counts["request"]/2 {
		t.Errorf("%v", counts)
	}
	c := lossy()
	c.CM, c.Timeouts.MADs, c.Mix = true, 100, Mix{Send: 1, Write: 2, Read: 1, Atomic: 1}
	if err := checkRun(c, counts); err != nil {
		t.Fatal(err)
	}
	c = lossy()
	c.Timeouts.Retries = 1
	_, conns := run(c)
	failed := 0
	for _, c := range conns {
		if c.Failed {
			failed++
		}
	}
	if failed < len(conns)/2 {
		t.Errorf("%d of %d connections fail after a single retry, want most", failed, len(conns))
	}
}

// TestKindLoss: RequestLoss and ResponseLoss take away packets of their kind only.
func TestKindLoss(t *testing.T) {
	request := func(e *Event) bool { return e.Packet.Opcode&0x1f <= 0x0c || e.Packet.Opcode&0x1f >= 0x13 }
	response := func(e *Event) bool { return !request(e) }
	lost := func(e *Event) bool { return e.Lost }
	c := Config{Connections: 64, Messages: 20, Mix: Mix{Write: 3, Read: 1, Atomic: 1}, Timeouts: Timeouts{Retries: Forever}}
	c.ResponseLoss = KindLoss{After: [2]float64{WAN: .4}}
	events, _ := run(c)
	within(t, "lost requests", part(events, request, lost), 0, 0)
	within(t, "lost responses", part(events, response, lost), .4, .03)
	c.ResponseLoss, c.RequestLoss = KindLoss{}, KindLoss{After: [2]float64{Fabric: .4}}
	events, _ = run(c)
	within(t, "lost requests", part(events, request, lost), .4, .03)
	within(t, "lost responses", part(events, response, lost), 0, 0)
	c.RequestLoss = KindLoss{}
	c.ResponseLoss = KindLoss{Before: [2]float64{WAN: .4}}
	events, _ = run(c)
	for i := range events {
		if events[i].Lost {
			t.Fatalf("%+v is lost behind the tap", events[i])
		}
	}
	if again := part(events, request, func(e *Event) bool { return e.Resent }); again < .05 {
		t.Errorf("%.3f of the requests are sent again when responses are lost before the tap", again)
	}
	within(t, "NAKs when all requests arrive", part(events, response, func(e *Event) bool { return e.Syndrome == transport.SyndromeNAK }), 0, 0)
}

// early is traffic whose time-out is a tenth of the round trip, between sender and tap for the most part.
func early() Config {
	return Config{Connections: 4, MTU: 256, Sizes: [2]int{262_144, 262_144}, Messages: 20, Window: 8192, Gap: 100, Period: 1000,
		Delay: [2]int64{2_000_000, 500_000}, Timeouts: Timeouts{Requester: 500_000, Retries: Forever}}
}

// TestEarlyTimeouts: with a time-out below the round trip, requesters go back thousands of PSNs behind what the tap has seen acknowledged,
// again and again.
func TestEarlyTimeouts(t *testing.T) {
	tr := New(early())
	rules := newChecker(256, true)
	deep, deepest := 0, 0
	for e, ok := tr.Next(); ok; e, ok = tr.Next() {
		s := rules.end(e.Conn, Fabric, tr.Conns()[e.Conn].StartPSN[Fabric])
		if at := s.place(e.Packet.PSN); e.From == Fabric && at < s.next {
			deepest = max(deepest, s.acked-at)
			if s.acked-at > 1000 {
				deep++
			}
		}
		if err := rules.check(&e, tr.Conns()[e.Conn].StartPSN); err != nil {
			t.Fatal(err)
		}
	}
	if deep < 40 || deepest < 3000 {
		t.Errorf("%d goings back of more than 1,000 PSNs behind the last ACK, at most %d: %v", deep, deepest, rules.counts)
	}
	if err := checkEnd(tr, rules); err != nil {
		t.Error(err)
	}
}

// TestDuplicates: when ACKs come too late, or not at all, responders acknowledge duplicates by the latest PSN and answer READs and
// ATOMICs again. The checker holds them to it.
func TestDuplicates(t *testing.T) {
	c := early()
	c.Connections, c.Sizes, c.Mix = 16, [2]int{64, 4096}, Mix{Send: 1, Write: 1, Read: 1, Atomic: 1}
	c.ResponseLoss = KindLoss{After: [2]float64{WAN: .1}}
	counts := map[string]int{}
	if err := checkRun(c, counts); err != nil {
		t.Fatal(err)
	}
	if counts["answered again"] < 1000 || counts["ACK"] < 1000 {
		t.Errorf("%v", counts)
	}
}

// TestLongLives: connections that live for two seconds under a loss of 50% each way end, and their QPs are used again.
func TestLongLives(t *testing.T) {
	c := lossy()
	c.Connections, c.Messages, c.Lifetime, c.Generations, c.Reuse, c.StartPSN = 8, 1<<30, 1e9, 2, ReusePeerQP, PSNNear
	if err := checkRun(c, map[string]int{}); err != nil {
		t.Fatal(err)
	}
	_, conns := run(c)
	for i := range conns {
		if c := &conns[i]; c.Failed || c.End-c.Start != 1e9 || c.Packets[Fabric] < 1000 || c.Packets[WAN] < 1000 {
			t.Errorf("%+v", c)
		}
	}
}

// TestBottleneck: the queue's delay grows up to capacity / rate, and what overflows is lost.
func TestBottleneck(t *testing.T) {
	c := Config{Connections: 1, Messages: 50, Sizes: [2]int{65536, 65536}, Window: 256, Bottleneck: Bottleneck{Rate: 100_000_000, Capacity: 100_000},
		Timeouts: Timeouts{Requester: 50_000_000, Retries: Forever}}
	events, _ := run(c)
	sent := map[uint32]int64{}
	slowest, lost, carried := int64(0), 0, uint64(0)
	for i := range events {
		e := &events[i]
		switch {
		case e.Lost:
			lost++
		case e.From == Fabric:
			sent[e.Packet.PSN] = e.Time
			carried += uint64(e.Length())
		case e.Syndrome>>5 == 0:
			if at, ok := sent[e.Packet.PSN]; ok {
				slowest = max(slowest, e.Time-at-1_000_000) // round trip behind the tap
			}
		}
	}
	if slowest < 7_000_000 || slowest > 8_100_000 {
		t.Errorf("the queue delays by up to %d ns, want almost 8 ms", slowest)
	}
	if rate := float64(carried) * 8e9 / float64(events[len(events)-1].Time); rate > 1.02e8 {
		t.Errorf("%.0f bit/s pass a bottleneck of 100 Mbps", rate)
	}
	if lost < 100 {
		t.Errorf("%d packets overflow", lost)
	}
	c.Bottleneck.From = WAN
	events, _ = run(c)
	within(t, "lost, of ACKs", part(events, func(*Event) bool { return true }, func(e *Event) bool { return e.Lost }), 0, 0)
}

// TestNAKs: a responder refuses each request that is out of sequence, or each gap once; an RNR NAK is repeated as often as it is to be.
func TestNAKs(t *testing.T) {
	c := Config{Connections: 32, Messages: 20, Sizes: [2]int{16384, 16384}, Timeouts: Timeouts{Retries: Forever},
		RequestLoss: KindLoss{After: [2]float64{Fabric: .05}}}
	count := func(c Config) map[string]int {
		counts := map[string]int{}
		if err := checkRun(c, counts); err != nil {
			t.Fatal(err)
		}
		return counts
	}
	once := count(c)
	c.NAKs.Every = true
	each := count(c)
	if each["NAK 3"] < 3*once["NAK 3"] || each["back"] < 2*once["back"] {
		t.Errorf("NAKs for each request: %v\none for each gap: %v", each, once)
	}
	c = Config{Connections: 32, Messages: 20, Mix: Mix{Send: 1}, RNR: 1, NAKs: NAKs{RNRAgain: .75}}
	if got := count(c); got["NAK 1"] < 32*20*3 || got["NAK 1"] > 32*20*5 {
		t.Errorf("%d RNR NAKs of %d SENDs, want 4 of each", got["NAK 1"], 32*20)
	}
}

// TestPSNNear: a connection begins near the PSN at which the one before has ended, whatever the kind of reuse.
func TestPSNNear(t *testing.T) {
	for reuse := ReusePeerQP; reuse <= ReuseShuffled; reuse++ {
		_, conns := run(Config{StartPSN: PSNNear, Near: [2]uint32{50, 100}, Reuse: reuse, Generations: 3,
			Connections: 30, Messages: 4, Requesters: FromBoth, Hosts: [2]int{1, 2}, Schedule: Lockstep})
		to := map[[2]uint32]uint32{} // by side and QPN: the PSN after the last that went there
		behind, followed := 0, 0
		for i := range conns {
			c := &conns[i]
			for end := range 2 {
				last, again := c.near[end], c.Before >= 0
				if reuse == ReuseShuffled && again {
					last = to[[2]uint32{uint32(1 - end), c.QP[1-end]}]
				}
				if d := int32((c.StartPSN[end]-last)<<8) >> 8; again && (d < -50 || d > 100) {
					t.Fatalf("reuse %d: start PSN %d is %d from where the last connection ended", reuse, c.StartPSN[end], d)
				} else if again {
					followed++
					if d < 0 {
						behind++
					}
				}
			}
			for end := range 2 {
				to[[2]uint32{uint32(1 - end), c.QP[1-end]}] = c.NextPSN[end]
			}
		}
		within(t, "begin behind", float64(behind)/float64(followed), 1./3, .12)
	}
}
