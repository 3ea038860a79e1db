package endpoint

import (
	"fmt"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// HPCCConfig are the parameters of HPCC (Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, algorithm 1). Comments give
// the paper's name and the value that a zero field takes.
type HPCCConfig struct {
	BaseRTT  int64 // T: round-trip time without queues, ns; ReactionConfig.RTT
	Increase int64 // W_AI: bytes; W_init * (1 - eta) / N for N = 50 concurrent flows (section 3.3), where W_init is LineRate * BaseRTT
	Hops     int   // entries in the IOAM trace of each data packet, at most 9; 0: no trace is sent. IPv6 only
}

const (
	utilization = 0.95 // eta: target utilization of a link
	maxStage    = 5    // successive additive increases before the load is considered again
)

// maxHops is the most hops whose data fit into a Fast CNP (docs/decisions.md, W5).
const maxHops = (packet.MaxOptionTrace - packet.IOAMTraceHeaderLen) / hopLen

func (c *HPCCConfig) complete(r *ReactionConfig) error {
	setDefault(&c.BaseRTT, r.RTT)
	eta, flows := utilization, 50.0 // as variables: constants are exact, and would give another sum
	setDefault(&c.Increase, max(1, int64(bytesIn(float64(r.LineRate), c.BaseRTT)*(1-eta)/flows)))
	switch {
	case c.BaseRTT < 0 || c.Increase < 0:
		return fmt.Errorf("HPCC.BaseRTT is %d ns and Increase %d bytes, expected 0 or more", c.BaseRTT, c.Increase)
	case c.Hops < 0 || c.Hops > maxHops:
		return fmt.Errorf("HPCC.Hops is %d, expected 0 to %d", c.Hops, maxHops)
	}
	return nil
}

// bytesIn returns the bytes sent in a time (ns) at a rate (bit/s).
func bytesIn(rate float64, ns int64) float64 {
	const bits = 8
	return rate * float64(ns) / (bits * second)
}

// hpcc is the state of one QP. The paper updates W_c on acknowledgements. Here, Fast CNPs carry the data, so W_c is updated once in a time.
type hpcc struct {
	window    float64 // W, bytes; 0: no Fast CNP with a trace since the QP was last at the line rate
	reference float64 // W_c
	load      float64 // U: normalised inflight bytes
	stage     int     // incStage
	updatedAt int64   // when W_c was updated last, ns
	raiseAt   int64   // when the window rises if no Fast CNP arrives, ns

	links [maxHops]Hop // L: the latest data of each link
	hops  int
}

// rate is R = W / T, bit/s; 0 if HPCC sets no limit.
func (s *hpcc) rate(c *HPCCConfig) float64 {
	const bits = 8
	return s.window * bits * second / float64(c.BaseRTT)
}

// react processes the trace of a Fast CNP (NewAck in the paper). It returns false if the data of any link isn't newer than the last.
func (s *hpcc) react(now int64, r *ReactionConfig, hops []Hop) bool {
	c := &r.HPCC
	same := s.samePath(hops)
	if same && !s.newer(hops) {
		return false
	}
	if s.window == 0 {
		s.window = bytesIn(float64(r.LineRate), c.BaseRTT)
		s.reference, s.stage, s.load = s.window, 0, 1
		s.updatedAt = now - c.BaseRTT
	}
	if same {
		s.measure(c, hops)
	} else {
		s.estimate(c, hops)
	}
	s.compute(now, r)
	s.hops = copy(s.links[:], hops)
	s.raiseAt = now + r.RecoveryInterval
	return true
}

// samePath reports whether the hops are the same as in the last trace.
func (s *hpcc) samePath(hops []Hop) bool {
	if s.hops != len(hops) {
		return false
	}
	for i := range hops {
		if hops[i].Node != s.links[i].Node || hops[i].Rate != s.links[i].Rate {
			return false
		}
	}
	return true
}

// newer reports whether the data of every hop is later than the last.
func (s *hpcc) newer(hops []Hop) bool {
	for i := range hops {
		if hops[i].since(&s.links[i]) <= 0 {
			return false
		}
	}
	return true
}

// estimate sets U from the first trace of a path, from which no rates can be computed: a link with a queue counts as fully used.
func (s *hpcc) estimate(c *HPCCConfig, hops []Hop) {
	s.load = utilization
	for i := range hops {
		if queue := float64(hops[i].Queue); queue > 0 {
			s.load = max(s.load, 1+queue/bytesIn(float64(hops[i].Rate), c.BaseRTT))
		}
	}
}

// measure updates U from the link with the highest load (MeasureInflight).
func (s *hpcc) measure(c *HPCCConfig, hops []Hop) {
	highest, period := 0.0, c.BaseRTT
	for i := range hops {
		link, last := &hops[i], &s.links[i]
		elapsed := link.since(last)
		rate := float64(link.Rate)
		sent := float64(int64(link.Sent-last.Sent) & sentMask)
		load := float64(min(link.Queue, last.Queue))/bytesIn(rate, c.BaseRTT) + sent/bytesIn(rate, elapsed)
		if load > highest {
			highest, period = load, elapsed
		}
	}
	weight := float64(min(period, c.BaseRTT)) / float64(c.BaseRTT)
	s.load = (1-weight)*s.load + weight*highest
}

// compute sets W from U, and W_c once in a base RTT (ComputeWind).
func (s *hpcc) compute(now int64, r *ReactionConfig) {
	c := &r.HPCC
	update := now-s.updatedAt >= c.BaseRTT
	if s.load >= utilization || s.stage >= maxStage {
		s.window = s.reference/(s.load/utilization) + float64(c.Increase)
		if update {
			s.stage = 0
		}
	} else {
		s.window = s.reference + float64(c.Increase)
		if update {
			s.stage++
		}
	}
	most := bytesIn(float64(r.LineRate), c.BaseRTT)
	least := bytesIn(float64(r.DCQCN.MinRate), c.BaseRTT)
	s.window = min(most, max(least, s.window))
	if update {
		s.reference, s.updatedAt = s.window, now
	}
}

// advance raises the window if no Fast CNP came for RecoveryInterval, as explicitLimit does. Fast CNPs come only during congestion, so none
// reports that a link is free again.
func (s *hpcc) advance(now int64, r *ReactionConfig) {
	if s.window == 0 || s.raiseAt > now {
		return
	}
	times := (now-s.raiseAt)/r.RTT + 1
	s.raiseAt += times * r.RTT
	s.window += float64(times) * bytesIn(r.recoveryIncrease(), r.HPCC.BaseRTT)
	s.reference = s.window
	if s.window >= bytesIn(float64(r.LineRate), r.HPCC.BaseRTT) {
		s.window = 0
	}
}
