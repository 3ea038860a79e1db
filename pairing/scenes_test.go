package pairing

import (
	"fmt"
	"math"

	"github.com/cnpgate/cnpgate/internal/testkit/synth"
)

// scene is traffic of one kind, and its required results. In all scenes, no packet's flow may ever be confirmed with a wrong source QP.
type scene struct {
	name      string
	config    synth.Config
	recall    float64 // least part of the distinguishable flows that end confirmed
	forgotten float64 // largest part of the time in which flows that were once confirmed are not; 0: not checked
	missed    float64 // largest part of the genuine packets, as above; 0: not checked
}

var (
	portsNames = []struct {
		name string
		rule synth.Ports
	}{
		{"symmetric", synth.PortsSymmetric}, {"flow-label", synth.PortsFlowLabel}, {"random", synth.PortsRandom},
		{"asymmetric", synth.PortsAsymmetric}, {"equal", synth.PortsEqual}, {"spray", synth.PortsSpray}, {"borrowed", synth.PortsBorrowed},
	}
	startNames = []struct {
		name  string
		start synth.StartPSN
	}{{"random", synth.PSNRandom}, {"zero", synth.PSNZero}, {"wrap", synth.PSNWrap}}
)

var slightly = [2]float64{.01, .01}

// scenes are all ways of choosing ports and first PSNs, in step and not, over clean and bad networks, under attack and not.
func scenes() (all []scene) {
	for _, p := range portsNames {
		for _, s := range startNames {
			all = append(all, portScenes(p.name, p.rule, s.name, s.start)...)
		}
	}
	all = append(all, lossScenes()...)
	all = append(all, stormScenes()...)
	return append(all, managerScenes()...)
}

// portScenes are about which port and which first PSN a connection has.
func portScenes(p string, port synth.Ports, s string, start synth.StartPSN) (all []scene) {
	recall := 0.
	switch {
	case p == "symmetric":
		recall = .999
	case p == "borrowed":
		recall = .98
	case p == "flow-label" || p == "random":
		recall = .999
	case s == "random":
		recall = .998 // PSNs alone are evidence: some begin within a window of another flow's
	}
	if p == "spray" {
		recall = min(recall, .98)
	}
	c := synth.Config{Ports: port, StartPSN: start}
	if s != "random" {
		c.Messages = 32
	}
	add := func(name string, recall float64, change func(*synth.Config)) {
		d := c
		change(&d)
		all = append(all, scene{fmt.Sprintf("ports %s, PSNs %s, %s", p, s, name), d, recall, 0, 0})
	}
	add("free", recall, func(*synth.Config) {})
	add("lockstep", recall, func(c *synth.Config) { c.Schedule = synth.Lockstep })
	add("bad network", recall, func(c *synth.Config) {
		c.LossBefore, c.LossAfter, c.Reorder, c.Coalesce = slightly, slightly, .01, 2
	})
	if s == "wrap" {
		return all
	}
	hidden, cm := 0., .99
	if s == "zero" && p != "symmetric" && p != "flow-label" || p == "spray" {
		cm = 0 // first PSNs can be guessed, and the ports are not RDMA-CM's
	}
	if p == "symmetric" {
		hidden = .999
	}
	add("half seen, lockstep", hidden, func(c *synth.Config) { c.Sight, c.Schedule = synth.SeeMixed, synth.Lockstep })
	add("half seen, mixed, bad network", hidden, func(c *synth.Config) {
		c.Sight, c.LossAfter, c.LossBefore, c.Mix = synth.SeeMixed, slightly, slightly, synth.Mix{Send: 1, Write: 1, Read: 1, Atomic: 1}
	})
	add("both ways", 0, func(c *synth.Config) { c.Requesters, c.Mix = synth.FromBoth, synth.Mix{Write: 2, Read: 1} })
	add("reuse", 0, func(c *synth.Config) {
		c.Generations, c.Reuse, c.Requesters, c.Connections = 3, synth.ReusePeerQP, synth.FromBoth, 64
	})
	add("reuse by another host", 0, func(c *synth.Config) {
		c.Generations, c.Reuse, c.Requesters, c.Hosts = 2, synth.ReusePeerHost, synth.FromEither, [2]int{2, 4}
	})
	add("RDMA-CM and reuse", cm, func(c *synth.Config) {
		c.Generations, c.Reuse, c.CM, c.Connections, c.LossAfter = 3, synth.ReuseShuffled, true, 64, slightly
	})
	add("late, all transports", 0, func(c *synth.Config) {
		c.TapStart, c.Tenants, c.IPv6, c.Transports = 1e6, 2, true, synth.Transports{RC: 2, UC: 1, UD: 1, XRC: 1}
	})
	if p != "symmetric" && p != "random" && p != "equal" {
		return all
	}
	for _, a := range []struct {
		name      string
		qps, psns bool
	}{{"nothing", false, false}, {"QPs", true, false}, {"QPs and PSNs", true, true}} {
		add("attacker who knows "+a.name, 0, func(c *synth.Config) {
			c.Attack = synth.Attack{Interval: 4000, KnowsQPs: a.qps, KnowsPSNs: a.psns, ACK: true, CNP: true, CM: true}
		})
	}
	return all
}

var endless = synth.Timeouts{Retries: synth.Forever, MADs: 1000}

// lossScenes are long-lived flows that lose packets before and behind the gateway.
func lossScenes() (all []scene) {
	for _, lost := range []float64{0, .01, .05, .2, .5} {
		half := 1 - math.Sqrt(1-lost)
		c := synth.Config{Connections: 64, Messages: 100, LossBefore: [2]float64{half, half}, LossAfter: [2]float64{half, half}, Timeouts: endless}
		bound := .001
		if lost > .05 {
			bound = .01
		}
		add := func(name string, bound float64, change func(*synth.Config)) {
			d := c
			change(&d)
			all = append(all, scene{fmt.Sprintf("loss %v%%, %s", lost*100, name), d, 0, bound, 0})
		}
		add("the formula's ports", bound, func(*synth.Config) {})
		add("the formula's ports, all PSNs from 0", bound, func(c *synth.Config) { c.StartPSN = synth.PSNZero })
		add("the formula's ports, few flows", bound, func(c *synth.Config) { c.Connections = 4; c.Messages = 1000 })
		add("the formula's ports, requests both ways, READs", bound, func(c *synth.Config) {
			c.Requesters, c.Mix, c.IPv6 = synth.FromBoth, synth.Mix{Write: 2, Send: 1, Read: 1, Atomic: 1}, true
		})
		add("RDMA-CM", bound, func(c *synth.Config) { c.CM, c.Ports = true, synth.PortsFlowLabel })
		add("random ports, the same both ways", max(bound, lost/10), func(c *synth.Config) { c.Ports = synth.PortsRandom })
		add("ports say nothing", bound, func(c *synth.Config) { c.Ports = synth.PortsEqual })
		add("reuse", 0, func(c *synth.Config) {
			c.Generations, c.Reuse, c.Messages, c.StartPSN = 3, synth.ReusePeerQP, 30, synth.PSNNear
		})
		add("ports say nothing, reuse", 0, func(c *synth.Config) {
			c.Generations, c.Reuse, c.Messages, c.Ports = 3, synth.ReusePeerQP, 30, synth.PortsEqual
		})
		add("off-path attacker who knows no PSNs", 0, func(c *synth.Config) {
			c.Attack = synth.Attack{Interval: 20_000, KnowsQPs: true, ACK: true, CNP: true, CM: true, Request: true}
		})
		if all[len(all)-1].missed = .01; lost > .05 {
			all[len(all)-1].missed = .03
		}
		add("off-path attacker", 0, func(c *synth.Config) {
			c.Attack = synth.Attack{Interval: 20_000, KnowsQPs: true, KnowsPSNs: true, ACK: true, CNP: true, CM: true, Request: true}
		})
		add("off-path attacker, RDMA-CM", 0, func(c *synth.Config) {
			c.CM, c.Ports = true, synth.PortsFlowLabel
			c.Attack = synth.Attack{Interval: 20_000, KnowsQPs: true, ACK: true, CNP: true, CM: true, Request: true,
				Managers: synth.ForgedCM{All: true, Connect: true}}
		})
	}
	return all
}

// stormScenes are congestion: queues longer than the time-out, acknowledgements in flight while the sender goes back, NAKs.
func stormScenes() (all []scene) {
	add := func(name string, bound float64, c synth.Config) { all = append(all, scene{name, c, 0, bound, 0}) }
	early := synth.Config{Connections: 4, MTU: 256, Sizes: [2]int{262144, 262144}, Messages: 20, Window: 8192, Gap: 100, Period: 1000,
		Delay: [2]int64{2e6, 500e3}, Timeouts: synth.Timeouts{Requester: 500e3, Retries: synth.Forever}, Duration: 2e9}
	add("time-outs with ACKs in flight", .001, early)
	congested := synth.Config{Connections: 4, MTU: 256, Sizes: [2]int{16384, 16384}, Messages: 1 << 30, Window: 1024, Gap: 2000, Period: 1000,
		AckFull: synth.NoAckIfFull, Delay: [2]int64{50e6, 100e3}, Bottleneck: synth.Bottleneck{Rate: 50e6, Capacity: 5_120_000},
		Timeouts: synth.Timeouts{Requester: 60e6, Retries: synth.Forever}, Duration: 10e9}
	add("a queue longer than the time-out", .001, congested)
	congested.IPv6, congested.Connections, congested.QPNs = true, 16, synth.QPSequential
	add("a queue longer than the time-out, 16 flows, IPv6", .001, congested)
	all[len(all)-1].config.Reorder = .01
	half := [2]float64{.29289, .29289}
	congested.LossBefore, congested.LossAfter = half, half
	add("a queue longer than the time-out, 50% loss", .01, congested)
	add("NAK storm", .001, synth.Config{Connections: 64, Sizes: [2]int{16384, 16384}, Messages: 50, RequestLoss: synth.KindLoss{After: [2]float64{.1, 0}},
		NAKs: synth.NAKs{Every: true}, Timeouts: endless})
	add("RNR storm", .001, synth.Config{Connections: 64, Mix: synth.Mix{Send: 1}, RNR: 1, NAKs: synth.NAKs{RNRAgain: .75}, Messages: 50})
	add("RNR storm, time-outs shorter than the round trip", .001, synth.Config{Connections: 64, Mix: synth.Mix{Send: 1}, RNR: 1,
		NAKs: synth.NAKs{RNRAgain: .75}, Messages: 50, Timeouts: synth.Timeouts{Requester: 600e3, Retries: synth.Forever}})
	add("40% of ACKs lost behind the gateway", .001, synth.Config{Messages: 50, Timeouts: endless,
		ResponseLoss: synth.KindLoss{After: [2]float64{synth.WAN: .4}}})
	return all
}

// managerScenes are RDMA-CM, genuine, stale and forged.
func managerScenes() (all []scene) {
	add := func(name string, bound float64, c synth.Config) {
		all = append(all, scene{"RDMA-CM, " + name, c, 0, bound, 0})
	}
	b1 := synth.Config{CM: true, Messages: 200, Attack: synth.Attack{Interval: 50e3, KnowsQPs: true, Managers: synth.ForgedCM{Connect: true}}}
	add("REQs forged for live QPs", .001, b1)
	b1.Attack.KnowsPSNs, b1.Attack.Managers.Refused, b1.Ports = true, 1, synth.PortsFlowLabel
	add("REQs forged for live QPs and PSNs", .001, b1)
	b1.CM, b1.Ports = false, synth.PortsSymmetric
	add("REQs forged for live QPs and PSNs, of connections without RDMA-CM", .001, b1)
	add("REQs and REPs ahead of the connections", 0, synth.Config{Spread: 60e9, Generations: 1, ReuseGap: 40e9,
		Attack: synth.Attack{KnowsQPs: true, Managers: synth.ForgedCM{Ahead: 30e9}}})
	add("REQs and REPs ahead of the connections, QPNs that come again, PSNs from 0", 0, synth.Config{StartPSN: synth.PSNZero, Requesters: synth.FromBoth,
		Spread: 60e9, Generations: 1, ReuseGap: 40e9,
		Attack: synth.Attack{KnowsQPs: true, KnowsPSNs: true, Managers: synth.ForgedCM{Ahead: 30e9, Recycle: true}}})
	add("REPs forged for genuine REQs", 0, synth.Config{CM: true, Attack: synth.Attack{KnowsQPs: true, Managers: synth.ForgedCM{REP: 1, KnowsIDs: true}}})
	add("DREQ unseen, QPs reused without RDMA-CM near the old PSNs", 0, synth.Config{CM: true, NoDREQ: true, Managers: synth.Managers{Share: .5},
		Generations: 3, StartPSN: synth.PSNNear, Ports: synth.PortsFlowLabel, Requesters: synth.FromBoth, Connections: 48})
	add("an S-VLAN and a C-VLAN with one VID", 0, synth.Config{CM: true, Tenants: 2, TwoTags: true, Connections: 64})
	add("DREQ, REJ, MRA, LAP and APR forged", 0, synth.Config{CM: true, Messages: 200,
		Attack: synth.Attack{Interval: 10e3, KnowsQPs: true, CM: true, Managers: synth.ForgedCM{All: true, KnowsIDs: true}}})
	add("MRA, stale REQs and REPs", 0, synth.Config{CM: true, Generations: 3, Managers: synth.Managers{MRA: .3, Stale: .3, StaleDelay: 100e6}})
	add("requests forged", 0, synth.Config{Requesters: synth.FromWAN, Attack: synth.Attack{Interval: 10e3, KnowsQPs: true, KnowsPSNs: true, Request: true}})
	return all
}
