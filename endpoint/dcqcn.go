package endpoint

import (
	"fmt"
	"math"
)

// DCQCNConfig are the parameters of DCQCN's reaction point (Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM
// 2015, section 3). Comments give the paper's name and value, which a zero field takes.
type DCQCNConfig struct {
	G                float64 // g: gain of alpha; 1/256
	AlphaTimer       int64   // K: alpha changes once in this time; 55 us
	DecreaseInterval int64   // the rate is cut at most once in this time, or with AtPeriodEnd, at the ends of periods of this length; 50 us
	RateTimer        int64   // T: time between rate increases; 55 us
	ByteCounter      int64   // B: bytes between rate increases; 10 MB. -1: increases by time only
	FastRecovery     int     // F: steps of fast recovery; 5
	AdditiveIncrease int64   // R_AI, bit/s; 40 Mb/s
	HyperIncrease    int64   // R_HAI, bit/s; 400 Mb/s
	MinRate          int64   // bit/s; 40 Mb/s
	StartRate        int64   // bit/s; the line rate
	// HoldTarget: only the first cut after an increase sets the target rate to the rate before it, as NICs do by default. In the paper, each
	// cut does.
	HoldTarget bool
	// AtPeriodEnd: a CNP cuts the rate at the end of the period in which it comes, not at once. The first CNP begins the first period. NICs do
	// so, and the HPCC simulator.
	AtPeriodEnd bool
}

func (c *DCQCNConfig) complete(line int64) error {
	setDefault(&c.G, 1.0/256)
	setDefault(&c.AlphaTimer, 55_000)
	setDefault(&c.DecreaseInterval, 50_000)
	setDefault(&c.RateTimer, 55_000)
	setDefault(&c.ByteCounter, 10_000_000)
	setDefault(&c.FastRecovery, 5)
	setDefault(&c.AdditiveIncrease, 40_000_000)
	setDefault(&c.HyperIncrease, 400_000_000)
	setDefault(&c.MinRate, min(40_000_000, line))
	setDefault(&c.StartRate, line)
	switch {
	case c.G < 0 || c.G > 1:
		return fmt.Errorf("DCQCN.G is %g, expected more than 0 and at most 1", c.G)
	case c.AlphaTimer < 0 || c.DecreaseInterval < 0 || c.RateTimer < 0 || c.FastRecovery < 0 || c.AdditiveIncrease < 0 || c.HyperIncrease < 0:
		return fmt.Errorf("DCQCN: AlphaTimer, DecreaseInterval, RateTimer, FastRecovery and increases must not be negative")
	case c.MinRate < 0 || c.MinRate > line || c.StartRate < c.MinRate || c.StartRate > line:
		return fmt.Errorf("DCQCN: MinRate is %d and StartRate %d, expected 0 < MinRate <= StartRate <= %d, the line rate", c.MinRate, c.StartRate, line)
	}
	return nil
}

// dcqcn is the state of one QP. Its timers are evaluated when the rate is read, so that an idle QP costs nothing.
type dcqcn struct {
	target, rate float64 // R_T and R_C, bit/s
	alpha        float64
	alphaAt      int64 // when alpha changes next, ns; 0: no CNP has come yet
	notified     bool  // a CNP came since alpha last changed

	decreaseAt int64 // when the rate may be cut again, ns
	cutDue     bool  // the rate is to be cut at decreaseAt
	increaseAt int64 // when the timer next increases the rate, ns; never at the line rate, 0 before the QP's first packet
	timeStage  int   // T: increases by time since the last cut
	byteStage  int   // BC: increases by bytes since the last cut
	bytes      int64 // sent since the byte counter's last increase
}

func (d *dcqcn) start(c *DCQCNConfig, line float64) {
	*d = dcqcn{target: float64(c.StartRate), rate: float64(c.StartRate)}
	if d.rate == line {
		d.increaseAt = never
	}
}

// notify processes a CNP. The first one sets alpha to 1, later ones raise it at its next change. The rate is cut at once, but at the end of
// the interval or period if the last cut was less than DecreaseInterval ago or cuts wait for the end of a period. A CNP comes before what is
// due at the same time.
func (d *dcqcn) notify(now int64, c *DCQCNConfig, line float64) {
	d.advance(now-1, c, line)
	d.changeAlpha(now-1, c)
	if d.alphaAt == 0 {
		d.alpha, d.alphaAt = 1, now+c.AlphaTimer
		if c.AtPeriodEnd {
			d.decreaseAt = now + c.DecreaseInterval + 1 // alpha changes first if both are due
		}
	} else {
		d.notified = true
	}
	late := now - d.decreaseAt
	switch {
	case late < 0:
		d.cutDue = true
	case c.AtPeriodEnd:
		d.decreaseAt += (late + c.DecreaseInterval - 1) / c.DecreaseInterval * c.DecreaseInterval
		d.cutDue = true
	default:
		d.cut(now, c)
	}
}

// advance executes what was due by now, in order. The line rate bounds the number of steps: once the rate has reached it, nothing more is
// due.
func (d *dcqcn) advance(now int64, c *DCQCNConfig, line float64) {
	if d.increaseAt == 0 {
		d.increaseAt = now + c.RateTimer
	}
	for {
		switch {
		case d.cutDue && d.decreaseAt <= now && d.decreaseAt < d.increaseAt:
			d.changeAlpha(d.decreaseAt, c)
			d.cut(d.decreaseAt, c)
		case d.increaseAt <= now:
			d.increase(c, line)
			d.timeStage++
			d.increaseAt += c.RateTimer
			if d.rate == line && d.target == line {
				d.increaseAt = never
			}
		default:
			return
		}
	}
}

// sent counts the bytes that the QP sends.
func (d *dcqcn) sent(n int, c *DCQCNConfig, line float64) {
	if c.ByteCounter < 0 || d.increaseAt == never {
		return
	}
	if d.bytes += int64(n); d.bytes >= c.ByteCounter {
		d.bytes -= c.ByteCounter
		d.increase(c, line)
		d.byteStage++
	}
}

// changeAlpha executes alpha's timer (equation 1 with a CNP, equation 2 without).
func (d *dcqcn) changeAlpha(now int64, c *DCQCNConfig) {
	if d.alphaAt == 0 || d.alphaAt > now {
		return
	}
	times := (now-d.alphaAt)/c.AlphaTimer + 1
	d.alphaAt += times * c.AlphaTimer
	d.alpha *= math.Pow(1-c.G, float64(times))
	if d.notified { // the first interval after the notification
		d.alpha += c.G * math.Pow(1-c.G, float64(times-1))
		d.notified = false
	}
}

// cut lowers the rate by the fraction alpha/2 (equation 1) and restarts recovery.
func (d *dcqcn) cut(at int64, c *DCQCNConfig) {
	if !c.HoldTarget || d.timeStage+d.byteStage > 0 || d.increaseAt == never {
		d.target = d.rate
	}
	d.rate = max(float64(c.MinRate), d.rate*(1-d.alpha/2))
	d.timeStage, d.byteStage, d.bytes = 0, 0, 0
	d.increaseAt = at + c.RateTimer
	d.decreaseAt = at + c.DecreaseInterval
	d.cutDue = false
}

// increase is one step of recovery, by time or by bytes: fast recovery first, hyper increase when both have done more than F steps,
// additive increase between (section 3.1, figure 7).
func (d *dcqcn) increase(c *DCQCNConfig, line float64) {
	least, most := min(d.timeStage, d.byteStage), max(d.timeStage, d.byteStage)
	if c.ByteCounter < 0 {
		least = d.timeStage
	}
	switch {
	case most < c.FastRecovery:
	case least > c.FastRecovery:
		d.target = min(line, d.target+float64(c.HyperIncrease))
	default:
		d.target = min(line, d.target+float64(c.AdditiveIncrease))
	}
	d.rate = (d.rate + d.target) / 2
	const reached = 1000 // bit/s: halving alone would never reach the target
	if d.target-d.rate < reached {
		d.rate = d.target
	}
}
