package congestion

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/packet"
)

const (
	mb = 1_000_000
	ms = 1_000_000 // ns
)

func decision(a Action, parameter uint16, level, rung, metric uint8, value uint32) Decision {
	return Decision{Action: a, Parameter: parameter, Level: level, Rung: rung, MetricType: metric, MetricValue: value}
}

// example is the response of draft-tian's section 7: 100 Gbps, 10 ms.
func example() Response {
	return Response{
		Triggers: Triggers{Thresholds: Adaptive(64_000, 1, 100e9, 10*ms, 50), Depth: true},
		Ladder:   DefaultLadder, ResumePercent: 50, Resumes: true, Disclose: true, Rate: 100e9, RTT: 10 * ms, Interval: ms,
	}
}

// TestSection7: the numbers of draft-tian's example.
func TestSection7(t *testing.T) {
	r := example()
	if r.KMax != 125*mb || r.KMin != 62.5*mb {
		t.Errorf("K_max %d, K_min %d; want 125 and 62.5 MB", r.KMax, r.KMin)
	}
	var trigger Trigger
	m := Metrics{Depth: 130 * mb}
	c := trigger.Update(&r.Triggers, m)
	if d, want := r.Decide(m, c), decision(RateReduce, 30, 180, 3, MetricDepth, 130_000); d != want {
		t.Errorf("130 MB: %+v, want %+v", d, want)
	}
	var calm Calm
	for _, step := range []struct {
		now  int64
		want bool
	}{{1 * ms, false}, {10 * ms, false}, {11*ms - 1, false}, {11 * ms, true}} {
		if got := calm.Update(&r, step.now, 30*mb); got != step.want {
			t.Errorf("below K_min since 1 ms, at %d ns: senders may go on: %v", step.now, got)
		}
	}
	if d, want := r.Ease(Metrics{Depth: 30 * mb}), decision(Resume, 50, 20, 0, MetricDepth, 30_000); d != want {
		t.Errorf("30 MB: %+v, want %+v", d, want)
	}
}

func TestSeverity(t *testing.T) {
	k := Thresholds{KMin: 1000, KMax: 2000}
	for depth, want := range map[uint64]uint8{0: 0, 11: 0, 12: 1, 500: 21, 1000: 42, 1001: 42, 1500: 110, 2000: 177, 2001: 177, 3000: 216, 4000: 255, 1 << 63: 255} {
		if got := k.Severity(depth); got != want {
			t.Errorf("%d bytes: level %d, want %d", depth, got, want)
		}
	}
	if got := (Thresholds{}).Severity(0); got != 0 {
		t.Errorf("an empty queue without thresholds: level %d", got)
	}
}

// TestSeverityGrows: more bytes never give a lower level, whatever the thresholds.
func TestSeverityGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := Thresholds{KMax: rapid.Uint64().Draw(t, "K_max")}
		k.KMin = rapid.Uint64Max(k.KMax).Draw(t, "K_min")
		less := rapid.Uint64().Draw(t, "less")
		more := rapid.Uint64Min(less).Draw(t, "more")
		if a, b := k.Severity(less), k.Severity(more); a > b {
			t.Fatalf("%d bytes are level %d, %d bytes level %d", less, a, more, b)
		}
	})
}

func TestMeter(t *testing.T) {
	var m Meter
	for i, c := range []struct {
		now                    int64
		depth, packets, marked uint64
		want                   Metrics
	}{
		{ms, 1000, 10, 0, Metrics{1000, 0, 0}},
		{ms + ms/2, 5000, 20, 1, Metrics{5000, 0, 0}}, // within the interval only the depth is new
		{2 * ms, 4000, 110, 25, Metrics{4000, 3000, 250_000}},
		{4 * ms, 2000, 110, 25, Metrics{2000, -1000, 0}},     // no packet: none was marked
		{5 * ms, 2000, 111, 26, Metrics{2000, 0, 1_000_000}}, // all
		{3 * ms, 7, 0, 0, Metrics{7, 0, 1_000_000}},          // the clock was set back
		{4 * ms, 1007, 4, 1, Metrics{1007, 1000, 250_000}},
	} {
		if got := m.Update(ms, c.now, c.depth, c.packets, c.marked); got != c.want {
			t.Errorf("step %d: %+v, want %+v", i, got, c.want)
		}
	}
}

// TestTrigger: each condition begins above its threshold and ends below a lower one.
func TestTrigger(t *testing.T) {
	p := Triggers{Thresholds: Thresholds{KMin: 1000, KMax: 2000}, Depth: true, Marking: 100_000, Growth: 500}
	var trigger Trigger
	for i, c := range []struct {
		m    Metrics
		want Cause
	}{
		{Metrics{Depth: 2000}, 0}, {Metrics{Depth: 2001}, ByDepth}, {Metrics{Depth: 1751}, ByDepth}, {Metrics{Depth: 1750}, 0}, {Metrics{Depth: 2000}, 0},
		{Metrics{Marking: 100_000}, 0}, {Metrics{Marking: 100_001}, ByMarking}, {Metrics{Marking: 50_001}, ByMarking}, {Metrics{Marking: 50_000}, 0},
		{Metrics{Growth: 500}, 0}, {Metrics{Growth: 501}, ByGrowth}, {Metrics{Growth: 251}, ByGrowth}, {Metrics{Growth: 250}, 0},
		{Metrics{2001, 501, 100_001}, ByDepth | ByMarking | ByGrowth}, {Metrics{1751, 251, 50_000}, ByDepth | ByGrowth}, {Metrics{}, 0},
	} {
		if got := trigger.Update(&p, c.m); got != c.want {
			t.Errorf("step %d, %+v: %b, want %b", i, c.m, got, c.want)
		}
	}
	off := Triggers{Thresholds: p.Thresholds}
	if got := new(Trigger).Update(&off, Metrics{1 << 40, 1 << 40, 1_000_000}); got != 0 {
		t.Errorf("all off: %b", got)
	}
}

func TestDecide(t *testing.T) {
	r := example()
	for _, c := range []struct {
		name  string
		m     Metrics
		cause Cause
		want  Decision
	}{
		{"the marking rate, a short queue", Metrics{Depth: mb, Marking: 777_777}, ByMarking, decision(Notify, 0, 43, 1, MetricMarking, 77)},
		{"the growth rate, a short queue", Metrics{Depth: mb, Growth: 12_345_678}, ByGrowth, decision(Notify, 0, 43, 1, MetricGrowth, 12_345)},
		{"growth and marking", Metrics{Depth: 100 * mb, Growth: 1 << 40, Marking: 1}, ByGrowth | ByMarking, decision(RateReduce, 15, 123, 2, MetricGrowth, 0xffffff)},
		{"just above K_max", Metrics{Depth: 125*mb + 1}, ByDepth, decision(RateReduce, 30, 177, 3, MetricDepth, 125_000)},
		{"far above K_max", Metrics{Depth: 200 * mb}, ByDepth | ByGrowth, decision(RateReduce, 50, 224, 4, MetricDepth, 200_000)},
		{"twice K_max", Metrics{Depth: 250 * mb}, ByDepth, decision(Pause, 15_000, 255, 5, MetricDepth, 250_000)},
		{"a pause of 65 ms at most", Metrics{Depth: 1000 * mb}, ByDepth, decision(Pause, 65_535, 255, 5, MetricDepth, 1_000_000)},
		{"24 bits of kilobytes", Metrics{Depth: 1 << 50}, ByDepth, decision(Pause, 65_535, 255, 5, MetricDepth, 0xffffff)},
	} {
		if got := r.Decide(c.m, c.cause); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	r.Metric = MetricRTT
	if d := r.Decide(Metrics{Depth: 130 * mb}, ByDepth); d.MetricType != MetricRTT || d.MetricValue != 20_400 {
		t.Errorf("RTT: %+v, want 10 ms and the 10.4 ms that 130 MB take", d)
	}
	r.Disclose = false
	if d := r.Decide(Metrics{Depth: 130 * mb}, ByDepth); d.MetricType != 0 || d.MetricValue != 0 || d.Level != 180 {
		t.Errorf("undisclosed: %+v", d)
	}
}

// TestStricter: a higher level, and the next rung; at the top of both the request stays the same.
func TestStricter(t *testing.T) {
	r, m := example(), Metrics{Depth: 130 * mb}
	d := r.Decide(m, ByDepth)
	for _, want := range []Decision{decision(RateReduce, 50, 210, 4, MetricDepth, 130_000), decision(Pause, 5400, 240, 5, MetricDepth, 130_000), decision(Pause, 5400, 241, 5, MetricDepth, 130_000)} {
		if d = r.Stricter(m, ByDepth, d); d != want {
			t.Errorf("%+v, want %+v", d, want)
		}
	}
	d.Level = 255
	if d = r.Stricter(m, ByDepth, d); d.Level != 255 || d.Action != Pause {
		t.Errorf("at the top: %+v", d)
	}
}

// TestSender: the requests to a sender, window after window.
func TestSender(t *testing.T) {
	type step struct {
		rate, depth uint64 // bytes of the flow in this window; bytes waiting at its end
		action      Action
		restraint   Restraint
		level       uint8
	}
	for name, steps := range map[string][]step{
		"grows, and nothing helps": {
			{100, 126, RateReduce, 0, 178}, {100, 130, RateReduce, 0, 210}, {100, 140, Pause, 0, 240}, {100, 150, Pause, 0, 241}},
		"slows down as asked": {
			{100, 126, RateReduce, 0, 178}, {70, 120, 0, SlowingDown, 0}, {70, 110, 0, Draining, 0}},
		"slows down before it is asked: an upstream gateway asked it": {
			{100, 0, 0, Unrestrained, 0}, {100, 0, 0, Unrestrained, 0}, {70, 0, 0, SlowingDown, 0}},
		"slows down, and the queue grows all the same": {
			{100, 0, 0, Unrestrained, 0}, {100, 126, RateReduce, 0, 178}, {70, 130, RateReduce, 0, 210}},
		"an eighth less is no slowing down, and a queue that stays asks for the same again": {
			{100, 126, RateReduce, 0, 178}, {88, 126, RateReduce, 0, 178}},
	} {
		r := example()
		var s Sender
		bytes, now := uint64(1), int64(1)
		s.Observe(&r, now, bytes, 0)
		for i, step := range steps {
			now += r.RTT
			bytes += step.rate * mb
			m := Metrics{Depth: step.depth * mb}
			s.Observe(&r, now, bytes, m.Depth)
			if step.depth == 0 && step.restraint == Unrestrained {
				continue // nothing to ask: the queue is empty
			}
			cause := ByDepth
			d, restraint := next(&s, &r, m, cause, now)
			if restraint != step.restraint || restraint == Unrestrained && (d.Action != step.action || d.Level != step.level) {
				t.Errorf("%s, step %d: %+v, %v; want %+v", name, i, d, restraint, step)
			}
			if restraint == Unrestrained {
				s.Notified(&d, m.Depth)
			}
		}
	}
}

// next is a sender's request as its callers determine it.
func next(s *Sender, r *Response, m Metrics, c Cause, now int64) (Decision, Restraint) {
	switch restraint, stricter := s.Next(r, m.Depth, now); {
	case restraint != Unrestrained:
		return Decision{}, restraint
	case stricter:
		return s.Stricter(r, m, c), Unrestrained
	}
	return r.Decide(m, c), Unrestrained
}

// TestSlowed: a Resume is due if the sender was asked to slow down since the last one.
func TestSlowed(t *testing.T) {
	var s Sender
	for i, c := range []struct {
		action Action
		want   bool
	}{{Notify, false}, {RateReduce, true}, {Notify, true}, {Resume, false}, {Pause, true}, {Resume, false}} {
		if s.Notified(&Decision{Action: c.action}, 1); s.Slowed != c.want {
			t.Errorf("step %d, %v: %v, want %v", i, c.action, s.Slowed, c.want)
		}
	}
}

// TestNotifiedElsewhere: another gateway's notification counts as one: no second one while the queue shrinks, a stricter one if it doesn't.
func TestNotifiedElsewhere(t *testing.T) {
	r := example()
	var s Sender
	s.NotifiedElsewhere(&r, Metrics{Depth: 126 * mb}, ByDepth)
	if _, restraint := next(&s, &r, Metrics{Depth: 120 * mb}, ByDepth, 1); restraint != Draining {
		t.Errorf("the queue shrinks: %v", restraint)
	}
	if d, _ := next(&s, &r, Metrics{Depth: 127 * mb}, ByDepth, 1); d.Action != RateReduce || d.Parameter != 50 {
		t.Errorf("the queue grows: %+v", d)
	}
	if s.Slowed {
		t.Error("a Resume is the other gateway's to send")
	}
}

// TestDecisionsAreValid: whatever the state, a decision is one that a Long-haul CNP can carry (draft-tian 6.1).
func TestDecisionsAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := example()
		r.Thresholds = Adaptive(rapid.Uint64().Draw(t, "base"), 1, rapid.Uint64Max(1e12).Draw(t, "rate"), rapid.Int64Max(1e10).Draw(t, "rtt"), 50)
		r.Disclose, r.Metric = rapid.Bool().Draw(t, "disclose"), rapid.Uint8Max(4).Draw(t, "metric")
		r.ResumePercent = rapid.Uint16Range(99, 102).Draw(t, "resume percent")
		m := Metrics{rapid.Uint64().Draw(t, "depth"), rapid.Int64().Draw(t, "growth"), rapid.Uint32Max(1_000_000).Draw(t, "marking")}
		c := Cause(rapid.Uint8Range(1, 7).Draw(t, "cause"))
		last := r.Decide(Metrics{Depth: rapid.Uint64().Draw(t, "before")}, c)
		for _, d := range []Decision{r.Decide(m, c), r.Stricter(m, c, last), r.Ease(m)} {
			switch {
			case d.Action == Notify && d.Parameter != 0, d.Action == RateReduce && d.Parameter > 100, d.Action == Resume && d.Parameter > 100,
				d.Action == Pause && d.Parameter == 0, d.MetricValue >= 1<<24, !r.Disclose && (d.MetricType != 0 || d.MetricValue != 0),
				d.MetricType == MetricMarking && d.MetricValue > 100, d.MetricType > MetricRTT:
				t.Fatalf("%+v", d)
			}
		}
		if d := r.Stricter(m, c, last); d.Level < last.Level || d.Rung < last.Rung {
			t.Fatalf("%+v is not stricter than %+v", d, last)
		}
	})
}

// TestRelayed: a proxy asks for what its own ladder has at the level, which grows with the 3 bits from none to the highest; it discloses nothing.
func TestRelayed(t *testing.T) {
	r := Response{Ladder: DefaultLadder, RTT: 2_500_000, Disclose: true}
	for level, want := range []Decision{
		{Action: Notify, Rung: 1}, {Action: Notify, Level: 36, Rung: 1}, {Action: Notify, Level: 73, Rung: 1},
		{Action: RateReduce, Parameter: 15, Level: 109, Rung: 2}, {Action: RateReduce, Parameter: 15, Level: 146, Rung: 2},
		{Action: RateReduce, Parameter: 30, Level: 182, Rung: 3}, {Action: RateReduce, Parameter: 50, Level: 219, Rung: 4}, {Action: Pause, Parameter: 2500, Level: 255, Rung: 5},
	} {
		if got := r.Relayed(uint8(level)); got != want {
			t.Errorf("level %d: %+v, expected %+v", level, got, want)
		}
		if severity := uint8(level)<<5 | uint8(level)<<2 | uint8(level)>>1; packet.ProxyLevel(severity) != uint8(level) {
			t.Errorf("level %d relayed becomes %d", level, packet.ProxyLevel(severity))
		}
	}
	for _, c := range []struct {
		rtt  int64
		want uint16
	}{{0, 1}, {-1, 1}, {999, 1}, {1e12, 65535}} {
		r.RTT = c.rtt
		if got := r.Relayed(7).Parameter; got != c.want {
			t.Errorf("RTT_est %d ns: pause of %d us, expected %d", c.rtt, got, c.want)
		}
	}
}
