package dataplane_test

import (
	"bytes"
	"fmt"
	"maps"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// carrier puts a frame into a tunnel with an identifier. Its outermost IP header, at l3, has the ECN field of the tunnel or, over MPLS, of
// the packet inside.
type carrier struct {
	kind packet.TunnelKind
	l3   int
	put  func(frame []byte, id uint32) []byte
}

// inner is a data packet of a flow from the fabric that fits into a tunnel: in every one of these tests, two frames stay below K_min, four
// below K_max and five exceed it.
func inner(v6 bool) testkit.RoCE {
	f := data(v6, 0)
	f.Size = 810
	return f
}

func inVXLAN(frame []byte, id uint32) []byte { return testkit.VXLAN(frame, id, packet.ECT0, false) }

// carriers are what these tests put frames into.
var carriers = map[string]carrier{
	"VXLAN":      {packet.VXLAN, packet.EthernetLen, inVXLAN},
	"MPLS":       {packet.MPLS, packet.EthernetLen + 4, testkit.MPLS},
	"pseudowire": {packet.MPLS, packet.EthernetLen + 4 + packet.EthernetLen, testkit.Pseudowire},
}

// keyIn is the key of a flow from the fabric in a tunnel.
func keyIn(f testkit.RoCE, kind packet.TunnelKind, id uint32) flowtable.Key {
	k := flowtable.Key{Src: address(f.Src), Dst: address(f.Dst), DestQP: f.DestQP}
	if kind != packet.NoTunnel {
		k.SetTunnel(packet.Tunnel{Kind: kind, ID: id}, 0)
	}
	return k
}

// TestTunnelCongests: the flow in a tunnel that fills a queue is found, and marked in its outermost IP header. Its sender gets no plain
// notification, whatever it accepts and though its QP is known, and the packet inside stays as it was.
func TestTunnelCongests(t *testing.T) {
	for name, c := range carriers {
		for _, v6 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, IPv6 %v", name, v6), func(t *testing.T) {
				p := notifying(byAnything...)
				s := newScene(t, p, nil)
				var came [][]byte
				for range 6 {
					came = append(came, c.put(inner(v6).Frame(), 77))
				}
				s.arrive(came...)
				s.Drain()
				for i, left := range s.Take(wan) {
					want := bytes.Clone(came[i])
					if i >= 2 { // above K_min
						testkit.SetECN(want, c.l3, packet.CE)
					}
					if !bytes.Equal(left.Octets, want) {
						t.Errorf("frame %d came as\n% x, left as\n% x", i, came[i], left.Octets)
					}
				}
				flows := map[flowtable.Key]counted{keyIn(inner(v6), c.kind, 77): {Packets: 6, Bytes: uint64(6 * len(came[0])), Marked: 4}}
				if got := flowsOf(s.Rig); !maps.Equal(got, flows) {
					t.Errorf("learned\n%+v, expected\n%+v", got, flows)
				}
				s.wantSuppressed(map[string]uint64{"encapsulated": 2})
				if notes := s.finish(); len(notes) != 0 {
					t.Errorf("%d notifications", len(notes))
				}
			})
		}
	}
}

// TestTunnelProxy: a sender in a tunnel is notified through its proxy. The five-tuple and the invoking packet are those of the packet inside, and the
// notification itself is in no tunnel.
func TestTunnelProxy(t *testing.T) {
	for name, c := range carriers {
		for _, v6 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, IPv6 %v", name, v6), func(t *testing.T) {
				p := proxied(t, proxy4, proxy6)
				s := newScene(t, p, nil)
				inside := inner(v6).Frame()
				var came [][]byte
				for range 6 {
					came = append(came, c.put(inside, 77))
				}
				s.arrive(came...)
				s.wantSuppressed(nil)
				notes := s.finish()
				if len(notes) != 2 {
					t.Fatalf("%d notifications, expected 2", len(notes))
				}
				var in packet.Parsed
				packet.Parse(inside, uint32(len(inside)), &in)
				for _, n := range notes {
					d := decoded(t, n)
					if x := &d.Proxy; x.Src != in.Src || x.Dst != in.Dst || x.SrcPort != in.SrcPort || x.DstPort != packet.RoCEv2Port || x.Inner.DestQP != in.DestQP {
						t.Errorf("the proxy reads %+v", x)
					}
					if !bytes.HasPrefix(inside[in.L3:], d.Proxy.Invoking) || !bytes.Equal(n.Octets[:6], came[0][6:12]) {
						t.Errorf("the notification is % x", n.Octets)
					}
				}
			})
		}
	}
}

// TestTunnelShares: flows with the same addresses and QPs, in different tunnels or in none, have shares of their own. Only the sender of the
// largest one counts, and only one outside tunnels is notified.
func TestTunnelShares(t *testing.T) {
	plain := func(frame []byte, _ uint32) []byte { return frame }
	for _, c := range []struct {
		name    string
		frames  []func([]byte, uint32) []byte // with the identifiers 1, 2, ...
		ids     []uint32
		notes   int
		reasons map[string]uint64
	}{
		{"most in no tunnel", []func([]byte, uint32) []byte{inVXLAN, plain, testkit.MPLS, plain, plain}, []uint32{1, 0, 1, 0, 0}, 1, map[string]uint64{}},
		{"most in VXLAN", []func([]byte, uint32) []byte{plain, inVXLAN, testkit.MPLS, inVXLAN, inVXLAN}, []uint32{0, 1, 1, 1, 1}, 0, map[string]uint64{"encapsulated": 1}},
		{"two networks", []func([]byte, uint32) []byte{inVXLAN, inVXLAN, plain, plain, inVXLAN}, []uint32{1, 2, 0, 0, 1 << 16}, 0, map[string]uint64{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := notifying(byAnything...)
			p.Ports[wan].Interval = millisecond
			s := newScene(t, p, nil)
			flows := map[uint32]bool{}
			for i, put := range c.frames {
				s.arrive(put(inner(true).Frame(), c.ids[i]))
				flows[c.ids[i]] = true
			}
			if n := len(flowsOf(s.Rig)); n < len(flows) {
				t.Errorf("%d flows, want at least %d", n, len(flows))
			}
			notes := s.finish()
			if len(notes) != c.notes {
				t.Errorf("%d notifications, want %d", len(notes), c.notes)
			}
			s.wantSuppressed(c.reasons)
		})
	}
}

// TestTunnelCEOnArrival: a packet whose tunnel header arrives with CE is one that arrives with CE: its sender would be notified, if it could
// be reached, and the mark stays. A mark on the packet inside isn't looked at.
func TestTunnelCEOnArrival(t *testing.T) {
	for _, c := range []struct {
		name         string
		outer, inner uint8
		answered     bool
	}{
		{"CE outside", packet.CE, packet.ECT0, true},
		{"CE inside", packet.ECT0, packet.CE, false},
	} {
		p := notifying(byAnything...)
		p.Ports[wan].OnArrival, p.Ports[wan].ClearCE = true, true
		s := newScene(t, p, nil)
		f := inner(true)
		f.ECN = c.inner
		came := testkit.VXLAN(f.Frame(), 5, c.outer, false)
		s.arrive(came)
		want := map[string]uint64{}
		if c.answered {
			want["encapsulated"] = 1
		}
		s.wantSuppressed(want)
		s.Drain()
		if left := s.Take(wan); len(left) != 1 || !bytes.Equal(left[0].Octets, came) {
			t.Errorf("%s: %d frames left, or a changed one", c.name, len(left))
		}
		s.finish()
	}
}

// TestTunnelAtDomain: with a domain, RoCEv2 in a tunnel that the filter reads passes; MPLS doesn't, since nothing in the packet says how the
// next router reads what follows the labels.
func TestTunnelAtDomain(t *testing.T) {
	cnp := testkit.RoCE{Src: receiver6, Dst: sender6, Opcode: packet.CNP, Flags: packet.BECN, DestQP: 5, Size: 82}
	extended := cnp
	extended.Flags |= packet.ExtensionBit
	for _, c := range []struct {
		name   string
		frame  []byte
		passes bool
	}{
		{"data in VXLAN", inVXLAN(inner(true).Frame(), 5), true},
		{"standard CNP in VXLAN", inVXLAN(cnp.Frame(), 5), true},
		{"notification in VXLAN", inVXLAN(extended.Frame(), 5), false},
		{"data in MPLS", testkit.MPLS(inner(true).Frame(), 5), false},
		{"data in a pseudowire", testkit.Pseudowire(inner(false).Frame(), 5), false},
	} {
		for port, reason := range map[int]counters.Counter{fabric: counters.DroppedDomainUnclassifiedOut, wan: counters.DroppedDomainUnclassifiedIn} {
			r := newDomainRig(t, stage.NewDomain(everything, everything, false))
			if r.crosses(t, port, c.frame) != c.passes || (r.Count(port, reason) == 0) != c.passes {
				t.Errorf("%s from port %d: passes %v", c.name, port, !c.passes)
			}
			for n := range packet.ReceivedNotifications {
				if r.Count(port, counters.ReceivedFirst+counters.Counter(n)) != 0 {
					t.Errorf("%s from port %d: counted as a received notification", c.name, port)
				}
			}
			r.Close(t)
		}
	}
}

// TestTunnelElsewhere: a plain notification from another gateway to the address of a sender in a tunnel is about another host.
func TestTunnelElsewhere(t *testing.T) {
	for _, in := range []packet.TunnelKind{packet.NoTunnel, packet.VXLAN} {
		p := notifying(byAnything...)
		p.Ports[wan].PerFlow, p.Domain = 1e9, vouched
		p.Who.Enabled[packet.ProxyNotification], p.Proxies = true, behind(t, "fd00:18::/32", proxy6) // so that a sender in a tunnel may be notified
		p.PerPort = perSecond(1)
		s := newScene(t, p, nil)
		s.fill(5, data(true, 1)) // takes the only notification: the flow's sender is never notified from here
		f := inner(true).Frame()
		if in == packet.VXLAN {
			f = inVXLAN(f, 9)
		}
		for range 8 {
			s.arrive(f)
		}
		if limited := s.suppressed(fabric); limited["port-limit"] == 0 || limited["flow-limit"] != 0 {
			t.Fatalf("tunnel %v: suppressed %v: not what was to be tested", in, limited)
		}
		s.arriveAt(wan, elsewhere(p, inner(true).Frame(), packet.FastCNP, 0))
		s.arrive(f)
		limited := s.suppressed(fabric)["flow-limit"] > 0
		if limited != (in == packet.NoTunnel) {
			t.Errorf("tunnel %v: suppressed %v", in, s.suppressed(fabric))
		}
		s.finish()
	}
}

// TestTunnelIsNotPaced: a CNP in a tunnel doesn't slow down the host that has its source's address outside, nor do packets in tunnels wait for
// that host's pace.
func TestTunnelIsNotPaced(t *testing.T) {
	s := pacedScene(t, 1e6, nil)
	s.arrive(inVXLAN(cnpFrom(0), 5))
	if n := s.Count(fabric, counters.PaceReductions); n != 0 {
		t.Errorf("%d reductions by a CNP in a tunnel", n)
	}
	s.arrive(cnpFrom(0))
	if n := s.Count(fabric, counters.PaceReductions); n != 1 {
		t.Fatalf("%d reductions by a CNP", n)
	}
	for psn := range uint32(5) {
		s.arriveAt(wan, testkit.VXLAN(toHost(1, psn).Frame(), 5, packet.ECT0, true))
	}
	if n := s.Plane.Port(fabric).PacedFrames; n != 0 {
		t.Errorf("%d frames in tunnels are held", n)
	}
	for psn := range uint32(5) {
		s.arriveAt(wan, toHost(1, psn).Frame())
	}
	if n := s.Plane.Port(fabric).PacedFrames; n == 0 {
		t.Error("no frame is held")
	}
	s.Drain()
	s.Close(t)
}

// TestConsumedShowsNoLink: the gateway doesn't send its own packets with the Ethernet header of a packet to itself.
func TestConsumedShowsNoLink(t *testing.T) {
	r := testkit.New(t, testkit.Setup{Policy: proxying(probing(east4, west4, millisecond))})
	for _, c := range []struct {
		frame []byte
		sent  bool
	}{{testkit.RoCE{Src: neighbor4, Dst: own4, Opcode: packet.CNP, DestQP: 7}.Frame(), false}, {inner(false).Frame(), true}} {
		r.Inject(t, fabric, c.frame)
		for range 3 {
			r.Settle()
			r.Advance(2 * millisecond)
		}
		if tests, _, _ := kindsSent(r); (tests > 0) != c.sent {
			t.Errorf("%d STAMP packets sent, want any: %v", tests, c.sent)
		}
	}
	if n := r.Count(fabric, counters.DroppedToGateway); n != 1 {
		t.Errorf("%d packets to the gateway, expected 1", n)
	}
	r.Drain()
	r.Close(t)
}

// TestTunnelShowsNoLink: the gateway sends its own packets with the Ethernet header of a packet outside tunnels only.
func TestTunnelShowsNoLink(t *testing.T) {
	r := testkit.New(t, testkit.Setup{Policy: probing(east4, west4, millisecond)})
	for _, c := range []struct {
		frame []byte
		sent  bool
	}{{inVXLAN(inner(false).Frame(), 5), false}, {testkit.MPLS(inner(false).Frame(), 5), false}, {inner(false).Frame(), true}} {
		r.Inject(t, fabric, c.frame)
		for range 3 {
			r.Settle()
			r.Advance(2 * millisecond)
		}
		if tests, _, _ := kindsSent(r); (tests > 0) != c.sent {
			t.Errorf("%d STAMP packets sent, want any: %v", tests, c.sent)
		}
	}
	r.Drain()
	for _, f := range r.Take(wan) {
		if _, p := kindOf(f); f.Built && (p.DstPort != packet.STAMPPort || p.Dst != west4) {
			t.Errorf("sent % x", f.Octets)
		}
	}
	r.Close(t)
}
