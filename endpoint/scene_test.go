package endpoint

import (
	"net/netip"
	"testing"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// scene is a reaction point with one flow, and a gateway that notifies it.
type scene struct {
	t      testing.TB
	r      *ReactionPoint
	flow   *Flow
	now    int64
	target cnpgen.Target
	from   cnpgen.Gateway
}

const (
	sourceQP  = 0x100
	destQP    = 0x200
	sceneRTT  = 1_000_000
	sceneRate = 100 * gigabit
)

// newScene has everything enabled; change may change that.
func newScene(t testing.TB, v6 bool, change func(*ReactionConfig)) *scene {
	t.Helper()
	src, dst := packet.AddrFrom(netip.MustParseAddr("10.0.0.1")), packet.AddrFrom(netip.MustParseAddr("10.0.0.4"))
	family := uint8(4)
	if v6 {
		src, dst, family = ipv6, packet.Addr{Hi: ipv6.Hi, Lo: 4}, 6
	}
	c := ReactionConfig{
		Addr: src, LineRate: sceneRate, Trusted: trustGateway, FastCNP: true, LongHaulICMPv6: true, Extension: packet.LongHaulCNP,
		Algorithm: DCQCN, RTT: sceneRTT, UnixTime: 1_700_000_000 * second,
	}
	if change != nil {
		change(&c)
	}
	r, err := NewReactionPoint(c)
	if err != nil {
		t.Fatal(err)
	}
	return &scene{
		t: t, r: r, flow: r.Open(FlowID{QP: sourceQP, Dst: dst, DestQP: destQP}), now: 5 * second, from: gateway,
		target: cnpgen.Target{Src: src, Dst: dst, Family: family, SrcPort: packet.SourcePort(sourceQP, destQP), DestQP: destQP},
	}
}

// timestamp is that of a device whose clock is right.
func (s *scene) timestamp(offset int64) uint64 {
	return packet.NTPTime(s.now + s.r.c.UnixTime + offset)
}

// receive passes a frame to the reaction point, unchanged or changed.
func (s *scene) receive(frame []byte, change func([]byte)) Decision {
	s.t.Helper()
	if len(frame) == 0 {
		s.t.Fatal("the notification can't be built")
	}
	if change != nil {
		change(frame)
	}
	_, d := s.r.Receive(s.now, frame, parsed(frame, len(frame)))
	return d
}

// build runs a builder of cnpgen.
func build(b func(out []byte) int) []byte {
	out := make([]byte, cnpgen.MaxLen)
	return out[:b(out)]
}

func (s *scene) longHaul(l cnpgen.LongHaul) []byte { return s.extended(l, nil) }

func (s *scene) extended(l cnpgen.LongHaul, x *cnpgen.Extension) []byte {
	if l.SourceQP == 0 {
		l.SourceQP = sourceQP
	}
	if l.Level == 0 && l.Action != cnpgen.Notify {
		l.Level = 180
	}
	return build(func(out []byte) int { return cnpgen.LongHaulCNP(out, &s.target, &s.from, &l, x) })
}

func (s *scene) icmpv6(l cnpgen.LongHaul, x *cnpgen.Extension) []byte {
	l.SourceQP = sourceQP
	return build(func(out []byte) int { return cnpgen.LongHaulCNPICMPv6(out, &s.target, &s.from, &l, x) })
}

func (s *scene) standard(qp uint32) []byte {
	return build(func(out []byte) int { return cnpgen.StandardCNP(out, &s.target, &s.from, qp) })
}

func (s *scene) fast(trace packet.IOAMTrace) []byte {
	return build(func(out []byte) int { n, _ := cnpgen.FastCNP(out, &s.target, &s.from, trace); return n })
}

func (s *scene) ppfc(n cnpgen.PPFC) []byte {
	return build(func(out []byte) int { return cnpgen.PPFCNotification(out, &s.target, &s.from, &n) })
}

// trace is the trace of a packet that has passed hops.
func trace(hops ...Hop) packet.IOAMTrace {
	c := HPCCConfig{Hops: 3}
	frame := make([]byte, l3+packet.IPv6Len, MaxFrame)
	frame = append(frame, c.traceOption(ipv6)...)
	p := packet.Parsed{Family: 6, L3: l3, HopOpts: l3 + packet.IPv6Len, IPEnd: uint32(len(frame))}
	for i := range hops {
		PutHop(frame, &p, &hops[i])
	}
	return packet.FindIOAMTrace(frame, &p)
}
