package synth

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// busy is traffic of all kinds in trouble of all kinds.
func busy(seed uint64) Config {
	return Config{Seed: seed, Connections: 24, Hosts: [2]int{2, 3}, Transports: Transports{RC: 4, UC: 1, UD: 1, XRC: 1}, Mix: Mix{2, 1, 2, 1, 2, 1},
		Requesters: FromBoth, Messages: 20, LossBefore: [2]float64{.01, .02}, LossAfter: [2]float64{.02, .01}, Reorder: .01, CE: .03, RNR: .03,
		CM: true, CMReject: .1, Generations: 2, PathJitter: 3000, Coalesce: 2, AckEvery: 4, StartPSN: PSNWrap,
		Attack: Attack{Interval: 5000, ACK: true, CNP: true, CM: true, KnowsQPs: true, KnowsPSNs: true, OnPath: .05}}
}

// drawConfig draws a Config whose run ends.
func drawConfig(t *rapid.T) Config {
	rate := func(name string) float64 { return rapid.SampledFrom([]float64{0, 0, .01, .1}).Draw(t, name) }
	n := func(name string, of ...int) int { return rapid.SampledFrom(of).Draw(t, name) }
	weight := func(name string) int { return rapid.IntRange(0, 2).Draw(t, name) }
	return Config{
		Seed: rapid.Uint64().Draw(t, "seed"), IPv6: rapid.Bool().Draw(t, "v6"), Hosts: [2]int{n("fabric", 1, 3), n("wan", 1, 2)},
		Tenants: n("tenants", 0, 0, 2), Connections: n("connections", 1, 2, 20),
		Transports: Transports{weight("rc"), weight("uc"), weight("ud"), weight("xrc")},
		QPNs:       QPNs(n("qpns", 0, 1)), StartPSN: StartPSN(n("psn", 0, 1, 2, 3, 4)), MTU: n("mtu", 256, 1024, 4096),
		Requesters: Requesters(n("requesters", 0, 1, 2, 3)),
		Mix:        Mix{weight("send"), weight("sendimm"), weight("write"), weight("writeimm"), weight("read"), weight("atomic")},
		Sizes:      [2]int{0, n("size", 1, 1000, 20000)}, Messages: n("messages", 1, 5, 30), Window: n("window", 1, 8, 64),
		Ports:    Ports(n("ports", 0, 1, 2, 3, 4, 5, 6)),
		Schedule: Schedule(n("schedule", 0, 1)), Jitter: int64(n("jitter", 0, 5000)), Drift: rate("drift"), Spread: int64(n("spread", 0, 1e6)),
		Lifetime: int64(n("lifetime", 0, 0, 2e6)), AckEvery: n("every", 0, 1, 4), Coalesce: n("coalesce", 1, 1, 3), RNR: rate("rnr"),
		Delay: [2]int64{5000, int64(n("delay", 1000, 500_000))}, PathJitter: int64(n("pathjitter", 0, 3000)), ConnJitter: int64(n("connjitter", 0, 20000)),
		LossBefore: [2]float64{rate("loss"), rate("loss")}, LossAfter: [2]float64{rate("loss"), rate("loss")}, Reorder: rate("reorder"), CE: rate("ce"),
		CM: rapid.Bool().Draw(t, "cm"), NoDREQ: rapid.Bool().Draw(t, "nodreq"), CMReject: rate("reject"), Generations: n("generations", 0, 2),
		Reuse:        Reuse(n("reuse", 0, 1, 2, 3)),
		Near:         [2]uint32{uint32(n("behind", 0, 100)), 100},
		Timeouts:     Timeouts{Requester: int64(n("timeout", 0, 0, 30_000, 300_000)), Retries: n("retries", 7, 7, Forever), MADs: n("mads", 8, 50)},
		RequestLoss:  KindLoss{After: [2]float64{rate("lost requests"), rate("lost requests")}},
		ResponseLoss: KindLoss{After: [2]float64{rate("lost responses"), rate("lost responses")}},
		Bottleneck:   Bottleneck{From: End(n("bottleneck", 0, 1)), Rate: int64(n("rate", 0, 0, 100_000_000)), Capacity: int64(n("capacity", 10_000, 100_000))},
		NAKs:         NAKs{Every: rapid.Bool().Draw(t, "naks"), RNRAgain: rapid.SampledFrom([]float64{0, .5, .9}).Draw(t, "again")},
		TwoTags:      rapid.Bool().Draw(t, "two tags"),
		Managers: Managers{Share: rapid.SampledFrom([]float64{0, .5}).Draw(t, "share"), MRA: rate("mra"), MRADelay: int64(n("mra delay", 0, 1000)),
			Stale: rate("stale"), StaleDelay: int64(n("stale delay", 0, 1e6))},
		Attack: Attack{Interval: int64(n("attack", 0, 0, 3000)), ACK: true, CNP: true, CM: true, KnowsQPs: rapid.Bool().Draw(t, "qps"),
			KnowsPSNs: true, OnPath: rate("onpath"), Request: true,
			Managers: ForgedCM{All: true, KnowsIDs: rapid.Bool().Draw(t, "ids"), Connect: rapid.Bool().Draw(t, "connect"), Ahead: int64(n("ahead", 0, 10_000)),
				REP: rate("rep"), Refused: rapid.SampledFrom([]float64{0, .5}).Draw(t, "refused"), Recycle: rapid.Bool().Draw(t, "recycle")}},
	}
}

// checkRun runs a Config to its end and checks every event against the truth and the rules. It adds up what it met.
func checkRun(c Config, counts map[string]int) error {
	t := New(c)
	strict := c.LossBefore == [2]float64{} && c.RequestLoss.Before == [2]float64{} && c.Reorder == 0
	rules := newChecker(t.c.MTU, strict)
	last := int64(math.MinInt64)
	n := 0
	for e, ok := t.Next(); ok; e, ok = t.Next() {
		if n++; n > 200_000 && impatient(&t.c) {
			return nil // retransmission that is faster than the network may leave it with nothing else to carry
		} else if n > 5_000_000 {
			return fmt.Errorf("no end after %d events", n)
		}
		if e.Time < last {
			return fmt.Errorf("event %d at %d comes after one at %d", n, e.Time, last)
		}
		last = e.Time
		if err := checkEvent(t, rules, &e); err != nil {
			return fmt.Errorf("event %d of connection %d, %v, %+v: %w", n, e.Conn, e.Packet.Opcode, e, err)
		}
		counts[e.Packet.Opcode.Transport()]++
		if e.Forged {
			counts["forged"]++
		}
		if e.MAD != nil {
			counts[fmt.Sprintf("MAD 0x%x", attrOf(e.MAD))]++
		}
	}
	for k, v := range rules.counts {
		counts[k] += v
	}
	return checkEnd(t, rules)
}

func checkEvent(t *Traffic, rules *checker, e *Event) error {
	if e.Forged {
		if e.Conn != -1 || e.SourceQP != 0 {
			return fmt.Errorf("forged, but a connection's")
		}
		return nil
	}
	p := &e.Packet
	if e.Conn == -1 {
		if e.MAD == nil || e.SourceQP != packet.GSIQP || !provoked(t, e) {
			return fmt.Errorf("a packet of no connection, but no answer to a forged REQ")
		}
		return nil
	}
	c := &t.Conns()[e.Conn]
	if p.Src != c.Host[e.From] || p.OuterTag.VID() != c.VID || p.OuterTag.TPID() != c.TPID || !c.Seen[e.From] {
		return fmt.Errorf("not from %v of %+v", e.From, c)
	}
	if e.MAD != nil {
		if p.DestQP != 1 || e.SourceQP != 1 || p.SourceQP != 1 {
			return fmt.Errorf("a MAD not between QP 1s")
		}
		return nil
	}
	if e.SourceQP != c.QP[e.From] {
		return fmt.Errorf("source QP %d, truth %v", e.SourceQP, c.QP)
	}
	if e.Time < c.Start {
		return fmt.Errorf("before the connection's start %d", c.Start)
	}
	if c.Transport == UD {
		if p.SourceQP != 0 && p.SourceQP != e.SourceQP {
			return fmt.Errorf("DETH's source QP is wrong")
		}
		return nil
	}
	if p.Dst != c.Host[1-e.From] || p.DestQP != c.QP[1-e.From] {
		return fmt.Errorf("not to %v of %+v", 1-e.From, c)
	}
	if c.Transport == UC {
		return nil
	}
	return rules.check(e, c.StartPSN)
}

// provoked reports whether a MAD may be what a listener answers, or a WAN host answers the listener.
func provoked(t *Traffic, e *Event) bool {
	attr := packet.CMREP
	if e.From == WAN {
		attr = packet.CMREJ
	}
	for _, h := range t.hosts[e.From] {
		if h.addr == e.Packet.Src && h.tag == (tag{e.Packet.OuterTag.TPID(), e.Packet.OuterTag.VID()}) {
			return attrOf(e.MAD) == attr
		}
	}
	return false
}

func mostLoss(c *Config) float64 {
	most := 0.0
	for _, l := range [][2]float64{c.LossBefore, c.LossAfter, c.RequestLoss.Before, c.RequestLoss.After, c.ResponseLoss.Before, c.ResponseLoss.After} {
		most = max(most, l[0], l[1])
	}
	return most
}

// impatient reports whether time-outs may be shorter than the round trip.
func impatient(c *Config) bool {
	return c.Bottleneck.Rate > 0 || c.Timeouts.Requester < 2*(c.Delay[0]+c.Delay[1]+c.PathJitter+c.ConnJitter+c.ReorderDelay)
}

// hard reports whether connections may give up: after a loss of more than 2 %, too many early time-outs, or MADs that a full queue drops.
func hard(c *Config) bool {
	return mostLoss(c) > .02 || c.Timeouts.Retries < Forever && impatient(c) || c.CM && c.Bottleneck.Rate > 0
}

// checkEnd: connections that were not cut off have said all they had to say.
func checkEnd(t *Traffic, rules *checker) error {
	chains := 0
	if n := len(t.flights.items) - len(t.flights.unused); n != 0 {
		return fmt.Errorf("%d packets are still on their way", n)
	}
	for i, c := range t.Conns() {
		if c.End == math.MaxInt64 || c.End < c.Start && c.Start != math.MaxInt64 {
			return fmt.Errorf("connection %d has not ended: %+v", i, c)
		}
		if c.Before < 0 {
			chains++
		} else if b := t.Conns()[c.Before]; b.End > c.Start {
			return fmt.Errorf("connection %d starts at %d, before its predecessor's end at %d", i, c.Start, b.End)
		}
	}
	if chains != t.c.Connections {
		return fmt.Errorf("%d first connections, want %d", chains, t.c.Connections)
	}
	if t.c.Lifetime > 0 {
		return nil
	}
	lossy := mostLoss(&t.c) > 0 || impatient(&t.c)
	if n := rules.counts["resent"]; n > 0 && !lossy && t.c.Reorder == 0 && t.c.RNR == 0 {
		return fmt.Errorf("%d packets were sent again for nothing", n)
	}
	for key, s := range rules.ends {
		c, messages := &t.Conns()[key[0]], 0
		if c.Failed && hard(&t.c) {
			continue
		}
		for i, psn := range s.psns {
			if !psn.delivered || (psn.read || psn.atomic) && !psn.answered {
				return fmt.Errorf("connection %d of %+v: PSN start+%d was never delivered or never answered: %+v", key[0], c, i, psn)
			}
			if psn.last {
				messages++
			}
		}
		if want := t.c.Messages; c.Requests[key[1]] && messages != want || !c.Requests[key[1]] && messages != 0 {
			return fmt.Errorf("connection %d of %+v: %d messages from %d, want %d", key[0], c, messages, key[1], want)
		}
	}
	return nil
}

// TestTruth: with any Config, what the tap sees follows the rules and matches the truth.
func TestTruth(t *testing.T) {
	counts := map[string]int{}
	for seed := range uint64(4) {
		if err := checkRun(busy(seed), counts); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	for _, want := range []string{"RC", "UC", "UD", "XRC", "CNP", "forged", "request", "resent", "ACK", "NAK 1", "NAK 3", "read", "atomic",
		"MAD 0x10", "MAD 0x12", "MAD 0x13", "MAD 0x14", "MAD 0x15", "MAD 0x16", "MAD 0x17", "MAD 0x18"} {
		if counts[want] < 10 {
			t.Errorf("only %d of %s: %v", counts[want], want, counts)
		}
	}
}

func TestTruthProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if err := checkRun(drawConfig(t), map[string]int{}); err != nil {
			t.Fatal(err)
		}
	})
}
