package endpoint

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestRefusals: notifications that are forged, from outside the domain, stale, replayed or inconsistent are counted by the reason for
// refusal, and change nothing.
func TestRefusals(t *testing.T) {
	stranger := packet.AddrFrom(gateway.IPv4.Netip().Next())
	ppfc := func(c *ReactionConfig) { c.Extension = packet.PPFC }
	hop := Hop{Node: 1, Time: second, Queue: 50_000, Rate: 100 * gigabit}
	reduce := cnpgen.LongHaul{Action: cnpgen.RateReduce, Parameter: 30}
	for _, c := range []struct {
		name   string
		v6     bool
		config func(*ReactionConfig)
		frame  func(*scene) []byte
		change func([]byte)
		want   Decision
		reason cnpdec.Reason // of Refused
	}{
		{name: "Long-haul CNP from outside the domain", frame: func(s *scene) []byte { s.from.IPv4 = stranger; return s.longHaul(reduce) },
			want: Refused, reason: cnpdec.UntrustedSource},
		{name: "Long-haul CNP, empty access list", config: func(c *ReactionConfig) { c.Trusted = nil },
			frame: func(s *scene) []byte { return s.longHaul(reduce) }, want: Refused, reason: cnpdec.UntrustedSource},
		{name: "Fast CNP from outside the domain", v6: true, frame: func(s *scene) []byte { s.from.IPv6.Lo++; return s.fast(packet.IOAMTrace{}) },
			want: Refused, reason: cnpdec.UntrustedSource},
		{name: "PPFC from outside the domain", config: ppfc, frame: func(s *scene) []byte { s.from.IPv4 = stranger; return s.ppfc(cnpgen.PPFC{Duration: 9}) },
			want: Refused, reason: cnpdec.UntrustedSource},
		{name: "forged standard CNP", frame: func(s *scene) []byte { s.target.Dst = stranger; return s.standard(sourceQP) }, want: NotFromPeer},
		{name: "standard CNP for no QP", frame: func(s *scene) []byte { return s.standard(sourceQP + 1) }, want: Refused, reason: cnpdec.UnknownQP},
		{name: "Long-haul CNP for no QP", frame: func(s *scene) []byte { l := reduce; l.SourceQP = 77; return s.longHaul(l) },
			want: Refused, reason: cnpdec.UnknownQP},
		{name: "Fast CNP for no flow", v6: true, frame: func(s *scene) []byte { s.target.DestQP++; return s.fast(packet.IOAMTrace{}) },
			want: Refused, reason: cnpdec.UnknownFlow},
		{name: "Fast CNP for another destination", v6: true, frame: func(s *scene) []byte { s.target.Dst.Lo++; return s.fast(packet.IOAMTrace{}) },
			want: Refused, reason: cnpdec.UnknownFlow},
		{name: "PPFC for no flow", config: ppfc, frame: func(s *scene) []byte { s.target.DestQP++; return s.ppfc(cnpgen.PPFC{Duration: 9}) },
			want: Refused, reason: cnpdec.UnknownFlow},
		{name: "for another host", frame: func(s *scene) []byte { s.target.Src.Lo++; return s.longHaul(reduce) }, want: WrongHost},
		{name: "changed on the way", frame: func(s *scene) []byte { return s.longHaul(reduce) }, change: func(b []byte) { b[len(b)-14] ^= 1 },
			want: Refused, reason: cnpdec.WrongICRC},
		{name: "Fast CNP isn't enabled", v6: true, config: func(c *ReactionConfig) { c.FastCNP = false },
			frame: func(s *scene) []byte { return s.fast(packet.IOAMTrace{}) }, want: Disabled},
		{name: "ICMPv6 isn't enabled", v6: true, config: func(c *ReactionConfig) { c.LongHaulICMPv6 = false },
			frame: func(s *scene) []byte { return s.icmpv6(cnpgen.LongHaul{}, nil) }, want: Disabled},
		{name: "for a proxy", frame: func(s *scene) []byte { return s.proxy() }, want: NotForHosts},
		{name: "reduction of 101 percent", frame: func(s *scene) []byte { return s.longHaul(reduce) }, change: setLongHaul(3, 101),
			want: Refused, reason: cnpdec.WrongParameter},
		{name: "reduction of nothing", frame: func(s *scene) []byte { return s.longHaul(cnpgen.LongHaul{Action: cnpgen.RateReduce}) }, want: Inconsistent},
		{name: "pause for no time", frame: func(s *scene) []byte { return s.longHaul(cnpgen.LongHaul{Action: cnpgen.Pause}) }, want: Inconsistent},
		{name: "reduction without congestion", frame: func(s *scene) []byte { return s.longHaul(reduce) }, change: setLongHaul(0, 0), want: Inconsistent},
		{name: "another QP in the BTH", frame: func(s *scene) []byte { return s.longHaul(reduce) }, change: setBTH(5, 9), want: Inconsistent},
		{name: "PPFC pause for no time", config: ppfc, frame: func(s *scene) []byte { return s.ppfc(cnpgen.PPFC{}) }, want: Inconsistent},
		{name: "stale", frame: func(s *scene) []byte { return s.stamped(-11_000_000) }, want: Stale},
		{name: "from the future", frame: func(s *scene) []byte { return s.stamped(11_000_000) }, want: Stale},
		{name: "from another era", frame: func(s *scene) []byte { return s.stamped(-1_500_000_000 * second) }, want: Stale},
		{name: "trace of another form", v6: true, config: func(c *ReactionConfig) { c.Algorithm = HPCC },
			frame: func(s *scene) []byte { return s.fast(trace()) }, want: WrongTrace},
		{name: "trace of a link without a rate", v6: true, config: func(c *ReactionConfig) { c.Algorithm = HPCC },
			frame: func(s *scene) []byte { h := hop; h.Rate = 0; return s.fast(trace(h)) }, want: WrongTrace},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, c.v6, c.config)
			if d := s.receive(c.frame(s), c.change); d != c.want {
				t.Fatalf("decision %v (%v), want %v", d, *s.r.Counters(), c.want)
			}
			counters := s.r.Counters()
			if counters.Decisions[c.want] != 1 || c.want == Refused && counters.Refused[c.reason] != 1 {
				t.Errorf("counted %+v", counters)
			}
			if s.flow.Rate(s.now) != sceneRate || s.flow.PausedUntil() > s.now {
				t.Errorf("rate %v, paused until %d", s.flow.Rate(s.now), s.flow.PausedUntil())
			}
		})
	}
}

// proxy is a notification to a proxy about a packet of the flow.
func (s *scene) proxy() []byte {
	h, err := New(Config{Addr: s.target.Src, LineRate: gigabit})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := h.Open(QP{Number: sourceQP, Peer: Peer{Addr: s.target.Dst, QP: destQP}}); err != nil {
		s.t.Fatal(err)
	}
	if err := h.Start(Stream{QP: sourceQP, Bytes: 100}); err != nil {
		s.t.Fatal(err)
	}
	data := make([]byte, MaxFrame)
	_, length := h.Next(0, data)
	return build(func(out []byte) int {
		return cnpgen.ProxyNotification(out, &s.target, &s.from, data[:length], parsed(data, length), s.target.Src, 1)
	})
}

// stamped is a Rate Reduce by 30 percent from a device whose clock is off.
func (s *scene) stamped(offset int64) []byte {
	return s.extended(cnpgen.LongHaul{Action: cnpgen.RateReduce, Parameter: 30}, &cnpgen.Extension{Timestamp: s.timestamp(offset)})
}

// setLongHaul sets a byte of the fields of a Long-haul CNP over IPv4, setBTH a byte of its BTH; both correct the ICRC.
func setLongHaul(at int, value byte) func([]byte) { return setBTH(packet.BTHLen+at, value) }

func setBTH(at int, value byte) func([]byte) {
	return func(b []byte) {
		p := parsed(b, len(b))
		b[int(p.BTH)+at] = value
		binary.LittleEndian.PutUint32(b[p.ICRC:], packet.ICRC(b, int(p.L3), int(p.BTH), int(p.ICRC), true))
	}
}

// TestReplays: a copy of an obeyed notification is refused; a later one is not.
func TestReplays(t *testing.T) {
	const ms = 1_000_000
	type sent struct {
		at     int64    // ns after the first one
		frame  int      // which frame of the list is sent again; -1: a new one
		device int64    // which device sends a new one
		stamp  int64    // what its clock says, ns; 0: no timestamp
		level  uint8    // of a new one
		want   Decision // Reduced or Replayed
	}
	for _, c := range []struct {
		name string
		sent []sent
	}{
		{"with timestamp", []sent{
			{frame: -1, stamp: 1, level: 100, want: Reduced},
			{at: 1000, frame: 0, want: Replayed},
			{at: 5 * ms, frame: 0, want: Replayed},
			{at: 5 * ms, frame: -1, stamp: 5 * ms, level: 100, want: Reduced},
			{at: 6 * ms, frame: 0, want: Replayed},
			{at: 6 * ms, frame: 3, want: Replayed},
			{at: 6 * ms, frame: -1, stamp: 6 * ms, level: 100, want: Reduced},
		}},
		{"with timestamp, and one without in between", []sent{
			{frame: -1, stamp: 1, level: 100, want: Reduced},
			{at: ms, frame: -1, level: 100, want: Reduced},
			{at: 2 * ms, frame: 0, want: Replayed},
			{at: 2 * ms, frame: -1, stamp: 2 * ms, level: 100, want: Reduced},
		}},
		{"without", []sent{
			{frame: -1, level: 100, want: Reduced},
			{at: sceneRTT/2 - 1, frame: 0, want: Replayed},
			{at: sceneRTT/2 - 1, frame: -1, level: 101, want: Reduced}, // worse now: not the same
			{at: sceneRTT, frame: -1, level: 101, want: Reduced},       // an RTT later, it may be the same
			{at: sceneRTT * 3 / 2, frame: 3, want: Reduced},            // or half of one
		}},
		{"other devices", []sent{
			{frame: -1, stamp: 3, level: 100, want: Reduced},
			{at: 10, frame: -1, device: 1, stamp: 2, level: 100, want: Reduced},
			{at: 10, frame: -1, device: 2, level: 100, want: Reduced},
			{at: 10, frame: -1, device: 3, level: 100, want: Reduced},
			{at: 20, frame: 0, want: Replayed},
			{at: 20, frame: 1, want: Replayed},
			{at: 20, frame: 2, want: Replayed},
			{at: 20, frame: 3, want: Replayed},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, false, func(c *ReactionConfig) { c.Trusted = append(c.Trusted, netip.MustParsePrefix("10.255.0.0/24")) })
			start := s.now
			var frames [][]byte
			for i, x := range c.sent {
				s.now = start + x.at
				if x.frame < 0 {
					s.from.IPv4 = gateway.IPv4
					s.from.IPv4.Lo += uint64(x.device)
					l := cnpgen.LongHaul{Action: cnpgen.RateReduce, Parameter: 10, Level: x.level}
					var extension *cnpgen.Extension
					if x.stamp != 0 {
						extension = &cnpgen.Extension{Timestamp: s.timestamp(x.stamp - x.at)}
					}
					frames = append(frames, s.extended(l, extension))
				} else {
					frames = append(frames, frames[x.frame])
				}
				before := s.flow.Rate(s.now)
				d := s.receive(frames[i], nil)
				if d != x.want || (s.flow.Rate(s.now) != before) != (x.want == Reduced) {
					t.Fatalf("%d: decision %v, want %v; rate %v, was %v", i, d, x.want, s.flow.Rate(s.now), before)
				}
			}
		})
	}
}

// TestFarGateway: a notification may be as old as the delay from the farthest gateway.
func TestFarGateway(t *testing.T) {
	for _, c := range []struct {
		rtt, age int64
		want     Decision
	}{
		{1_000_000, 10_000_000, Reduced}, {1_000_000, 11_000_000, Stale}, {40_000_000, 20_000_000, Reduced}, {40_000_000, 41_000_000, Stale},
	} {
		s := newScene(t, false, func(r *ReactionConfig) { r.RTT = c.rtt })
		if d := s.receive(s.stamped(-c.age), nil); d != c.want {
			t.Errorf("RTT_est %d ns, %d ns old: %v, want %v", c.rtt, c.age, d, c.want)
		}
	}
}

// TestPeerQPServesAnotherConnection: a notification that names the peer's QP is about the connection that was opened last, also if the end of the one
// before it comes later, and again about the earlier one if that is the one left.
func TestPeerQPServesAnotherConnection(t *testing.T) {
	for _, c := range []struct {
		name        string
		close       []int // of the three QPs
		reached     int
		unknownFlow bool
	}{
		{"all open", nil, 2, false},
		{"the first closed", []int{0}, 2, false},
		{"the last closed", []int{2}, 1, false},
		{"the middle and the last closed", []int{1, 2}, 0, false},
		{"the last and the middle closed", []int{2, 1}, 0, false},
		{"the first and the last closed", []int{0, 2}, 1, false},
		{"all closed", []int{1, 0, 2}, 0, true},
	} {
		s := newScene(t, true, nil)
		flows := []*Flow{s.flow}
		for n := range uint32(2) {
			flows = append(flows, s.r.Open(FlowID{QP: sourceQP + 1 + n, Dst: s.target.Dst, DestQP: destQP}))
		}
		for _, n := range c.close {
			s.r.Close(flows[n])
		}
		frame := s.fast(packet.IOAMTrace{})
		f, d := s.r.Receive(s.now, frame, parsed(frame, len(frame)))
		switch {
		case c.unknownFlow:
			if f != nil || d != Refused || s.r.counters.Refused[cnpdec.UnknownFlow] != 1 {
				t.Errorf("%s: %v", c.name, d)
			}
		case f != flows[c.reached]:
			t.Errorf("%s: %v, and not for QP %d", c.name, d, c.reached)
		}
	}
}

// TestReactionDelay: a slow NIC cuts the rate between its shortest and longest delay after a CNP. CNPs that come in that time add nothing; one that
// comes later is obeyed after another delay. Delays differ.
func TestReactionDelay(t *testing.T) {
	const shortest, longest = 3_000_000, 39_000_000
	s := newScene(t, false, func(c *ReactionConfig) {
		c.ReactionDelay, c.ReactionDelayMax = shortest, longest
		c.DCQCN = DCQCNConfig{RateTimer: 1000 * second, AlphaTimer: 1000 * second, ByteCounter: -1}
	})
	delays := map[int64]bool{}
	rate := float64(sceneRate)
	for range 4 {
		begin := s.now
		for s.flow.Rate(s.now) == rate {
			if s.now-begin > longest {
				t.Fatalf("no cut %d ns after a CNP", s.now-begin)
			}
			s.receive(s.standard(sourceQP), nil)
			s.now += 100_000
		}
		if s.flow.Rate(s.now) != rate/2 || s.now-begin < shortest {
			t.Errorf("rate %v after %d ns, want half of %v after %d to %d ns", s.flow.Rate(s.now), s.now-begin, rate, shortest, longest)
		}
		delays[s.now-begin] = true
		rate /= 2
	}
	if len(delays) < 4 {
		t.Errorf("delays %v, want four different ones", delays)
	}
}
