package flowtable

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/synth"
)

// scene is traffic of one kind, with what must come of it besides that no packet's flow is ever confirmed with a wrong source QP.
type scene struct {
	name   string
	config synth.Config
	recall float64 // at least that part of the flows that can be told apart ends confirmed; 0: none need
}

var lossy = [2]float64{.01, .01}

// scenes are all ways of choosing ports and first PSNs, in step and not, over clean and bad networks.
func scenes() (all []scene) {
	ports := map[string]synth.Ports{
		"symmetric": synth.PortsSymmetric, "flow-label": synth.PortsFlowLabel, "random": synth.PortsRandom,
		"asymmetric": synth.PortsAsymmetric, "equal": synth.PortsEqual, "spray": synth.PortsSpray, "borrowed": synth.PortsBorrowed,
	}
	starts := map[string]synth.StartPSN{"random": synth.PSNRandom, "zero": synth.PSNZero, "wrap": synth.PSNWrap}
	for p, port := range ports {
		for s, start := range starts {
			recall := 0.
			switch {
			case p == "symmetric":
				recall = .999
			case p == "borrowed":
				recall = .98
			case p == "flow-label" || p == "random":
				recall = .999
			case s == "random":
				recall = .998 // PSNs alone tell: some begin within a window of another flow's
			}
			c := synth.Config{Ports: port, StartPSN: start}
			if s != "random" {
				c.Messages = 32
			}
			add := func(name string, recall float64, change func(*synth.Config)) {
				d := c
				change(&d)
				all = append(all, scene{fmt.Sprintf("ports %s, PSNs %s, %s", p, s, name), d, recall})
			}
			add("free", recall, func(*synth.Config) {})
			add("lockstep", recall, func(c *synth.Config) { c.Schedule = synth.Lockstep })
			add("bad network", recall, func(c *synth.Config) {
				c.LossBefore, c.LossAfter, c.Reorder, c.Coalesce = lossy, lossy, .01, 2
			})
			if s == "wrap" {
				continue
			}
			hidden, cm := 0., .99
			if p == "equal" && s == "zero" {
				cm = 0 // none can be told apart without RDMA-CM, which recall doesn't count
			}
			if p == "symmetric" {
				hidden = .999
			}
			add("half seen, lockstep", hidden, func(c *synth.Config) { c.Sight, c.Schedule = synth.SeeMixed, synth.Lockstep })
			add("half seen, mixed, bad network", hidden, func(c *synth.Config) {
				c.Sight, c.LossAfter, c.LossBefore, c.Mix = synth.SeeMixed, lossy, lossy, synth.Mix{Send: 1, Write: 1, Read: 1, Atomic: 1}
			})
			add("both ways", 0, func(c *synth.Config) { c.Requesters, c.Mix = synth.FromBoth, synth.Mix{Write: 2, Read: 1} })
			add("reuse", 0, func(c *synth.Config) {
				c.Generations, c.Reuse, c.Requesters, c.Connections = 3, synth.ReusePeerQP, synth.FromBoth, 64
			})
			add("reuse by another host", 0, func(c *synth.Config) {
				c.Generations, c.Reuse, c.Requesters, c.Hosts = 2, synth.ReusePeerHost, synth.FromEither, [2]int{2, 4}
			})
			add("RDMA-CM and reuse", cm, func(c *synth.Config) {
				c.Generations, c.Reuse, c.CM, c.Connections, c.LossAfter = 3, synth.ReuseShuffled, true, 64, lossy
			})
			add("late, all transports", 0, func(c *synth.Config) {
				c.TapStart, c.Tenants, c.IPv6, c.Transports = 1e6, 2, true, synth.Transports{RC: 2, UC: 1, UD: 1, XRC: 1}
			})
			if p != "symmetric" && p != "random" && p != "equal" {
				continue
			}
			add("attacker who knows nothing", 0, func(c *synth.Config) {
				c.Attack = synth.Attack{Interval: 4000, ACK: true, CNP: true, CM: true}
			})
			add("attacker who knows QPs", 0, func(c *synth.Config) {
				c.Attack = synth.Attack{Interval: 4000, KnowsQPs: true, ACK: true, CNP: true, CM: true}
			})
			add("attacker who knows QPs and PSNs", 0, func(c *synth.Config) {
				c.Attack = synth.Attack{Interval: 4000, KnowsQPs: true, KnowsPSNs: true, ACK: true, CNP: true, CM: true}
			})
		}
	}
	return all
}

// TestNeverWrong runs every scene, and holds the learned source QP of every packet's flow to the truth.
func TestNeverWrong(t *testing.T) {
	all := scenes()
	slices.SortFunc(all, func(a, b scene) int { return strings.Compare(a.name, b.name) })
	total := &score{}
	for n := 0; n < len(all); n += eachScene {
		sum := &score{}
		for seed := range uint64(runsAScene) {
			c := all[n].config
			c.Seed = seed*1000 + 1
			s := learn(t, c)
			if s.wrong > 0 {
				t.Errorf("%s, seed %d: %v", all[n].name, c.Seed, s)
			}
			sum.add(s)
		}
		t.Logf("%s: %v", all[n].name, sum)
		if sum.recall() < all[n].recall {
			t.Errorf("%s: %.4f of %d flows confirmed, want %.3f", all[n].name, sum.recall(), sum.flows, all[n].recall)
		}
		total.add(sum)
	}
	if eachScene == 1 && total.flows < 2*leastPairs {
		t.Errorf("%d flows, want at least %d", total.flows, 2*leastPairs)
	}
	t.Logf("%v", total)
}
