package replay_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestForwardsEverythingUnchanged: an uncongested gateway is a wire, whoever is on which side of it.
func TestForwardsEverythingUnchanged(t *testing.T) {
	for _, s := range uncongested(t) {
		t.Run(s.name, func(t *testing.T) {
			r := replayed(t, s)
			if len(r.emitted) != 0 || total(r.report, "queue_ecn_marked_packets_total") != 0 {
				t.Errorf("%d notifications and %d marks without congestion", len(r.emitted), total(r.report, "queue_ecn_marked_packets_total"))
			}
			for _, fromFabric := range []bool{true, false} {
				want, got := s.direction(r.taken, fromFabric), s.direction(r.forwarded, fromFabric)
				if len(got) != len(want) {
					t.Fatalf("%d frames forwarded, want %d", len(got), len(want))
				}
				for i := range want {
					if !bytes.Equal(got[i].octets, want[i].octets) || got[i].length != want[i].length {
						t.Fatalf("frame %d:\ngot  %v\nwant %v\n%s", i+1, got[i], want[i], diffOctets(got[i].octets, want[i].octets))
					}
					if wait := got[i].at - want[i].at; wait < 0 || wait > 1000 {
						t.Errorf("frame %d left %d ns after it came", i+1, wait)
					}
				}
			}
		})
	}
}

// direction picks the frames that go one way. All frames of the captures are IP.
func (s *scenario) direction(all []frame, fromFabric bool) (out []frame) {
	for _, f := range all {
		p := f.parse()
		if inside(s.fabric, p.Src.Netip()) == fromFabric {
			out = append(out, f)
		}
	}
	return out
}

// TestCongested: what must hold in any congestion. The second opinion (build tag secondopinion) says what exactly must come out.
func TestCongested(t *testing.T) {
	seen := map[string]int{}
	for _, s := range congested(t) {
		t.Run(s.name, func(t *testing.T) {
			r := replayed(t, s)
			s.checkMarks(t, r, seen)
			s.checkNotifications(t, r, seen)
			s.checkRate(t, r)
			seen["dropped"] += int(total(r.report, "dropped_packets_total"))
		})
	}
	for _, what := range []string{"marked", "dropped", "fast-cnp", "long-haul-cnp", "long-haul-cnp-icmpv6"} {
		if seen[what] == 0 {
			t.Errorf("no frame was %s: the scenarios prove nothing of it", what)
		}
	}
	t.Logf("seen: %v", seen)
}

// checkMarks: frames leave in order, changed in nothing but CE, which only ECN-capable ones get, with checksum and ICRC right.
func (s *scenario) checkMarks(t *testing.T, r *result, seen map[string]int) {
	t.Helper()
	marked := 0
	for _, fromFabric := range []bool{true, false} {
		waiting := s.direction(r.taken, fromFabric)
		for i, got := range s.direction(r.forwarded, fromFabric) {
			for len(waiting) > 0 && !sameButCE(got, waiting[0]) {
				waiting = waiting[1:] // dropped, which the sum has been checked for
			}
			if len(waiting) == 0 {
				t.Fatalf("frame %d is none that was received, or out of order: %v", i+1, got)
			}
			if !bytes.Equal(got.octets, waiting[0].octets) {
				marked++
				p := got.parse()
				if p.Kind == packet.RoCEv2 && !packet.VerifyICRC(got.octets, &p) {
					t.Errorf("frame %d: the ICRC is wrong after marking: %v", i+1, got)
				}
			}
			waiting = waiting[1:]
		}
	}
	if n := total(r.report, "queue_ecn_marked_packets_total"); int(n) != marked {
		t.Errorf("%d marks counted, %d found", n, marked)
	}
	seen["marked"] += marked
}

// sameButCE reports whether got is taken, or taken with CE set and its IPv4 header checksum still right.
func sameButCE(got, taken frame) bool {
	if got.length != taken.length || bytes.Equal(got.octets, taken.octets) {
		return got.length == taken.length
	}
	p := taken.parse()
	if p.ECN != packet.ECT0 && p.ECN != packet.ECT1 {
		return false
	}
	want := bytes.Clone(taken.octets)
	h := want[p.L3:]
	if p.Family == 6 {
		h[1] |= 0x30
		return bytes.Equal(got.octets, want)
	}
	h[1] |= 3
	if ipv4Sum(got.octets[p.L3:p.L3+20]) != 0xffff {
		return false
	}
	copy(h[10:12], got.octets[p.L3+10:])
	return bytes.Equal(got.octets, want)
}

// ipv4Sum adds up a header's words in one's complement; 0xffff for a right one (RFC 791 3.1).
func ipv4Sum(h []byte) uint32 {
	sum := uint32(0)
	for i := 0; i < len(h); i += 2 {
		sum += uint32(h[i])<<8 | uint32(h[i+1])
	}
	return sum&0xffff + sum>>16
}

// checkNotifications: only granted kinds, to hosts that accept them, about QPs that exist, and counted for the right flow.
func (s *scenario) checkNotifications(t *testing.T, r *result, seen map[string]int) {
	t.Helper()
	sent := map[string]int{}
	for i, n := range r.emitted {
		p := n.parse()
		kind, host, qp := describe(n, &p)
		if kind != s.kind {
			t.Errorf("notification %d is a %q, want none but %q", i+1, kind, s.kind)
		}
		if !inside(s.fabric, p.Dst.Netip()) {
			t.Errorf("notification %d goes to %v, which sends from the WAN", i+1, p.Dst.Netip())
		}
		if !named(s.truth, host, qp) {
			t.Errorf("notification %d names QP %d at %s, want one of %v", i+1, qp, host, s.truth)
		}
		if p.Kind == packet.RoCEv2 && !packet.VerifyICRC(n.octets, &p) {
			t.Errorf("notification %d: the ICRC is wrong: %v", i+1, n)
		}
		sent[fmt.Sprint(host, " ", qp)]++
		seen[kind]++
	}
	for _, f := range r.report.Flows {
		for kind, n := range f.Notifications {
			key := fmt.Sprint(f.DestinationIP, " ", f.DestinationQP)
			if kind != "fast-cnp" {
				key = fmt.Sprint(f.SourceIP, " ", *f.SourceQP)
			}
			if sent[key] != int(n) {
				t.Errorf("%d notifications about %s were sent, the report says %d", sent[key], key, n)
			}
			delete(sent, key)
		}
	}
	if len(sent) > 0 {
		t.Errorf("notifications that the report doesn't have at any flow: %v", sent)
	}
}

// describe returns a notification's kind, and the host and QP that it names: the source's, or in a Fast CNP the receiver's.
func describe(n frame, p *packet.Parsed) (kind, host string, qp uint32) {
	switch packet.Classify(n.octets, p, &packet.DefaultCodePoints) {
	case packet.FastCNP:
		return "fast-cnp", packet.AddrFrom16(n.octets[p.DstOpts+4:]).Netip().String(), p.DestQP
	case packet.ExtendedCNP:
		return "long-haul-cnp", p.Dst.Netip().String(), p.DestQP
	case packet.LongHaulCNPICMPv6:
		b := n.octets[p.L4+8:]
		return "long-haul-cnp-icmpv6", p.Dst.Netip().String(), uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	}
	return "no notification", "", 0
}

func named(truth [][2]any, host string, qp uint32) bool {
	for _, t := range truth {
		if t[0] == host && t[1] == qp {
			return true
		}
	}
	return false
}

// checkRate: between any two departures the WAN port has had the time that the first of them and those in between take.
func (s *scenario) checkRate(t *testing.T, r *result) {
	t.Helper()
	rate := float64(r.report.Ports[1].RateBps)
	out := s.direction(r.forwarded, true)
	start, octets := 0, 0
	for i := 1; i < len(out); i++ {
		if octets == 0 {
			start = i - 1
		}
		octets += out[i-1].length + 24
		took, least := float64(out[i].at-out[start].at), float64(octets)*8e9/rate
		if took < least*0.9999-1 {
			t.Fatalf("frames %d to %d, %d octets on the line, took %.0f ns, want at least %.0f", start+1, i, octets, took, least)
		}
		if took > least*1.0001+1 {
			octets = 0 // the line was idle
		}
	}
}
