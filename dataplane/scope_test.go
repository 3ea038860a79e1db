package dataplane_test

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"testing"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/pairing"
)

// vlan puts a frame into a VLAN; VID 0: as it is.
func vlan(frame []byte, vid uint32) []byte {
	if vid == 0 {
		return frame
	}
	b := binary.BigEndian.AppendUint32(frame[:12:12], packet.EtherTypeCTag<<16|vid)
	return append(b, frame[12:]...)
}

// inVLANs gives flow 0 of the tests its source QP in some VLANs.
func inVLANs(t *testing.T, vids ...uint32) *pairing.QPMap {
	t.Helper()
	var pairs []pairing.QPPair
	for _, vid := range vids {
		tag := packet.Tag(0)
		if vid != 0 {
			tag = packet.MakeTag(packet.EtherTypeCTag, uint16(vid))
		}
		for _, ends := range [][2]string{{sender4, receiver4}, {sender6, receiver6}} {
			pairs = append(pairs, pairing.QPPair{InScope: true, Scope: packet.ScopeInVLAN(0, tag, 0),
				Source: address(ends[0]), Destination: address(ends[1]), SourceQP: sourceQP, DestinationQP: 100})
		}
	}
	m, err := pairing.NewQPMap(pairs, 1)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestPacingByScope: the CNP of a host slows down the frames to it, and not those to the host with its address in another VLAN, in none, or behind the same
// VLAN in another tag.
func TestPacingByScope(t *testing.T) {
	s := pacedScene(t, 1e6, nil)
	p := *s.Plane.Policy()
	p.QPMap = inVLANs(t, 10, 20)
	if err := s.Plane.SetPolicy(&p); err != nil {
		t.Fatal(err)
	}
	for _, vid := range []uint32{10, 20} {
		s.arriveAt(wan, vlan(connected().Frame(), vid))
	}
	s.Drain()
	s.arrive(vlan(data(false, 0).Frame(), 10), vlan(data(false, 0).Frame(), 20), vlan(cnpFrom(0), 10))
	if n := s.Count(fabric, counters.PaceReductions); n != 1 {
		t.Fatalf("%d reductions", n)
	}
	held := map[uint32]uint64{}
	for _, vid := range []uint32{20, 0, 30, 10} {
		before := s.Plane.Port(fabric).PacedFrames
		for psn := range uint32(10) {
			s.arriveAt(wan, vlan(toHost(1, psn).Frame(), vid))
		}
		held[vid] = s.Plane.Port(fabric).PacedFrames - before
	}
	if want := map[uint32]uint64{20: 0, 0: 0, 30: 0, 10: 9}; !maps.Equal(held, want) {
		t.Errorf("frames held by VLAN: %v, expected %v", held, want)
	}
	s.Drain()
	s.Close(t)
}

// TestPacingNeedsPair: packets forged in a host's name slow down nobody, as long as no data for it confirms the pair of flows; nor does a connection whose
// other direction comes by another port or in another VLAN, or whose QPs pairing doesn't know.
func TestPacingNeedsPair(t *testing.T) {
	ack := data(false, 0)
	ack.Opcode, ack.Size = packet.RCAcknowledge, 0
	invented, ud := data(false, 0), data(false, 0)
	invented.DestQP, invented.Opcode, invented.Size = 777, packet.RCAcknowledge, 0
	ud.Opcode, ud.SourceQP = packet.UDSendOnly, sourceQP
	inventedCNP := invented
	inventedCNP.Opcode = packet.CNP
	otherQP := connected()
	otherQP.DestQP++
	type arrival struct {
		port  int
		frame []byte
	}
	for _, c := range []struct {
		name   string
		before []arrival
		cnp    []byte
		want   uint64
	}{
		{"a confirmed pair", []arrival{{wan, connected().Frame()}, {fabric, ack.Frame()}}, cnpFrom(0), 1},
		{"a forged ACK to an invented QP", []arrival{{wan, connected().Frame()}, {fabric, invented.Frame()}}, inventedCNP.Frame(), 0},
		{"no data for the host", []arrival{{fabric, ack.Frame()}}, cnpFrom(0), 0},
		{"data for another QP of it", []arrival{{wan, otherQP.Frame()}, {fabric, ack.Frame()}}, cnpFrom(0), 0},
		{"data from the fabric", []arrival{{fabric, connected().Frame()}, {fabric, ack.Frame()}}, cnpFrom(0), 0},
		{"data in another VLAN", []arrival{{wan, vlan(connected().Frame(), 10)}, {fabric, ack.Frame()}}, cnpFrom(0), 0},
		{"UD", []arrival{{wan, connected().Frame()}, {fabric, ud.Frame()}}, cnpFrom(0), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := testkit.DefaultPolicy(2)
			p.Ports[fabric].Pacing = &congestion.Pacing{HostRate: 10e9, Floor: 1e9, Keep: 1, Interval: 50_000, Recovery: 10_000_000_000}
			s := &scene{testkit.New(t, testkit.Setup{Policy: p, Static: inVLANs(t, 0), Change: func(c *dataplane.Config) { c.Ports[fabric].Paced = 1e6 }}), t}
			for _, a := range c.before {
				s.arriveAt(a.port, a.frame)
			}
			s.arrive(c.cnp)
			if n := s.Count(fabric, counters.PaceReductions); n != c.want {
				t.Errorf("%d reductions, expected %d", n, c.want)
			}
			s.Drain()
			s.Close(t)
		})
	}
}

// TestProxyByScope: a notification in a VLAN, to the gateway as a proxy or to a proxy behind it, is about that VLAN's flow; one without a tag about the only
// flow of its name, and if there are several about none, which is counted.
func TestProxyByScope(t *testing.T) {
	for _, c := range []struct {
		name      string
		flows     []uint32 // the VLANs that have the flow
		note      uint32
		slowed    []uint32
		ambiguous bool
	}{
		{"the VLAN's", []uint32{10, 20}, 10, []uint32{10}, false},
		{"the other VLAN's", []uint32{10, 20}, 20, []uint32{20}, false},
		{"another VLAN", []uint32{10, 20}, 30, nil, false},
		{"untagged, of two VLANs", []uint32{10, 20}, 0, nil, true},
		{"untagged, of a VLAN and none", []uint32{0, 20}, 0, nil, true},
		{"untagged, of one VLAN", []uint32{20}, 0, []uint32{20}, false},
		{"untagged, of none", []uint32{0}, 0, []uint32{0}, false},
		{"tagged, of none", []uint32{0}, 10, nil, false},
	} {
		for _, passes := range []bool{false, true} {
			p := proxyFor(packet.StandardCNP)
			enforce := enforcing()
			p.Domain, p.QPMap = enforce.Domain, inVLANs(t, 0, 10, 20)
			p.Ports[wan].Pacing, p.Ports[wan].Enforce = enforce.Ports[wan].Pacing, enforce.Ports[wan].Enforce
			p.Proxy = host.NewProxy(netip.MustParseAddr(own4), netip.Addr{}, netip.Addr{}, prefixes("192.0.2.77/32"), 0, 0)
			s := &enforceScene{scene: &scene{testkit.New(t, testkit.Setup{Workers: 3, Rate: 10e9, Policy: p, Buffers: 8192,
				Change: func(c *dataplane.Config) { c.Ports[wan].Paced = 50e6 }}), t}}
			frame := data(false, 0)
			frame.Size = 1250
			for i, vid := range c.flows { // each at another worker, and in part at two
				s.InjectAt(t, i, fabric, vlan(frame.Frame(), vid))
				s.InjectAt(t, i+1, fabric, vlan(frame.Frame(), vid))
				s.Settle()
			}
			to := own4
			if passes {
				to = "198.18.250.250"
			}
			s.InjectAt(t, 1, wan, vlan(s.notification(0, func(out []byte, target *cnpgen.Target, frame []byte, q *packet.Parsed) int {
				return cnpgen.ProxyNotification(out, target, &far, frame, q, address(to), 5)
			}), c.note))
			s.Settle()
			s.Sent = make([][]testkit.Sent, 3)
			for n := range 100 {
				for i, vid := range c.flows {
					s.InjectAt(t, i+n%2, fabric, vlan(frame.Frame(), vid))
					s.Settle()
				}
				s.Advance(4_000)
				s.Settle()
			}
			notified, left := map[uint32]bool{}, map[uint32]int{}
			for _, sent := range s.Sent {
				for _, f := range sent {
					_, q := kindOf(f)
					vid := uint32(q.OuterTag.VID())
					if f.Built {
						notified[vid] = true
					} else if f.Port == wan {
						left[vid]++
					}
				}
			}
			want := map[uint32]bool{}
			for _, vid := range c.slowed {
				want[vid] = true
			}
			for _, vid := range c.flows {
				if slow := left[vid] < 75; slow != want[vid] {
					t.Errorf("%s, passes %v: %d of 100 packets left in VLAN %d", c.name, passes, left[vid], vid)
				}
			}
			if !passes && !maps.Equal(notified, want) {
				t.Errorf("%s: notified in %v", c.name, notified)
			}
			got := refused(s.Rig, wan)["ambiguous"]
			if passes {
				got = s.enforceCounts()["ambiguous"]
			}
			if (got == 1) != c.ambiguous {
				t.Errorf("%s, passes %v: %d ambiguous", c.name, passes, got)
			}
			s.Drain()
			s.Close(t)
		}
	}
}

// TestRefusalByScope: a host that doesn't know the Fast CNP option says nothing about the host with its address in another VLAN.
func TestRefusalByScope(t *testing.T) {
	p := notifying(grant("fd00:18::/32", packet.FastCNP, packet.LongHaulCNP))
	s := newScene(t, p, func(s *testkit.Setup) { s.Static = inVLANs(t, 10, 20) })
	frame := data(true, 0).Frame()
	for _, vid := range []uint32{10, 20} {
		for range 6 {
			s.arrive(vlan(frame, vid))
		}
	}
	var parsed packet.Parsed
	packet.Parse(frame, uint32(len(frame)), &parsed)
	target, _ := cnpgen.TargetOf(frame, &parsed)
	fast := make([]byte, 256)
	n, _ := cnpgen.FastCNP(fast, &target, &p.Build, packet.IOAMTrace{})
	s.arrive(vlan(refusalOf(fast[:n]), 10))
	before := len(s.records())
	for range 3 {
		s.Advance(ms)
		s.arrive(vlan(frame, 10), vlan(frame, 20))
	}
	got := map[uint16]packet.Notification{}
	for _, r := range s.records()[before:] {
		got[r.Key.OuterTag.VID()] = r.Format
	}
	if got[10] != packet.LongHaulCNP || got[20] != packet.FastCNP || len(got) != 2 {
		t.Errorf("formats by VLAN: %v", got)
	}
	s.Drain()
	s.Close(t)
}

// TestLimitByScope: the notifications to a sender leave those to the sender with its address in another VLAN or behind another port their limit.
func TestLimitByScope(t *testing.T) {
	p := notifying(byAnything...)
	p.Ports = append(p.Ports, p.Ports...)
	p.PerDestination = perSecond(100) // one at once
	s := newScene(t, p, func(s *testkit.Setup) { s.Static, s.Pairs = inVLANs(t, 0, 10, 20), 2 })
	frame := data(true, 0).Frame()
	for range 20 {
		s.arrive(vlan(frame, 10), vlan(frame, 20))
		s.arriveAt(fabric+2, vlan(frame, 10))
	}
	got := map[packet.Scope]int{}
	for _, r := range s.records() {
		got[r.Key.Scope()]++
	}
	vid10, vid20 := packet.ScopeInVLAN(0, packet.MakeTag(packet.EtherTypeCTag, 10), 0), packet.ScopeInVLAN(0, packet.MakeTag(packet.EtherTypeCTag, 20), 0)
	if want := map[packet.Scope]int{vid10: 1, vid20: 1, vid10.At(2): 1}; !maps.Equal(got, want) {
		t.Errorf("notifications by scope: %v, expected %v", got, want)
	}
	s.Drain()
	s.Close(t)
}

// TestProxyFromWrongSide: with a domain, a notification to the gateway as a proxy from a gateway beyond the WAN has no effect if it arrives by a fabric port,
// and none ever has that names the gateway itself as its source.
func TestProxyFromWrongSide(t *testing.T) {
	for _, c := range []struct {
		name     string
		port     int
		source   string // besides that of the congested node
		domain   bool
		refused  string
		accepted uint64
	}{
		{"by the WAN", wan, congested4, true, "", 25},
		{"by the fabric", fabric, congested4, true, "wrong-side", 0},
		{"by the fabric, from a node there", fabric, "203.0.113.200", true, "", 25},
		{"by the fabric, without a domain", fabric, "", false, "", 25},
	} {
		p := proxyFor(packet.StandardCNP)
		if c.domain {
			p.Domain = stage.NewDomain(prefixes("198.18.0.0/15"), prefixes(c.source+"/32"), false)
		}
		s := newScene(t, p, nil)
		f := data(false, 0).Frame()
		s.arrive(f)
		for range 25 {
			s.arriveAt(c.port, asking(t, f, own4, 5))
			s.Advance(ms)
			s.arrive(f)
		}
		if got := s.Count(c.port, counters.ProxyAccepted); got != c.accepted {
			t.Errorf("%s: %d accepted", c.name, got)
		}
		if got := refused(s.Rig, c.port); c.refused != "" && got[c.refused] != 25 {
			t.Errorf("%s: refused %v", c.name, got)
		}
		if n := s.Count(fabric, formatCounter(counters.ProxyTranslatedFirst, packet.StandardCNP)); n != c.accepted {
			t.Errorf("%s: %d notifications", c.name, n)
		}
		s.Drain()
		s.Close(t)
	}
}

// TestUnvouchedNotifications: notifications that name a flow, of anybody or in the gateway's own name, change nothing for the flow's own notifications, with
// or without a domain; nor do CNPs in the receiver's name.
func TestUnvouchedNotifications(t *testing.T) {
	count := func(domain *dataplane.Domain, from string, format packet.Notification) (notified int) {
		p := notifying(byAnything...)
		p.Ports[wan].PerFlow, p.Domain = ms, domain
		s := newScene(t, p, nil)
		for range 50 {
			s.arrive(data(true, 0).Frame(), data(true, 0).Frame())
			if from != "" {
				g := p
				by := *g
				by.Build.IPv6 = address(from)
				frame := data(true, 0).Frame()
				var parsed packet.Parsed
				packet.Parse(frame, uint32(len(frame)), &parsed)
				target, _ := cnpgen.TargetOf(frame, &parsed)
				out, n := make([]byte, 256), 0
				if format == packet.FastCNP {
					n, _ = cnpgen.FastCNP(out, &target, &by.Build, packet.IOAMTrace{})
				} else {
					n = cnpgen.StandardCNP(out, &target, &by.Build, sourceQP)
				}
				s.arriveAt(wan, out[:n])
			}
			s.Advance(900_000)
		}
		for _, r := range s.records() {
			if r.Outcome == counters.Emitted {
				notified++
			}
		}
		s.Drain()
		s.Close(t)
		return notified
	}
	all := stage.NewDomain(nil, prefixes("::/0"), false)
	want := count(nil, "", 0)
	for _, c := range []struct {
		name   string
		domain *dataplane.Domain
		from   string
		format packet.Notification
		counts bool
	}{
		{"without a domain", nil, "2001:db8::9", packet.FastCNP, false},
		{"of another source", vouched, "2001:db8::8", packet.FastCNP, false},
		{"in the gateway's name", all, own6, packet.FastCNP, false},
		{"CNPs in the receiver's name", nil, receiver6, packet.StandardCNP, false},
		{"of a gateway of the domain", vouched, "2001:db8::9", packet.FastCNP, true},
	} {
		if got := count(c.domain, c.from, c.format); (got != want) != c.counts {
			t.Errorf("%s: %d notifications, %d without", c.name, got, want)
		}
	}
	if want < 20 {
		t.Errorf("%d notifications: not what was to be tested", want)
	}
}
