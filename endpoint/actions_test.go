package endpoint

import (
	"math"
	"testing"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// event is a notification, or none, and the flow's state after it.
type event struct {
	at     int64 // ns after the scene's start
	frame  func(*scene) []byte
	want   Decision
	rate   float64 // Gb/s
	paused int64   // until when, ns after the scene's start; 0: not paused
}

func longHaul(l cnpgen.LongHaul) func(*scene) []byte {
	return func(s *scene) []byte { return s.longHaul(l) }
}

func reduce(percent uint16) func(*scene) []byte {
	return longHaul(cnpgen.LongHaul{Action: cnpgen.RateReduce, Parameter: percent, Level: uint8(percent)})
}

func resume(percent uint16) func(*scene) []byte {
	return longHaul(cnpgen.LongHaul{Action: cnpgen.Resume, Parameter: percent, Level: 20})
}

func pause(microseconds uint16) func(*scene) []byte {
	return longHaul(cnpgen.LongHaul{Action: cnpgen.Pause, Parameter: microseconds})
}

// TestActions: the effect of each notification on rate and pause (draft-tian 5.5.1, 5.6, 9). RTT_est is 1 ms, the line rate 100 Gb/s.
func TestActions(t *testing.T) {
	const ms = 1_000_000
	slow := func(c *ReactionConfig) { c.RecoveryInterval = 1000 * ms }
	ppfc := func(c *ReactionConfig) { c.Extension = packet.PPFC }
	for _, c := range []struct {
		name   string
		v6     bool
		config func(*ReactionConfig)
		events []event
	}{
		{name: "draft-tian 7 steps 5 and 8", config: slow, events: []event{
			{frame: reduce(30), want: Reduced, rate: 70},
			{at: ms, frame: resume(50), want: Resumed, rate: 85},
		}},
		{name: "Resume of all", config: slow, events: []event{
			{frame: reduce(30), want: Reduced, rate: 70},
			{at: ms, frame: reduce(20), want: Reduced, rate: 56},
			{at: 2 * ms, frame: resume(0), want: Resumed, rate: 100},
			{at: 3 * ms, frame: resume(0), want: NothingToResume, rate: 100},
		}},
		{name: "Resume gives back the last reduction only", config: slow, events: []event{
			{frame: reduce(50), want: Reduced, rate: 50},
			{at: ms, frame: reduce(20), want: Reduced, rate: 40},
			{at: 2 * ms, frame: resume(50), want: Resumed, rate: 45},
			{at: 4 * ms, frame: resume(100), want: Resumed, rate: 50},
			{at: 6 * ms, frame: resume(100), want: Resumed, rate: 50},
		}},
		{name: "Pause has recovery wait", events: []event{
			{frame: reduce(50), want: Reduced, rate: 50},
			{at: ms, frame: pause(100), want: Paused, rate: 50, paused: ms + 100_000},
			{at: 3*ms - 1, rate: 50},
			{at: 3 * ms, rate: 51},
		}},
		{name: "Resume has recovery wait", events: []event{
			{frame: reduce(50), want: Reduced, rate: 50},
			{at: ms, frame: resume(50), want: Resumed, rate: 75},
			{at: 3*ms - 1, rate: 75},
			{at: 3 * ms, rate: 76},
		}},
		{name: "Resume is capped", config: func(c *ReactionConfig) { slow(c); c.MaxResume = 10 * gigabit }, events: []event{
			{frame: reduce(90), want: Reduced, rate: 10},
			{at: ms, frame: resume(0), want: Resumed, rate: 20},
			{at: 2 * ms, frame: resume(50), want: Resumed, rate: 30},
		}},
		{name: "reduction of all leaves the least rate", config: slow, events: []event{
			{frame: reduce(100), want: Reduced, rate: 0.04},
		}},
		{name: "recovery", events: []event{
			{frame: reduce(10), want: Reduced, rate: 90},
			{at: 2*ms - 1, rate: 90},
			{at: 2 * ms, rate: 91},
			{at: 5 * ms, rate: 94},
			{at: 5 * ms, frame: reduce(50), want: Reduced, rate: 47}, // another one: recovery waits anew
			{at: 7*ms - 1, rate: 47},
			{at: 7 * ms, rate: 48},
			{at: 1000 * ms, rate: 100},
		}},
		{name: "Notify: DCQCN, and recovery waits", events: []event{
			{frame: reduce(10), want: Reduced, rate: 90},
			{at: ms, frame: longHaul(cnpgen.LongHaul{Level: 50}), want: SlowedDown, rate: 50},
			{at: 3*ms - 1, rate: 90},
			{at: 3 * ms, rate: 91},
		}},
		{name: "Notify without an algorithm", config: func(c *ReactionConfig) { c.Algorithm = NoControl }, events: []event{
			{frame: longHaul(cnpgen.LongHaul{Level: 50}), want: Ignored, rate: 100},
			{frame: reduce(10), want: Reduced, rate: 90},
		}},
		{name: "Pause", events: []event{
			{frame: pause(1000), want: Paused, rate: 100, paused: ms},
			{at: ms / 2, frame: pause(100), want: Paused, rate: 100, paused: ms}, // doesn't end the first one
			{at: ms + 1, rate: 100},
		}},
		{name: "Resume ends a pause", config: slow, events: []event{
			{frame: pause(60_000), want: Paused, rate: 100, paused: 60 * ms},
			{at: ms, frame: resume(0), want: Resumed, rate: 100},
			{at: 2 * ms, frame: resume(0), want: NothingToResume, rate: 100},
		}},
		{name: "PPFC", config: ppfc, events: []event{
			{frame: func(s *scene) []byte { return s.ppfc(cnpgen.PPFC{Duration: 500}) }, want: Paused, rate: 100, paused: 500_000},
			{at: 100, frame: func(s *scene) []byte { return s.ppfc(cnpgen.PPFC{Resume: true}) }, want: Unpaused, rate: 100},
			{at: 200, frame: func(s *scene) []byte { return s.ppfc(cnpgen.PPFC{Resume: true}) }, want: NothingToResume, rate: 100},
		}},
		{name: "standard CNP", events: []event{
			{frame: func(s *scene) []byte { return s.standard(sourceQP) }, want: SlowedDown, rate: 50},
		}},
		{name: "Fast CNP", v6: true, events: []event{
			{frame: func(s *scene) []byte { return s.fast(packet.IOAMTrace{}) }, want: SlowedDown, rate: 50},
		}},
		{name: "Long-haul CNP in ICMPv6", v6: true, config: slow, events: []event{
			{frame: func(s *scene) []byte {
				return s.icmpv6(cnpgen.LongHaul{Level: 1, Action: cnpgen.RateReduce, Parameter: 40}, nil)
			}, want: Reduced, rate: 60},
		}},
		{name: "Long-haul CNP to a host that doesn't know it", config: func(c *ReactionConfig) { c.Extension = packet.StandardCNP }, events: []event{
			{frame: pause(1000), want: SlowedDown, rate: 50},
		}},
		{name: "the lower limit counts", config: slow, events: []event{
			{frame: func(s *scene) []byte { return s.standard(sourceQP) }, want: SlowedDown, rate: 50},
			{frame: reduce(20), want: Reduced, rate: 40},
			{at: 900 * ms, rate: 40},
		}},
		{name: "HPCC", v6: true, config: func(c *ReactionConfig) { slow(c); c.Algorithm = HPCC; c.HPCC.Increase = 1 }, events: []event{
			// A queue of one BDP (12.5 MB) on a link that is taken as fully used: U is 2, the window is eta/2.
			{frame: hpccTrace(second, 12_500_000, 0), want: Measured, rate: 47.5},
			{at: 1, frame: hpccTrace(second, 12_500_000, 0), want: Replayed, rate: 47.5},
			// An RTT later the queue is gone, and the link is half used: U follows at once, and the rate after maxStage, 5, small steps.
			{at: ms, frame: hpccTrace(second+ms, 0, 6_250_000), want: Measured, rate: 47.5},
			{at: 2 * ms, frame: hpccTrace(second+2*ms, 0, 2*6_250_000), want: Measured, rate: 47.5},
			{at: 3 * ms, frame: hpccTrace(second+3*ms, 0, 3*6_250_000), want: Measured, rate: 47.5},
			{at: 4 * ms, frame: hpccTrace(second+4*ms, 0, 4*6_250_000), want: Measured, rate: 47.5},
			{at: 5 * ms, frame: hpccTrace(second+5*ms, 0, 5*6_250_000), want: Measured, rate: 47.5},
			{at: 6 * ms, frame: hpccTrace(second+6*ms, 0, 6*6_250_000), want: Measured, rate: 90.25},
			// Half an RTT counts half: U is (0.5 + 1.3) / 2. A queue counts only if it was there the last time, too.
			{at: 6*ms + ms/2, frame: hpccTrace(second+6*ms+ms/2, 3_125_000, 6*6_250_000+8_125_000), want: Measured, rate: 90.25},
		}},
		{name: "HPCC and DCQCN", v6: true, config: func(c *ReactionConfig) { slow(c); c.Algorithm = HPCC; c.HPCC.Increase = 1 }, events: []event{
			{frame: func(s *scene) []byte { return s.standard(sourceQP) }, want: SlowedDown, rate: 50},
			{at: 50_000, frame: func(s *scene) []byte { return s.standard(sourceQP) }, want: SlowedDown, rate: 25},
			{at: 50_001, frame: hpccTrace(second, 12_500_000, 0), want: Measured, rate: 25},
			{at: 100 * ms, rate: 47.5},
		}},
		{name: "HPCC, no news", v6: true, config: func(c *ReactionConfig) { c.Algorithm = HPCC; c.HPCC.Increase = 1 }, events: []event{
			{frame: hpccTrace(second, 12_500_000, 0), want: Measured, rate: 47.5},
			{at: 2*ms - 1, rate: 47.5},
			{at: 2 * ms, rate: 48.5},
			{at: 100 * ms, rate: 100},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, c.v6, c.config)
			start := s.now
			for i, e := range c.events {
				s.now = start + e.at
				if e.frame != nil {
					if d := s.receive(e.frame(s), nil); d != e.want {
						t.Fatalf("%d: decision %v, want %v", i, d, e.want)
					}
				}
				rate, paused := s.flow.Rate(s.now)/gigabit, max(0, s.flow.PausedUntil()-s.now)
				if math.Abs(rate-e.rate) > 0.01 || paused != max(0, e.paused-e.at) {
					t.Errorf("%d: rate %.3f Gb/s, paused for %d ns; want %v, %d", i, rate, paused, e.rate, max(0, e.paused-e.at))
				}
			}
		})
	}
}

func hpccTrace(at int64, queue uint32, sent uint64) func(*scene) []byte {
	return func(s *scene) []byte {
		return s.fast(trace(Hop{Node: 9, Time: at, Queue: queue, Sent: sent, Rate: 100 * gigabit}))
	}
}

// TestObeysAtOnce: a notification takes effect from the next packet on, whether the QP waits for its pacing or for its turn.
func TestObeysAtOnce(t *testing.T) {
	pause := cnpgen.LongHaul{Action: cnpgen.Pause, Parameter: 1000}
	const at = 100_000
	for _, c := range []struct {
		name   string
		others int // QPs that have as much to send
		ask    cnpgen.LongHaul
		ends   int64 // when a Resume comes, ns; 0: none
		want   int64 // when the QP's next packet goes, and a QP's turn later at most
	}{
		{"a pause runs out", 0, pause, 0, 1_100_000},
		{"a pause is ended", 0, pause, 500_000, 500_000},
		{"a pause runs out, with others", 3, pause, 0, 1_100_000},
		{"a pause is ended, with others", 3, pause, 500_000, 500_000},
		{"a hundredth of the rate", 0, cnpgen.LongHaul{Action: cnpgen.RateReduce, Parameter: 99}, 0, at + 99*87},
		{"a hundredth of the rate, with others", 3, cnpgen.LongHaul{Action: cnpgen.RateReduce, Parameter: 99}, 0, at + 96*87},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, false, nil)
			n := newNetwork(t, Config{Addr: s.target.Src, Reaction: ReactionConfig{Trusted: trustGateway, Extension: packet.LongHaulCNP}}, 1000)
			a, b := n.connect()
			n.start(0, Stream{QP: a, Bytes: 1 << 28})
			for range c.others {
				other, _ := n.connect()
				n.start(0, Stream{QP: other, Bytes: 1 << 28})
			}
			s.target.Dst, s.target.DestQP = n.hosts[1].c.Addr, b
			n.run(at)
			tell := func(l cnpgen.LongHaul) {
				l.SourceQP = a
				frame := s.longHaul(l)
				n.hosts[0].Receive(n.now, frame, len(frame))
			}
			tell(c.ask)
			next := int64(0)
			n.seen = func(now int64, from int, frame []byte, length int) {
				if from == 0 && next == 0 && parsed(frame, length).DestQP == b {
					next = now
				}
			}
			if c.ends > 0 {
				n.run(c.ends)
				tell(cnpgen.LongHaul{Action: cnpgen.Resume})
			}
			n.run(2_000_000)
			if turn := int64(c.others+1) * 88; next < c.want || next > c.want+turn {
				t.Errorf("the next packet goes at %d ns, want %d to %d", next, c.want, c.want+turn)
			}
		})
	}
}
