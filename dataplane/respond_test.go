package dataplane_test

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// marks reports of each frame that left by a port whether the gateway set CE in it, and fails the test if anything else changed.
func marks(t *testing.T, s *scene, port int, came [][]byte) (marked []bool) {
	t.Helper()
	s.Drain()
	left := s.Take(port)
	if len(left) != len(came) {
		t.Fatalf("%d frames left of %d", len(left), len(came))
	}
	for i, f := range came {
		var p packet.Parsed
		packet.Parse(f, uint32(len(f)), &p)
		ce := bytes.Clone(f)
		testkit.SetECN(ce, int(p.L3), packet.CE)
		switch {
		case bytes.Equal(left[i].Octets, f):
			marked = append(marked, false)
		case bytes.Equal(left[i].Octets, ce):
			marked = append(marked, true)
		default:
			t.Fatalf("frame %d came as\n% x, left as\n% x", i, f, left[i].Octets)
		}
	}
	return marked
}

// TestMarking: with the default policy a gateway marks what is ECN-capable above K_min, at either side, and does nothing else.
func TestMarking(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for port := range 2 {
			p := notifying()
			p.Who = &congestion.Policy{}
			s := newScene(t, p, nil)
			var came [][]byte
			for i := range 8 {
				f := data(v6, 0)
				f.ECN = []uint8{packet.ECT0, packet.ECT1, packet.ECT0, packet.ECT1, packet.NotECT, packet.CE, packet.ECT0, packet.ECT0}[i]
				came = append(came, f.Frame())
			}
			came[7] = other(f4or6(v6), f4or6to(v6), packet.ProtoTCP, 1000) // also where it isn't RoCEv2
			s.arriveAt(port, came...)
			want := []bool{false, false, true, true, false, false, true, true} // 1000, 2000: not above K_min; Not-ECT; CE already
			got := marks(t, s, port^1, came)
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("IPv6 %v, from port %d: frame %d marked %v", v6, port, i, got[i])
				}
			}
			if n := s.Count(port^1, counters.ECNMarked); n != 4 {
				t.Errorf("%d frames marked, expected 4", n)
			}
			if s.suppressed(port^1) != nil && len(s.suppressed(port^1)) > 0 {
				t.Errorf("suppressed %v", s.suppressed(port^1))
			}
			if n := s.suppressed(port)["no-endpoint"]; port == wan && n != 0 || port == fabric && n != 3 {
				t.Errorf("from port %d: %d packets above K_max led to no notification as the endpoint is not listed", port, n)
			}
			if notes := s.finish(); len(notes) != 0 {
				t.Errorf("%d notifications", len(notes))
			}
		}
	}
}

func f4or6(v6 bool) string {
	if v6 {
		return sender6
	}
	return sender4
}

func f4or6to(v6 bool) string {
	if v6 {
		return receiver6
	}
	return receiver4
}

// TestFormats: which notification a sender gets, and why none.
func TestFormats(t *testing.T) {
	const fast, rocev2, icmpv6 = packet.FastCNP, packet.LongHaulCNP, packet.LongHaulCNPICMPv6
	all := func(*dataplane.Policy) {}
	for _, c := range []struct {
		name    string
		v6      bool
		accepts []packet.Notification
		flow    uint32 // 0 to 9 have a known source QP
		change  func(*dataplane.Policy)
		kind    packet.Notification
		sent    packet.Notification
		reason  string
	}{
		{"Fast CNP", true, []packet.Notification{fast, rocev2}, 0, all, packet.FastCNP, fast, ""},
		{"Fast CNP needs no source QP", true, []packet.Notification{icmpv6, fast}, 10, all, packet.FastCNP, fast, ""},
		{"Long-haul CNP", false, []packet.Notification{rocev2}, 0, all, packet.ExtendedCNP, rocev2, ""},
		{"Long-haul CNP, IPv6", true, []packet.Notification{rocev2, fast}, 3, all, packet.ExtendedCNP, rocev2, ""},
		{"Long-haul CNP in ICMPv6", true, []packet.Notification{icmpv6, rocev2, fast}, 0, all, packet.LongHaulCNPICMPv6, icmpv6, ""},
		{"what exists for IPv4", false, []packet.Notification{fast, icmpv6, rocev2}, 0, all, packet.ExtendedCNP, rocev2, ""},
		{"source QP unknown", true, []packet.Notification{rocev2, icmpv6}, 10, all, 0, 0, "source-qp-unknown"},
		{"source QP unknown, IPv4", false, []packet.Notification{rocev2}, 10, all, 0, 0, "source-qp-unknown"},
		{"no format of IPv4", false, []packet.Notification{fast}, 0, all, 0, 0, "wrong-family"},
		{"accepts nothing", true, nil, 0, all, 0, 0, "nothing-accepted"},
		{"not enabled", true, []packet.Notification{fast}, 0, func(p *dataplane.Policy) { p.Who.Enabled[packet.FastCNP] = false }, 0, 0, "not-enabled"},
		{"no address", true, []packet.Notification{fast}, 0, func(p *dataplane.Policy) { p.Who.HasIPv6 = false }, 0, 0, "no-gateway-address"},
		{"no address to build with", true, []packet.Notification{fast}, 0, func(p *dataplane.Policy) { p.Build.HasIPv6 = false }, 0, 0, "not-built"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := notifying(grant("fd00:18::/32", c.accepts...), grant("198.18.0.0/16", c.accepts...))
			p.Ports[wan].PerFlow = 1e9
			c.change(p)
			s := newScene(t, p, nil)
			var came [][]byte
			for range 5 { // the last one is above K_max
				came = append(came, data(c.v6, c.flow).Frame())
			}
			s.arrive(came...)
			if got := marks(t, s, wan, came); got[4] != (c.sent != fast || c.reason != "") || !got[3] {
				t.Errorf("marked %v", got)
			}
			want := map[string]uint64{}
			if c.reason != "" {
				want[c.reason] = 1
			}
			s.wantSuppressed(want)
			notes := s.finish()
			if c.reason != "" {
				if len(notes) != 0 {
					t.Fatalf("%d notifications", len(notes))
				}
				return
			}
			if len(notes) != 1 || s.Count(fabric, counters.SentFirst+counters.Counter(c.sent)) != 1 {
				t.Fatalf("%d notifications", len(notes))
			}
			checkNote(t, notes[0], c.kind, data(c.v6, c.flow), 5000, p)
		})
	}
}

// traced puts a Hop-by-Hop Options header with an IOAM pre-allocated trace of n octets of node data behind the IPv6 header of frame.
func traced(frame []byte, n int) []byte {
	const l4 = packet.EthernetLen + packet.IPv6Len
	trace := append([]byte{packet.OptionPadN, 0, packet.OptionIOAMChanges, byte(2 + 8 + n), 0, packet.IOAMPreallocatedTrace,
		0, 1, 0x10, 0, 0xc0, 0, 0, 0}, make([]byte, n)...)
	header := append([]byte{packet.ProtoUDP, 0}, trace...)
	if len(header)%8 == 4 {
		header = append(header, packet.OptionPadN, 2, 0, 0)
	}
	header[1] = byte(len(header)/8 - 1)
	out := slices.Concat(frame[:l4], header, frame[l4:])
	binary.BigEndian.PutUint16(out[18:], binary.BigEndian.Uint16(out[18:])+uint16(len(header)))
	out[20] = packet.ProtoHopByHop
	return out
}

// TestFastCNPTrace: a Fast CNP takes the data packet's IOAM trace along in option 2; where it is too long for that, option 1 goes out
// and is counted, and where nothing is built nothing is.
func TestFastCNPTrace(t *testing.T) {
	for _, c := range []struct {
		name     string
		nodes    int
		length   int // of the notification: Ethernet 14, IPv6 40, Destination Options, UDP 8, BTH 12, reserved 16, ICRC 4
		tooLong  uint64
		hasIPv6  bool
		notified uint64
	}{
		{"the longest that fits", 228, 14 + 40 + 264 + 40, 0, true, 1},
		{"a word more", 232, 14 + 40 + 24 + 40, 1, true, 1},
		{"nothing built", 232, 0, 0, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := notifying(grant("fd00:18::/32", packet.FastCNP))
			p.Ports[wan].PerFlow = 1e9
			p.Build.HasIPv6 = c.hasIPv6
			s := newScene(t, p, nil)
			for range 4 { // the last one is above K_max
				s.arrive(traced(data(true, 0).Frame(), c.nodes))
			}
			notes := s.finish()
			if uint64(len(notes)) != c.notified || c.notified == 1 && len(notes[0].Octets) != c.length {
				t.Fatalf("%d notifications: %+v", len(notes), notes)
			}
			if sent, n := s.Count(fabric, counters.SentFirst), s.Count(fabric, counters.FastCNPTraceTooLong); sent != c.notified || n != c.tooLong {
				t.Errorf("%d sent, of which %d with a trace too long, expected %d and %d", sent, n, c.notified, c.tooLong)
			}
		})
	}
}

// checkNote compares what the notification says with the data packet it answers and the queue.
func checkNote(t *testing.T, note testkit.Sent, kind packet.Notification, cause testkit.RoCE, depth uint64, policy *dataplane.Policy) {
	t.Helper()
	got, p := kindOf(note)
	if got != kind || p.Dst != address(cause.Src) || p.DSCP != 48 || p.ECN != packet.NotECT {
		t.Fatalf("%v to %v with DSCP %d, ECN %d, expected %v to %s", got, p.Dst.Netip(), p.DSCP, p.ECN, kind, cause.Src)
	}
	qp := cause.DestQP - 100 + sourceQP
	if kind == packet.FastCNP {
		qp = cause.DestQP
	}
	if kind != packet.LongHaulCNPICMPv6 && (p.DestQP != qp || p.Opcode != packet.CNP || !packet.VerifyICRC(note.Octets, &p)) {
		t.Errorf("%v for QP %d, expected %d", p.Opcode, p.DestQP, qp)
	}
	if kind == packet.FastCNP {
		return
	}
	fields := note.Octets[p.L4+packet.ICMPv6Len:]
	if kind == packet.ExtendedCNP {
		fields = note.Octets[p.Payload:]
	}
	metric := []byte{0, 0, 0, 0}
	if policy.Ports[wan].Disclose {
		metric = []byte{1, 0, 0, byte(depth / 1000)}
	}
	want := append([]byte{policy.Ports[wan].Severity(depth), 0x80, 0, 30, 0, 0, 0, byte(cause.DestQP - 100 + sourceQP)}, metric...)
	if !bytes.Equal(fields[:12], want) {
		t.Errorf("says % x, expected % x", fields[:12], want)
	}
}

// TestDisclosed: with the operator's leave a Long-haul CNP says how deep the queue is.
func TestDisclosed(t *testing.T) {
	p := notifying(grant("198.18.0.0/16", packet.LongHaulCNP))
	p.Ports[wan].Disclose = true
	s := newScene(t, p, func(s *testkit.Setup) {
		s.Change = func(c *dataplane.Config) { c.Ports[fabric].Capacity = 50_000 } // which is none of the congested queue
	})
	s.fill(7, data(false, 2))
	notes := s.finish()
	if len(notes) != 3 {
		t.Fatalf("%d notifications", len(notes))
	}
	for i, n := range notes {
		checkNote(t, n, packet.ExtendedCNP, data(false, 2), uint64(5000+1000*i), p)
	}
}

// notCauses are frames that are never answered.
func notCauses(t *testing.T) map[string][]byte {
	p := notifying()
	cause := data(true, 0)
	frame := cause.Frame()
	var parsed packet.Parsed
	packet.Parse(frame, uint32(len(frame)), &parsed)
	build := func(n int, out []byte) []byte {
		if n == 0 {
			t.Fatal("not built")
		}
		out = out[:n] // from and to the same hosts as the others; no gateway looks at checksums
		address(sender6).Put16(out[22:38])
		address(receiver6).Put16(out[38:54])
		return out
	}
	out := func() []byte { return make([]byte, cnpgen.MaxLen) }
	fast, extended, icmp := out(), out(), out()
	l := cnpgen.LongHaul{Action: cnpgen.RateReduce, SourceQP: 100}
	target, ok := cnpgen.TargetOf(frame, &parsed)
	if !ok {
		t.Fatal("the data packet is not answered")
	}
	n, _ := cnpgen.FastCNP(fast, &target, &p.Build, packet.IOAMTrace{})
	fast = build(n, fast)
	extended = build(cnpgen.LongHaulCNP(extended, &target, &p.Build, &l, nil), extended)
	icmp = build(cnpgen.LongHaulCNPICMPv6(icmp, &target, &p.Build, &l, nil), icmp)
	ack := cause
	ack.Opcode = packet.RCAcknowledge
	request := cause
	request.Opcode = packet.RCReadRequest
	cnp := cause
	cnp.Opcode, cnp.Flags = packet.CNP, packet.BECN
	proxy := other(sender6, receiver6, packet.ProtoUDP, 300)
	proxy[56], proxy[57] = 1022>>8, 1022&0xff
	return map[string][]byte{
		"standard-cnp": cnp.Frame(), "fast-cnp": fast, "extended-cnp": extended, "long-haul-cnp-icmpv6": icmp, "proxy-notification": proxy,
		"ACK": ack.Frame(), "READ request": request.Frame(),
	}
}

// TestNeverAnswered: notifications of any kind, CNPs and packets without data tell nobody, and no reason is counted, whatever the
// depth they meet (DESIGN W13); they pass, and notifications are counted as received.
func TestNeverAnswered(t *testing.T) {
	for name, frame := range notCauses(t) {
		t.Run(name, func(t *testing.T) {
			p := notifying(byAnything...)
			p.Ports[wan].Thresholds = congestion.Thresholds{}
			s := newScene(t, p, nil)
			s.arrive(frame, frame, frame)
			if depth := s.Plane.Port(wan).Depth[0]; depth != uint64(3*len(frame)) {
				t.Fatalf("depth %d", depth)
			}
			s.wantSuppressed(nil)
			received := map[string]uint64{}
			for n := counters.ReceivedFirst; n < counters.SuppressedFirst; n++ {
				if v := s.Count(fabric, n); v > 0 {
					received[counters.Catalogue[n].Value] = v
				}
			}
			want := map[string]uint64{name: 3}
			if name == "ACK" || name == "READ request" {
				want = nil
			}
			if !maps.Equal(received, want) {
				t.Errorf("received notifications %v, expected %v", received, want)
			}
			if notes := s.finish(); len(notes) != 0 {
				t.Errorf("answered with %d notifications", len(notes))
			}
		})
	}
}

// TestFabricNeverNotifies: a queue towards the fabric marks, and nobody is notified, however deep it is.
func TestFabricNeverNotifies(t *testing.T) {
	p := notifying(grant("::/0", packet.FastCNP), grant("0.0.0.0/0", packet.LongHaulCNP))
	p.Ports[fabric].Thresholds = congestion.Thresholds{KMin: 1, KMax: 2}
	s := newScene(t, p, nil)
	f := data(true, 0).Frame()
	s.arriveAt(wan, f, f, f)
	if n := s.Count(fabric, counters.ECNMarked); n != 3 {
		t.Errorf("%d marked, expected 3", n)
	}
	s.wantSuppressed(nil)
	if notes := s.finish(); len(notes) != 0 {
		t.Errorf("%d notifications", len(notes))
	}
}

// TestAheadOfData: a notification leaves by the port that the flow came in by, in front of all data that waits there, with the VLAN
// tags of the data packet.
func TestAheadOfData(t *testing.T) {
	s := newScene(t, notifying(byAnything...), nil)
	s.arriveAt(wan, other(receiver4, sender4, packet.ProtoTCP, 1000), other(receiver4, sender4, packet.ProtoTCP, 1000))
	cause := data(true, 0)
	cause.Tags = []uint32{0x88a8_7011, 0x8100_2022}
	s.fill(5, cause)
	s.Drain()
	left := s.Take(fabric)
	if len(left) != 3 || !left[0].Built || left[1].Built || left[2].Built {
		t.Fatalf("left: %+v", left)
	}
	if n := s.Count(fabric, counters.SentFirst+counters.Counter(packet.FastCNP)); n != 1 {
		t.Errorf("%d Fast CNPs counted", n)
	}
	if got, want := left[0].Octets[:22], []byte{2, 0, 0, 0, 0, 5, 2, 0, 0, 0, 0, 0xd, 0x88, 0xa8, 0x70, 0x11, 0x81, 0, 0x20, 0x22, 0x86, 0xdd}; !bytes.Equal(got, want) {
		t.Errorf("Ethernet header % x, expected % x", got, want)
	}
	if s.Count(fabric, counters.TxPackets) != 1+2 { // and the one that took the line
		t.Errorf("a notification counts as forwarded")
	}
	s.Close(t)
}

// TestThresholdsByClass: each class of a port is congested, or not, by itself.
func TestThresholdsByClass(t *testing.T) {
	s := newScene(t, notifying(byAnything...), func(s *testkit.Setup) { s.Change = threeClasses })
	for class := range uint8(3) {
		for range 4 {
			f := data(true, uint32(class))
			f.DSCP = class
			s.arrive(f.Frame())
		}
	}
	port := s.Plane.Port(wan)
	if [3]uint64(port.Depth[:3]) != [3]uint64{4000, 4000, 4000} || port.Count[counters.ECNMarked] != 6 {
		t.Errorf("depth %v, %d marked, expected 4000 and 2 in each class", port.Depth, port.Count[counters.ECNMarked])
	}
	f := data(true, 1)
	f.DSCP = 1
	s.arrive(f.Frame())
	notes := s.finish()
	if len(notes) != 1 {
		t.Fatalf("%d notifications, expected 1", len(notes))
	}
	if _, p := kindOf(notes[0]); p.DestQP != 101 {
		t.Errorf("the notification is about flow %d", p.DestQP-100)
	}
}

// TestImpostor: an IPv6 packet with IPv4-mapped addresses is not of the IPv4 flow, and nobody is notified because of it.
func TestImpostor(t *testing.T) {
	s := newScene(t, notifying(byAnything...), nil)
	f := data(true, 0)
	f.Src, f.Dst = "::ffff:"+sender4, "::ffff:"+receiver4
	s.fill(5, f)
	s.wantSuppressed(map[string]uint64{"flow-unknown": 1})
	if notes := s.finish(); len(notes) != 0 {
		t.Fatalf("%d notifications", len(notes))
	}
}

// TestMulticast: no notification is about a packet to a group, whose addresses would be the source of the notification.
func TestMulticast(t *testing.T) {
	for _, c := range []struct {
		format   packet.Notification
		v6       bool
		ip, mac  bool // of a group
		notified bool
	}{
		{packet.StandardCNP, false, true, true, false},
		{packet.StandardCNP, true, true, true, false},
		{packet.StandardCNP, false, true, false, false},
		{packet.LongHaulCNP, false, false, true, false},
		{packet.LongHaulCNP, false, true, true, false},
		{packet.FastCNP, true, true, true, false},
		{packet.LongHaulCNPICMPv6, true, true, true, false},
		{packet.PPFC, true, true, true, false},
		{packet.StandardCNP, false, false, false, true},
		{packet.FastCNP, true, false, false, true},
	} {
		p := notifying(grant("fd00:18::/32", c.format), grant("198.18.0.0/16", c.format))
		p.Who.Enabled[c.format] = true
		s := newScene(t, p, nil)
		f := data(c.v6, 0)
		f.Opcode, f.SourceQP = packet.UDSendOnly, 77
		switch {
		case c.ip && c.v6:
			f.Dst = "ff0e::1"
		case c.ip:
			f.Dst = "224.1.2.3"
		}
		frame := f.Frame()
		if c.mac {
			copy(frame, []byte{0x01, 0x00, 0x5e, 0x01, 0x02, 0x03})
		}
		for range 6 {
			s.arrive(frame)
		}
		refused := s.suppressed(fabric)["not-unicast"] > 0
		if notes := s.finish(); len(notes) > 0 != c.notified || refused == c.notified {
			t.Errorf("%v to a group's IP address %v and MAC address %v: %d notifications, refused %v", c.format, c.ip, c.mac, len(notes), refused)
		}
	}
}

// TestOnlyNotifiableSendersAreWatched: a sender that may not be notified takes no entry, neither above K_max nor in a survey below it.
func TestOnlyNotifiableSendersAreWatched(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*dataplane.Policy)
		watched int
	}{
		{"may be notified", func(*dataplane.Policy) {}, 2},
		{"no endpoint", func(p *dataplane.Policy) { p.Who = &congestion.Policy{} }, 0},
		{"no format is enabled", func(p *dataplane.Policy) { p.Who.Enabled = [packet.SentNotifications]bool{} }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := notifying(byAnything...)
			c.change(p)
			s := newScene(t, p, nil)
			s.fill(3, data(true, 0)) // above K_min: a survey
			if got, want := s.Plane.Worker(0).Watched(), min(c.watched, 1); got != want {
				t.Errorf("%d senders watched below K_max, expected %d", got, want)
			}
			s.fill(3, data(true, 1)) // above K_max
			if got := s.Plane.Worker(0).Watched(); got != c.watched {
				t.Errorf("%d senders watched, expected %d", got, c.watched)
			}
			s.finish()
		})
	}
}
