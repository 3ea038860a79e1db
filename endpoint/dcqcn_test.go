package endpoint

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

const lineRate = 40e9 // the paper's

// paper returns the parameters of section 5 of the paper.
func paper(t interface{ Fatal(...any) }) DCQCNConfig {
	var c DCQCNConfig
	if err := c.complete(lineRate); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestOneCNP: a CNP halves the rate of a QP that has had none (alpha is 1). Fast recovery takes half of what is missing in each of F steps
// (equation 3), then the target rises by R_AI (equation 4), and by R_HAI once bytes have had F steps, too.
func TestOneCNP(t *testing.T) {
	c := paper(t)
	var d dcqcn
	d.start(&c, lineRate)
	d.notify(1000, &c, lineRate)
	if d.rate != lineRate/2 || d.target != lineRate || d.alpha != 1 {
		t.Fatalf("after a CNP: rate %v, target %v, alpha %v; want half of 40e9, 40e9, 1", d.rate, d.target, d.alpha)
	}
	for step := 1; step <= c.FastRecovery; step++ {
		d.advance(1000+int64(step)*c.RateTimer, &c, lineRate)
		if want := lineRate * (1 - math.Pow(0.5, float64(step+1))); d.rate != want || d.target != lineRate {
			t.Errorf("after %d steps of fast recovery: rate %v, want %v; target %v", step, d.rate, want, d.target)
		}
	}
}

// TestIncreases: which increase follows from how often time and bytes have increased the rate since the last cut.
func TestIncreases(t *testing.T) {
	for _, c := range []struct {
		name         string
		times, bytes int // increases before
		counter      int64
		raises       int64 // by how much the next one raises the target
	}{
		{"first", 0, 0, 0, 0},
		{"last of fast recovery", 4, 4, 0, 0},
		{"additive by time", 5, 0, 0, 40e6},
		{"additive by bytes", 0, 5, 0, 40e6},
		{"additive of both", 5, 5, 0, 40e6},
		{"additive while one is behind", 20, 5, 0, 40e6},
		{"hyper", 6, 6, 0, 400e6},
		{"without byte counter: fast recovery", 4, 0, -1, 0},
		{"without byte counter: additive once", 5, 0, -1, 40e6},
		{"without byte counter: hyper", 6, 0, -1, 400e6},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := paper(t)
			if c.counter != 0 {
				config.ByteCounter = c.counter
			}
			d := dcqcn{rate: 1e9, target: 2e9, timeStage: c.times, byteStage: c.bytes}
			d.increase(&config, lineRate)
			target := 2e9 + float64(c.raises)
			if d.target != target || d.rate != (1e9+target)/2 {
				t.Errorf("target %v, rate %v; want %v, %v", d.target, d.rate, target, (1e9+target)/2)
			}
		})
	}
}

// TestByteCounter: each B bytes sent increase the rate once.
func TestByteCounter(t *testing.T) {
	c := paper(t)
	c.RateTimer = 1000 * second
	var d dcqcn
	d.start(&c, lineRate)
	d.sent(50_000_000, &c, lineRate) // at the line rate, nothing is counted
	d.notify(0, &c, lineRate)
	for i := 1; i <= 3; i++ {
		d.sent(9_999_999, &c, lineRate)
		before := d.rate
		d.sent(1, &c, lineRate)
		if want := lineRate * (1 - math.Pow(0.5, float64(i+1))); before == d.rate || d.rate != want {
			t.Errorf("rate %v after %d times 10 MB, want %v", d.rate, i, want)
		}
	}
	// A cut after an increase sets the target, and counts bytes anew.
	d.sent(9_999_999, &c, lineRate)
	before := d.rate
	d.notify(1_000_000, &c, lineRate)
	cut := d.rate
	d.sent(1, &c, lineRate)
	if d.target != before || d.rate != cut {
		t.Errorf("target %v, want %v; rate %v, was %v", d.target, before, d.rate, cut)
	}
}

// TestClamp: two CNPs with no increase between them, by hand. With the clamp each cut lowers the target (the paper's equation 1), without it
// only the first does: 40 Gbps to 20 and 10, and then fast recovery goes towards 20, or 40. alpha is 1 until 55 us.
func TestClamp(t *testing.T) {
	for _, hold := range []bool{false, true} {
		c := paper(t)
		c.HoldTarget = hold
		var d dcqcn
		d.start(&c, lineRate)
		d.notify(1000, &c, lineRate)
		d.notify(51_000, &c, lineRate)
		target, recovered := 20e9, 15e9
		if hold {
			target, recovered = 40e9, 25e9
		}
		if d.rate != 10e9 || d.target != target {
			t.Errorf("hold %v: rate %v, target %v; want 10e9, %v", hold, d.rate, d.target, target)
		}
		if d.advance(106_000, &c, lineRate); d.rate != recovered {
			t.Errorf("hold %v: rate %v after a step of recovery, want %v", hold, d.rate, recovered)
		}
	}
}

// TestPeriodEnd: cuts at the ends of periods, by hand. The periods begin with the first CNP and are 50 us long; alpha changes at 55, 110 and 165 us
// after it, and a cut uses the alpha of its moment: 1 - g after 55 us without a CNP, then with one.
func TestPeriodEnd(t *testing.T) {
	c := paper(t)
	c.AtPeriodEnd, c.RateTimer = true, second
	var d dcqcn
	d.start(&c, lineRate)
	d.notify(1000, &c, lineRate)
	if d.advance(51_000, &c, lineRate); d.rate != lineRate {
		t.Errorf("rate %v before the end of the period, want the line rate", d.rate)
	}
	if d.advance(51_001, &c, lineRate); d.rate != lineRate/2 {
		t.Errorf("rate %v at the end of the period, want half of it", d.rate)
	}
	d.notify(112_000, &c, lineRate) // in the third period, after alpha fell to 1 - g and to its square
	if d.advance(151_000, &c, lineRate); d.rate != lineRate/2 {
		t.Errorf("rate %v before the end of the third period, want half", d.rate)
	}
	alpha := (1 - c.G) * (1 - c.G)
	if d.advance(151_001, &c, lineRate); math.Abs(d.rate-lineRate/2*(1-alpha/2)) > 1 {
		t.Errorf("rate %v at the end of the third period, want %v", d.rate, lineRate/2*(1-alpha/2))
	}
}

// dcqcnModel is DCQCN as its published simulation has it: a state machine that looks at every nanosecond tick of its timers. The byte counter is
// that of the paper's figure 7.
type dcqcnModel struct {
	c                    DCQCNConfig
	target, rate, alpha  float64
	first, notified, cut bool
	alphaAt, cutAt, upAt int64
	stage, byteStage     int
	bytes                int64
}

// tick does what is due at one moment: a CNP, if one comes, then alpha, then an increase, then a cut.
func (m *dcqcnModel) tick(now int64, cnp bool) {
	if cnp {
		m.notify(now)
	}
	if m.first && now == m.alphaAt {
		m.alpha *= 1 - m.c.G
		if m.notified {
			m.alpha += m.c.G
		}
		m.notified = false
		m.alphaAt += m.c.AlphaTimer
	}
	if m.upAt != 0 && now == m.upAt {
		m.increase()
		m.stage++
		m.upAt += m.c.RateTimer
	}
	if m.first && now == m.cutAt {
		if m.cut {
			m.decrease(now)
		} else if m.c.AtPeriodEnd {
			m.cutAt = now + m.c.DecreaseInterval
		}
	}
}

// send counts bytes, except at the line rate.
func (m *dcqcnModel) send(n int) {
	if m.c.ByteCounter < 0 || m.upAt == 0 || m.rate == lineRate && m.target == lineRate {
		return
	}
	if m.bytes += int64(n); m.bytes >= m.c.ByteCounter {
		m.bytes -= m.c.ByteCounter
		m.increase()
		m.byteStage++
	}
}

// increase is a step of the paper's figure 7: fast recovery while both stages are below F, hyper increase when both are above.
func (m *dcqcnModel) increase() {
	low, high := min(m.stage, m.byteStage), max(m.stage, m.byteStage)
	if m.c.ByteCounter < 0 {
		low = m.stage
	}
	if high >= m.c.FastRecovery {
		step := float64(m.c.AdditiveIncrease)
		if low > m.c.FastRecovery {
			step = float64(m.c.HyperIncrease)
		}
		m.target = min(lineRate, m.target+step)
	}
	if m.rate = (m.rate + m.target) / 2; m.target-m.rate < 1000 {
		m.rate = m.target
	}
}

func (m *dcqcnModel) notify(now int64) {
	if m.first {
		m.notified = true
	} else {
		m.first, m.alpha, m.alphaAt = true, 1, now+m.c.AlphaTimer
		if m.c.AtPeriodEnd {
			m.cutAt = now + m.c.DecreaseInterval + 1
		}
	}
	if !m.c.AtPeriodEnd && now >= m.cutAt {
		m.decrease(now)
	} else {
		m.cut = true
	}
}

func (m *dcqcnModel) decrease(now int64) {
	if !m.c.HoldTarget || m.stage+m.byteStage > 0 || m.upAt == 0 {
		m.target = m.rate
	}
	m.rate = max(float64(m.c.MinRate), m.rate*(1-m.alpha/2))
	m.stage, m.byteStage, m.bytes, m.cut = 0, 0, 0, false
	m.cutAt, m.upAt = now+m.c.DecreaseInterval, now+m.c.RateTimer
}

// TestAgreesWithModel: timers that are worked off late come out as in a machine that never sleeps.
func TestAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ticks := rapid.Int64Range(1, 60)
		c := DCQCNConfig{
			G:          rapid.SampledFrom([]float64{1.0 / 256, 1.0 / 16, 1}).Draw(t, "g"),
			AlphaTimer: ticks.Draw(t, "alpha timer"), DecreaseInterval: ticks.Draw(t, "decrease interval"), RateTimer: ticks.Draw(t, "rate timer"),
			ByteCounter: rapid.SampledFrom([]int64{-1, 1000, 30_000}).Draw(t, "byte counter"), FastRecovery: rapid.IntRange(1, 5).Draw(t, "F"),
			HoldTarget: rapid.Bool().Draw(t, "hold"), AtPeriodEnd: rapid.Bool().Draw(t, "period"),
		}
		if err := c.complete(lineRate); err != nil {
			t.Fatal(err)
		}
		var d dcqcn
		d.start(&c, lineRate)
		m := dcqcnModel{c: c, rate: lineRate, target: lineRate}
		for now := int64(1); now < 2000; now++ {
			cnp := rapid.IntRange(0, 30).Draw(t, "cnp") == 0
			m.tick(now, cnp)
			n := rapid.IntRange(0, 200).Draw(t, "bytes")
			switch {
			case cnp:
				d.notify(now, &c, lineRate)
				d.advance(now, &c, lineRate)
				d.changeAlpha(now, &c)
			case now%97 == 0:
				d.advance(now, &c, lineRate)
			case c.ByteCounter < 0:
				continue
			default:
				d.advance(now, &c, lineRate)
			}
			m.send(n)
			d.sent(n, &c, lineRate)
			if math.Abs(d.rate-m.rate) > 1e4 || cnp && math.Abs(d.alpha-m.alpha) > 1e-9 {
				t.Fatalf("at %d: rate %v, alpha %v; model %v, %v", now, d.rate, d.alpha, m.rate, m.alpha)
			}
		}
	})
}

// red marks CE as the paper's switches do: never up to K_min, always above K_max, between with a probability that grows up to P_max.
func red(seed uint64) func(now int64, frame []byte, length int, queue int64) {
	const kMin, kMax, pMax = 5_000, 200_000, 0.01
	return func(_ int64, frame []byte, length int, queue int64) {
		seed = seed*6364136223846793005 + 1442695040888963407
		p := pMax * float64(queue-kMin) / (kMax - kMin)
		if queue > kMax {
			p = 1
		}
		if float64(seed>>11)/(1<<53) < p {
			markCE(frame, length)
		}
	}
}

// TestConverges: of two flows through a bottleneck of 40 Gb/s, one that starts later gets its fair share, with the paper's parameters (section 5.2
// shows the same for the fluid model and for NICs).
func TestConverges(t *testing.T) {
	c := Config{LineRate: 40 * gigabit, Reaction: ReactionConfig{Algorithm: DCQCN}}
	n := newNetworkOf(t, 3, c, 2000)
	n.narrow = &bottleneck{to: 2, rate: 40 * gigabit, pass: red(1)}
	var qps [2]uint32
	for i := range qps {
		qps[i], _ = n.connectTo(i, 2)
		n.start(i, Stream{QP: qps[i], Bytes: 1 << 30, Messages: 2, At: int64(i) * 10_000_000})
	}
	// Shares of 10 ms each, once the second flow has had 50 ms.
	n.run(60_000_000)
	var worst float64
	var total uint64
	for range 8 {
		before := [2]uint64{n.hosts[0].counters.BytesSent, n.hosts[1].counters.BytesSent}
		n.run(n.now + 10_000_000)
		a, b := n.hosts[0].counters.BytesSent-before[0], n.hosts[1].counters.BytesSent-before[1]
		total += a + b
		worst = max(worst, math.Abs(float64(a)-float64(b))/float64(a+b))
	}
	rate := float64(total) * 8 / 80e-3
	t.Logf("together %.1f Gb/s; largest difference from the fair share in 10 ms %.0f %%; %d bytes of queue at most", rate/1e9, 100*worst, n.narrow.highest)
	if worst > 0.25 || rate < 0.9*lineRate {
		t.Errorf("flows send %.1f Gb/s and differ by %.0f %%, want 36 and 25", rate/1e9, 100*worst)
	}
}

// TestCNPForEachPacket: a CNP for each packet of a QP brings it to about a packet in F+1 rate timers, and no lower: after F, fast recovery has made up for a CNP, and the
// next step raises the target. So 1,000 QPs with the paper's parameters and packets of 4 KB have 107 Gbps together.
func TestCNPForEachPacket(t *testing.T) {
	const line, bits, loop, packets = 100e9, 4096 * 8, 5_000, 20_000
	for f := 2; f <= 5; f++ {
		c := paper(t)
		c.FastRecovery = f
		var d dcqcn
		d.start(&c, line)
		now, middle := int64(1e9), int64(0)
		for i := range packets {
			d.advance(now, &c, line)
			d.sent(bits/8, &c, line)
			d.notify(now+loop, &c, line)
			now += max(int64(bits*second/d.rate), loop)
			if i == packets/2 {
				middle = now
			}
		}
		rate, least := float64(packets/2*bits)*second/float64(now-middle), bits*second/float64(int64(f+1)*c.RateTimer)
		if rate < least || rate > 1.1*least {
			t.Errorf("F is %d: CNPs bring the QP to %.1f Mbps, expected %.1f and a tenth more at most", f, rate/1e6, least/1e6)
		}
	}
}
