package sim_test

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/sim"
)

const (
	microsecond = 1000
	millisecond = 1000 * microsecond
)

// star is hosts at one switch.
func star(hosts int, rate uint64, delay int64) sim.Config {
	n := sim.Network{Switch: sim.SwitchConfig{Buffer: 32 << 20, Alpha: 1, EgressAlpha: 1}, Overhead: 24, MaxFrame: 4224, Seed: 1}
	for i := range hosts {
		n.Nodes = append(n.Nodes, sim.Node{Name: fmt.Sprint("host ", i), Kind: sim.HostNode})
		n.Links = append(n.Links, sim.Link{A: i, B: hosts, Rate: rate, Delay: delay, PFC: true})
	}
	n.Nodes = append(n.Nodes, sim.Node{Name: "switch", Kind: sim.SwitchNode})
	return sim.Config{
		Network: n, Length: 100 * millisecond, Sample: 10 * microsecond,
		Host: endpoint.Config{MTU: 4096, AckDSCP: 48, AckEvery: 1, Reaction: endpoint.ReactionConfig{Algorithm: endpoint.DCQCN}},
	}
}

func run(t interface {
	Helper()
	Fatal(...any)
}, c sim.Config) (*sim.Result, *sim.Series) {
	t.Helper()
	s, err := sim.New(&c)
	if err != nil {
		t.Fatal(err)
	}
	for more := true; more; {
		if more, err = s.Run(1000); err != nil {
			t.Fatal(err)
		}
	}
	r, err := s.Result()
	if err != nil {
		t.Fatal(err)
	}
	return r, s.Series()
}

// TestAlone: a single flow takes its ideal time, for any size, rate and delay.
func TestAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := star(2, rapid.Uint64Range(1e9, 400e9).Draw(t, "rate"), rapid.Int64Range(0, 400*microsecond).Draw(t, "delay"))
		c.Length = 1000 * millisecond
		c.Network.Links[0].PFC, c.Network.Links[1].PFC = false, false // which would need much headroom
		c.Flows = []sim.Flow{{From: 0, To: 1, Bytes: rapid.Int64Range(1, 5e6).Draw(t, "bytes"), Start: rapid.Int64Range(0, millisecond).Draw(t, "start")}}
		r, _ := run(t, c)
		took := float64(r.All.MeanFCT)
		const roundedDown = 4 // ns: each of four lines can round one down
		if ideal := took / r.All.MeanSlowdown; r.All.Finished != 1 || math.Abs(took-ideal) > roundedDown+ideal/500 || r.Retransmitted != 0 {
			t.Fatalf("%d flows finished, slowdown %v, %d packets sent again; want 1, 1.00 and none", r.All.Finished, r.All.MeanSlowdown, r.Retransmitted)
		}
	})
}

func incast(c *sim.Config, senders int, bytes int64) {
	for i := range senders {
		c.Flows = append(c.Flows, sim.Flow{From: i, To: senders, Bytes: bytes})
	}
}

// TestPFC: with PFC no frame is dropped, however small the buffer is beyond the headroom; without, frames are.
func TestPFC(t *testing.T) {
	for _, c := range []struct {
		name  string
		pfc   bool
		alpha float64
	}{{"with", true, 1}, {"with little of the buffer for each port", true, 1.0 / 16}, {"without", false, 1}} {
		t.Run(c.name, func(t *testing.T) {
			config := star(9, 100e9, microsecond)
			config.Network.Switch.Buffer, config.Network.Switch.Alpha = 1<<20, c.alpha
			for i := range config.Network.Links {
				config.Network.Links[i].PFC = c.pfc
			}
			config.Host.Reaction.Algorithm = endpoint.NoControl
			incast(&config, 8, 5e6)
			r, _ := run(t, config)
			if dropped := r.Dropped > 0; dropped == c.pfc || (r.Pauses > 0) != c.pfc {
				t.Errorf("%d frames dropped, %d pauses", r.Dropped, r.Pauses)
			}
			if c.pfc && (r.All.Finished != 8 || r.Paused != 0 || r.All.Goodput < 95e9) {
				t.Errorf("%d flows finished with %v bit/s, ports of the switch stopped for %d ns; want 8 at the line's rate", r.All.Finished, r.All.Goodput, r.Paused)
			}
		})
	}
}

// TestPFCStopsSwitches: a switch stops the switch before it, and nothing is lost.
func TestPFCStopsSwitches(t *testing.T) {
	c := star(3, 100e9, microsecond)
	c.Network.Nodes = append(c.Network.Nodes, sim.Node{Name: "second switch", Kind: sim.SwitchNode})
	c.Network.Links[2].B = 4 // the receiver is at the second switch
	c.Network.Links = append(c.Network.Links, sim.Link{A: 3, B: 4, Rate: 400e9, Delay: microsecond, PFC: true})
	c.Network.Switch.Buffer = 1 << 20
	c.Host.Reaction.Algorithm = endpoint.NoControl
	incast(&c, 2, 20e6)
	r, _ := run(t, c)
	if r.Dropped != 0 || r.Paused == 0 || r.All.Finished != 2 {
		t.Errorf("%d frames dropped, ports stopped for %d ns, %d flows finished; want none, some time, 2", r.Dropped, r.Paused, r.All.Finished)
	}
}

// TestECN: if a queue stays between the thresholds, they determine the fraction of marked packets; nothing is marked below K_min.
func TestECN(t *testing.T) {
	for _, c := range []struct {
		name        string
		kMin, kMax  int64
		least, most float64 // of the packets
	}{
		{"never", 1 << 30, 1 << 31, 0, 0},
		{"always", 0, 0, 0.99, 1.01},
		{"sometimes", 0, 1 << 20, 0.6, 0.8}, // two windows of 400 KB wait, less what is on the way
	} {
		t.Run(c.name, func(t *testing.T) {
			config := star(3, 100e9, microsecond)
			config.Network.Switch.ECN = []sim.ECN{{KMin: c.kMin, KMax: c.kMax, PMax: 1}}
			config.Host.Reaction.Algorithm = endpoint.NoControl
			config.Host.Window = 400_000
			incast(&config, 2, 10e6)
			r, _ := run(t, config)
			packets := 2 * 10e6 / 4096
			if part := float64(r.Marked) / packets; part < c.least || part > c.most {
				t.Errorf("%.3f of the packets are marked, want %v to %v", part, c.least, c.most)
			}
		})
	}
}

// TestDCQCN: with ECN, DCQCN keeps the queue short, shares the link evenly, and uses it.
func TestDCQCN(t *testing.T) {
	c := star(5, 100e9, microsecond)
	c.Network.Switch.ECN = []sim.ECN{{KMin: 100e3, KMax: 400e3, PMax: 0.2}}
	incast(&c, 4, 300e6)
	c.Length = 200 * millisecond
	r, series := run(t, c)
	if r.All.Finished != 4 || r.Jain < 0.98 || r.All.Goodput < 80e9 || r.Switch.P99 > 1e6 || r.Dropped != 0 {
		t.Errorf("%d flows finished, Jain %.3f, %v bit/s, p99 queue %d, %d dropped", r.All.Finished, r.Jain, r.All.Goodput, r.Switch.P99, r.Dropped)
	}
	if r.SlowDown <= 0 || r.SlowDown > 100*microsecond || series.CNPs[len(series.CNPs)-1] == 0 {
		t.Errorf("the first sender slowed down after %d ns, %d CNPs", r.SlowDown, series.CNPs[len(series.CNPs)-1])
	}
}

// TestLoss: flows survive random loss on a link; lost packets are counted, and retransmitted.
func TestLoss(t *testing.T) {
	c := star(2, 10e9, microsecond)
	c.Network.Links[0].Loss = 0.01
	c.Flows = []sim.Flow{{From: 0, To: 1, Bytes: 20e6}}
	r, _ := run(t, c)
	if r.All.Finished != 1 || r.Lost < 20 || r.Retransmitted < r.Lost/2 {
		t.Errorf("%d flows finished, %d frames lost, %d sent again", r.All.Finished, r.Lost, r.Retransmitted)
	}
}

// spines is two ToR switches with as many spines between them, and two hosts.
func spines(n int) sim.Config {
	c := star(2, 100e9, microsecond)
	c.Network.Nodes = append(c.Network.Nodes, sim.Node{Name: "other ToR", Kind: sim.SwitchNode})
	c.Network.Links[1].B = 3
	for i := range n {
		c.Network.Nodes = append(c.Network.Nodes, sim.Node{Name: "spine", Kind: sim.SwitchNode})
		c.Network.Links = append(c.Network.Links, sim.Link{A: 2, B: 4 + i, Rate: 10e9, Delay: microsecond}, sim.Link{A: 3, B: 4 + i, Rate: 10e9, Delay: microsecond})
	}
	return c
}

// TestECMP: many flows use all of four paths, and one flow uses one of them, in order.
func TestECMP(t *testing.T) {
	c := spines(4)
	c.Host.Reaction.Algorithm = endpoint.NoControl
	for range 64 {
		c.Flows = append(c.Flows, sim.Flow{From: 0, To: 1, Bytes: 5e6})
	}
	if r, _ := run(t, c); r.All.Goodput < 25e9 {
		t.Errorf("64 flows get %v bit/s of four ways with 10 Gbps each", r.All.Goodput)
	}
	c.Flows = c.Flows[:1]
	if r, _ := run(t, c); r.All.Goodput > 10e9 {
		t.Errorf("one flow gets %v bit/s of ways with 10 Gbps each", r.All.Goodput)
	}
}

// TestAfter: flows begin when those have ended that they wait for.
func TestAfter(t *testing.T) {
	c := star(3, 100e9, microsecond)
	c.Flows = []sim.Flow{{From: 0, To: 1, Bytes: 1e6}, {From: 0, To: 2, Bytes: 2e6}, {From: 1, To: 2, Bytes: 1e6, After: [2]int{1, 2}, Start: millisecond}}
	r, _ := run(t, c)
	if r.All.Finished != 3 || r.Ended < millisecond+320*microsecond || r.Ended > millisecond+420*microsecond {
		t.Errorf("%d flows finished, the last at %d ns; want 3, a little after the second's 250 us, a pause of 1 ms, and 80 us", r.All.Finished, r.Ended)
	}
}

// TestSameSeed: the same seed gives the same result and series; another seed another one.
func TestSameSeed(t *testing.T) {
	c := star(5, 100e9, microsecond)
	c.Network.Switch.ECN = []sim.ECN{{KMin: 100e3, KMax: 400e3, PMax: 0.2}}
	c.Network.Links[1].Loss = 0.001
	incast(&c, 4, 20e6)
	first, series := run(t, c)
	again, seriesAgain := run(t, c)
	if !reflect.DeepEqual(first, again) || !reflect.DeepEqual(series, seriesAgain) {
		t.Errorf("the same seed gave\n%+v\nand then\n%+v", first, again)
	}
	c.Network.Seed = 2
	if other, _ := run(t, c); reflect.DeepEqual(first, other) {
		t.Error("another seed gave the same result")
	}
}

// TestAllocations: once the network has its working size, an event allocates nothing, except that series and queues grow now and then.
func TestAllocations(t *testing.T) {
	c := star(9, 100e9, microsecond)
	c.Network.Switch.ECN = []sim.ECN{{KMin: 100e3, KMax: 400e3, PMax: 0.2}}
	c.Sample = 100 * microsecond
	incast(&c, 8, 1e9)
	s, err := sim.New(&c)
	if err != nil {
		t.Fatal(err)
	}
	const events = 10_000
	step := func() {
		if more, err := s.Run(events); !more || err != nil {
			t.Fatal(more, err)
		}
	}
	for range 20 {
		step()
	}
	if n := testing.AllocsPerRun(20, step); n > 10 {
		t.Errorf("%v allocations in %d events, want 10 at most", n, events)
	}
}

// TestChange: a link that is slower for a time takes as much longer, and the possible goodput accounts for it.
func TestChange(t *testing.T) {
	const bytes = 4096 * 10_000 // 3.4 ms at 100 Gbps
	took := func(changes ...sim.Change) (time, possible float64) {
		c := star(2, 100e9, microsecond)
		c.Network.Changes = changes
		c.Flows = []sim.Flow{{From: 0, To: 1, Bytes: bytes}}
		r, _ := run(t, c)
		return float64(r.All.MeanFCT), r.Possible
	}
	plain, most := took()
	slow, less := took(sim.Change{At: millisecond, Link: 1, Rate: 50e9}, sim.Change{At: 3 * millisecond, Link: 1, Rate: 100e9})
	if extra := slow - plain; math.Abs(extra-millisecond) > 0.01*millisecond {
		t.Errorf("2 ms at half the rate take %v ns more, want 1 ms", extra)
	}
	for _, c := range []struct{ time, possible float64 }{{plain, most}, {slow, less}} {
		if got := bytes * 8e9 / c.time; got > c.possible || got < 0.99*c.possible {
			t.Errorf("%v bit/s of the possible %v", got, c.possible)
		}
	}
}

// TestBursts: a flow of bursts takes until the last is acknowledged, and is as fast as it can be alone.
func TestBursts(t *testing.T) {
	c := star(2, 100e9, microsecond)
	c.Flows = []sim.Flow{{From: 0, To: 1, Bytes: 10 * 1_000_000, Bursts: 10, Every: millisecond}}
	r, _ := run(t, c)
	if got := r.All.MeanFCT; got < 9*millisecond+80_000 || got > 9*millisecond+95_000 || r.All.P99Slowdown > 1.01 {
		t.Errorf("10 bursts of 1 MB, one each ms, take %d ns, %v of the least time", got, r.All.P99Slowdown)
	}
}

// TestRefused: what can't be simulated is an error.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(c *sim.Config)
	}{
		{"a link to itself", func(c *sim.Config) { c.Network.Links[0].B = 0 }},
		{"too many hosts", func(c *sim.Config) {
			for range 12_000 {
				c.Network.Nodes = append(c.Network.Nodes, sim.Node{Kind: sim.HostNode})
				c.Network.Links = append(c.Network.Links, sim.Link{A: len(c.Network.Nodes) - 1, B: 2, Rate: 1e9})
			}
		}},
		{"a host with two links", func(c *sim.Config) { c.Network.Links[1].A = 0 }},
		{"hosts that no way connects", func(c *sim.Config) {
			c.Network.Nodes = append(c.Network.Nodes, sim.Node{Kind: sim.SwitchNode})
			c.Network.Links[1].B = 3
		}},
		{"a link without a rate", func(c *sim.Config) { c.Network.Links[0].Rate = 0 }},
		{"a loss above 1", func(c *sim.Config) { c.Network.Links[0].Loss = math.NaN() }},
		{"headroom beyond the buffer", func(c *sim.Config) { c.Network.Links[0].Delay = 10 * millisecond }},
		{"a link that becomes faster than it is", func(c *sim.Config) { c.Network.Changes = []sim.Change{{At: 1, Rate: 200e9}} }},
		{"a change of a link that isn't there", func(c *sim.Config) { c.Network.Changes = []sim.Change{{At: 1, Link: 2, Rate: 1e9}} }},
		{"changes in another order than in time", func(c *sim.Config) {
			c.Network.Changes = []sim.Change{{At: 2, Rate: 1e9}, {At: 1, Rate: 1e9}}
		}},
		{"bursts of unequal size", func(c *sim.Config) { c.Flows[0].Bursts, c.Flows[0].Every = 2, 1 }},
		{"a flow to itself", func(c *sim.Config) { c.Flows[0].To = 0 }},
		{"a flow without bytes", func(c *sim.Config) { c.Flows[0].Bytes = 0 }},
		{"a flow that waits for itself", func(c *sim.Config) { c.Flows[0].After[1] = 1 }},
		{"no time", func(c *sim.Config) { c.Length = 0 }},
		{"thresholds the wrong way round", func(c *sim.Config) { c.Network.Switch.ECN = []sim.ECN{{KMin: 2, KMax: 1}} }},
		{"a gateway without a dataplane", func(c *sim.Config) { c.Network.Nodes[2].Kind = sim.GatewayNode }},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := star(2, 100e9, microsecond)
			config.Flows = []sim.Flow{{From: 0, To: 1, Bytes: 1}}
			c.change(&config)
			if _, err := sim.New(&config); err == nil {
				t.Error("it was accepted")
			}
		})
	}
}

// TestTooManyPackets: exceeding the packet limit is an error, not a crash, even if the simulation ends before the next check.
func TestTooManyPackets(t *testing.T) {
	for _, events := range []int{1000, 1 << 30} {
		c := star(2, 100e9, 10*millisecond)
		c.Network.Links[0].PFC, c.Network.Links[1].PFC = false, false
		c.Network.MaxPackets = 100
		c.Flows = []sim.Flow{{From: 0, To: 1, Bytes: 100e6}}
		s, err := sim.New(&c)
		for more := true; more && err == nil; {
			more, err = s.Run(events)
		}
		if err == nil {
			t.Errorf("%d events at a time: more than 100 packets were in the network", events)
		}
	}
}

// TestNoSuchHost: packets to an address that no host has are counted as dropped.
func TestNoSuchHost(t *testing.T) {
	c := star(2, 100e9, microsecond)
	c.EachHost = func(host int, e *endpoint.Config) {
		if host == 1 {
			e.Addr.Hi++
		}
	}
	c.Flows = []sim.Flow{{From: 0, To: 1, Bytes: 1000}}
	if r, _ := run(t, c); r.Dropped == 0 || r.All.Finished != 0 {
		t.Errorf("%d packets dropped, %d flows finished", r.Dropped, r.All.Finished)
	}
}

// TestPossible: no flows are faster than the bound, a single one attains it, and flows over one link share the link.
func TestPossible(t *testing.T) {
	c := star(5, 100e9, microsecond)
	c.Length = 1000 * millisecond
	c.Flows = []sim.Flow{{From: 0, To: 4, Bytes: 10e6}}
	if r, _ := run(t, c); math.Abs(r.Possible-r.All.Goodput) > r.Possible/1000 {
		t.Errorf("one flow: %v bit/s, possible are %v", r.All.Goodput, r.Possible)
	}
	c.Flows = nil
	incast(&c, 4, 10e6)
	if r, _ := run(t, c); r.Possible < 97.0e9 || r.Possible > 97.6e9 || r.All.Goodput > r.Possible {
		t.Errorf("four flows to one host: %v bit/s, possible are %v", r.All.Goodput, r.Possible)
	}
	c.Flows = []sim.Flow{{From: 0, To: 1, Bytes: 10e6}, {From: 2, To: 3, Bytes: 10e6, After: [2]int{1, 0}}}
	if r, _ := run(t, c); math.Abs(r.Possible-r.All.Goodput) > r.Possible/1000 {
		t.Errorf("one flow after another: %v bit/s, possible are %v", r.All.Goodput, r.Possible)
	}
}

// TestManyEvents: all CNPs are in the series.
func TestManyEvents(t *testing.T) {
	c := star(2, 400e9, microsecond)
	c.Network.Switch.ECN = []sim.ECN{{}} // marks each packet
	c.Host.MTU, c.Host.CNPInterval, c.Host.Reaction.Algorithm = 256, 1, endpoint.NoControl
	c.Flows = []sim.Flow{{From: 0, To: 1, Bytes: 20e6}}
	r, series := run(t, c)
	if got := uint64(series.CNPs[len(series.CNPs)-1]); got > r.CNPs || r.CNPs-got > 1000 || r.CNPs < 1<<16 {
		t.Errorf("%d CNPs by the last sample; %d at the end", got, r.CNPs)
	}
}
