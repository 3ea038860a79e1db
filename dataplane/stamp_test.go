package dataplane_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// The gateways at the ends of a WAN link, over both IP versions.
var (
	east4, west4 = address("192.0.2.1"), address("192.0.2.2")
	east6, west6 = address("2001:db8::1"), address("2001:db8::2")
)

// probing is a policy of a gateway with its own address and its peer's, that probes the peer and answers it.
func probing(own, peer packet.Addr, interval int64) *dataplane.Policy {
	p := measuring(congestion.RTTSTAMP)
	p.Ports[wan].STAMP = host.STAMPSession{Peer: peer, Interval: interval}
	p.Reflects = []packet.Addr{peer}
	p.Build.DSCP = 48
	if own.Is4() {
		p.Build.IPv4, p.Build.HasIPv4 = own, true
	} else {
		p.Build.IPv6, p.Build.HasIPv6 = own, true
	}
	return p
}

// endToEnd is two gateways whose WAN ports are connected by a link that takes its time.
type endToEnd struct {
	t        *testing.T
	gateways [2]*testkit.Rig
	oneWay   [2]int64 // ns, by the gateway that sends
	onLink   [2][]testkit.Sent
}

func newEndToEnd(t *testing.T, policies [2]*dataplane.Policy, there, back int64, rate uint64) *endToEnd {
	t.Helper()
	e := &endToEnd{t: t, oneWay: [2]int64{there, back}}
	for i, p := range policies {
		e.gateways[i] = testkit.New(t, testkit.Setup{Policy: p, Rate: rate, Change: func(c *dataplane.Config) {
			c.Seed = uint64(i)*77 + 1
		}})
		e.gateways[i].Plane.SetWallClock(1_800_000_000_000_000_000 + int64(i)*3_600_000_000_123) // an hour apart
	}
	return e
}

const linkStep = 50_000 // ns

// goOn moves both gateways and the link on.
func (e *endToEnd) goOn(steps int) {
	e.t.Helper()
	for range steps {
		for i, g := range e.gateways {
			for len(e.onLink[1-i]) > 0 && e.onLink[1-i][0].Now <= g.Now {
				g.Inject(e.t, wan, e.onLink[1-i][0].Octets)
				e.onLink[1-i] = e.onLink[1-i][1:]
			}
			g.Settle()
			for _, s := range g.Take(wan) {
				s.Now += e.oneWay[i]
				e.onLink[i] = append(e.onLink[i], s)
			}
			g.Plane.Adapt(g.Now)
			g.Advance(linkStep)
		}
	}
}

func (e *endToEnd) close() {
	for _, g := range e.gateways {
		g.Drain()
		g.Close(e.t)
	}
}

func kindsSent(g *testkit.Rig) (tests, replies, consumed uint64) {
	return g.Count(wan, counters.STAMPSentFirst), g.Count(wan, counters.STAMPReplySent), g.Count(wan, counters.ConsumedSTAMP)
}

// TestSTAMP: two gateways find the exact round-trip time of the link between them, whatever their wall clocks say, in tagged and untagged frames,
// also where a domain is set; and the thresholds follow. Nothing of it comes out of a fabric port.
func TestSTAMP(t *testing.T) {
	for _, c := range []struct {
		name       string
		east, west packet.Addr
		data       testkit.RoCE
		domain     bool
		rate       uint64 // of the ports, bit/s
		loaded     bool   // the eastern gateway's line is full
	}{
		{"IPv4", east4, west4, data(false, 0), false, 10e9, false},
		{"IPv6", east6, west6, data(true, 0), false, 10e9, false},
		{"IPv6 beside IPv4 data", east6, west6, data(false, 0), false, 10e9, false},
		{"VLAN tags", east4, west4, testkit.RoCE{Src: sender4, Dst: receiver4, DestQP: 7, Tags: []uint32{0x88a80007, 0x81006008}, Size: 200}, false, 10e9, false},
		{"with a domain", east6, west6, data(true, 0), true, 10e9, false},
		{"with a full line", east4, west4, data(false, 0), false, 125e6, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			policies := [2]*dataplane.Policy{probing(c.east, c.west, 100*ms), probing(c.west, c.east, 100*ms)}
			for _, p := range policies {
				if c.domain {
					p.Domain = stage.NewDomain(nil, nil, false)
				}
			}
			e := newEndToEnd(t, policies, 7*ms, 5*ms, c.rate)
			e.goOn(100)
			for i, g := range e.gateways {
				if tests, _, _ := kindsSent(g); tests != 0 {
					t.Errorf("gateway %d has sent %d test packets before any data packet", i, tests)
				}
				g.Inject(t, fabric, c.data.Frame())
			}
			for range 26_000 {
				if c.loaded { // twice as much as the line takes: a frame is two steps long
					e.gateways[0].Inject(t, fabric, testkit.RoCE{Src: sender4, Dst: receiver4, DestQP: 7, Size: 1540}.Frame())
					e.gateways[1].Take(fabric)
				}
				e.goOn(1)
			}
			for i, g := range e.gateways {
				wantRTT(t, g.Plane, congestion.RTTSTAMP, 12*ms, math.MaxInt64)
				tests, replies, consumed := kindsSent(g)
				if tests < 12 || tests > 14 || replies < tests-2 || consumed < tests+replies-2 {
					t.Errorf("gateway %d: %d test packets, %d replies, %d consumed", i, tests, replies, consumed)
				}
				if out := g.Take(fabric); len(out) != 1 && !c.loaded {
					t.Errorf("gateway %d: %d frames left by the fabric port, expected the one of data", i, len(out))
				}
			}
			e.close()
		})
	}
}

// TestSTAMPKeepsHeader: while the peer answers, test packets keep the Ethernet header with which they reach it, whatever others send, at whatever worker.
// Once it doesn't, they get that of the last data packet.
func TestSTAMPKeepsHeader(t *testing.T) {
	r := testkit.New(t, testkit.Setup{Workers: 2, Policy: probing(east4, west4, 20*ms)})
	answers, vids := true, map[uint16]int{}
	run := func(steps int) {
		for step := range steps {
			for worker := range 2 {
				if r.InjectAt(t, worker, fabric, vlan(data(false, 0).Frame(), 66)); step == 0 {
					r.InjectAt(t, worker, fabric, vlan(data(false, 0).Frame(), 66))
				}
			}
			r.Settle()
			for worker := range 2 {
				for _, s := range r.Sent[worker] {
					var p packet.Parsed
					packet.Parse(s.Octets, uint32(len(s.Octets)), &p)
					if p.DstPort != packet.STAMPPort {
						continue
					}
					vids[p.OuterTag.VID()]++
					if !answers {
						continue
					}
					test := packet.DecodeSTAMPTest(s.Octets[len(s.Octets)-packet.STAMPLen:])
					b := stampPacket(west4, east4, packet.STAMPPort, p.SrcPort, packet.STAMPLen)
					reply := packet.STAMPReply{Sequence: test.Sequence, Timestamp: 2 << 32, Received: 2 << 32, Test: test}
					reply.Put(b[len(b)-packet.STAMPLen:])
					packet.PutUDPDatagram(b, packet.EthernetLen, west4, east4, 0, 60, packet.STAMPPort, p.SrcPort)
					r.Advance(ms)
					r.InjectAt(t, 1-worker, wan, b)
				}
				r.Sent[worker] = nil
			}
			r.Advance(ms)
		}
	}
	r.InjectAt(t, 0, fabric, data(false, 0).Frame())
	r.Settle()
	r.Advance(ms / 2)
	r.Settle()
	run(1)
	run(400)
	if vids[0] < 15 || vids[66] != 0 {
		t.Errorf("test packets by VLAN while the peer answers: %v", vids)
	}
	answers = false
	run(400)
	if vids[66] < 10 {
		t.Errorf("test packets by VLAN after the peer stopped to answer: %v", vids)
	}
	r.Drain()
	r.Close(t)
}

// TestSTAMPSilence: when the peer stops to answer, the configured round-trip time is in force again after the window.
func TestSTAMPSilence(t *testing.T) {
	east, west := probing(east4, west4, 20*ms), probing(west4, east4, 20*ms)
	east.Ports[wan].RTTFrom.Window = 400 * ms
	e := newEndToEnd(t, [2]*dataplane.Policy{east, west}, 5*ms, 5*ms, 10e9)
	e.gateways[0].Inject(t, fabric, data(false, 0).Frame())
	e.goOn(26_000)
	wantRTT(t, e.gateways[0].Plane, congestion.RTTSTAMP, 10*ms, 100)
	silent := *west
	silent.Reflects = nil
	if err := e.gateways[1].Plane.SetPolicy(&silent); err != nil {
		t.Fatal(err)
	}
	e.goOn(24_000)
	if p := e.gateways[0].Plane.Policy().Ports[wan]; p.RTT != 40*ms || p.RTTSource != congestion.RTTConfigured || p.Thresholds != east.Ports[wan].Thresholds {
		t.Errorf("RTT_est is %d ns by %v, thresholds %+v", p.RTT, p.RTTSource, p.Thresholds)
	}
	if out := e.gateways[1].Take(fabric); len(out) < 50 {
		t.Errorf("%d test packets passed the gateway that doesn't answer them", len(out)-1)
	}
	e.close()
}

// stampPacket is a UDP packet with a STAMP payload of so many octets.
func stampPacket(src, dst packet.Addr, srcPort, dstPort uint16, size int) []byte {
	b := make([]byte, packet.EthernetLen+packet.IPHeaderLen(src)+packet.UDPLen+size)
	copy(b, []byte{2, 0, 0, 0, 0, 0xd, 2, 0, 0, 0, 0, 0x5})
	test := packet.STAMPTest{Sequence: 9, Timestamp: 1 << 40, Error: 0x8001}
	if size >= packet.STAMPLen {
		test.Put(b[len(b)-size:])
	}
	packet.PutUDPDatagram(b, packet.EthernetLen, src, dst, 0, 77, srcPort, dstPort)
	return b
}

// TestReflector: a test packet of a configured peer to the gateway's own address is consumed and answered; anything else passes.
func TestReflector(t *testing.T) {
	other4 := address("192.0.2.9")
	wrong := func(b []byte) []byte { b[len(b)-1] ^= 1; return b }
	unchecked := func(b []byte) []byte {
		binary.BigEndian.PutUint16(b[len(b)-packet.STAMPLen-2:], 0)
		return b
	}
	fragmented := stampPacket(west4, east4, 5000, packet.STAMPPort, packet.STAMPLen)
	fragmented[20] = 0x20 // More Fragments
	mapped := stampPacket(west6, east6, 5000, packet.STAMPPort, packet.STAMPLen)
	for at, a := range map[int]packet.Addr{22: west4, 38: east4} { // source and destination address
		binary.BigEndian.PutUint64(mapped[at:], a.Hi)
		binary.BigEndian.PutUint64(mapped[at+8:], a.Lo)
	}
	binary.BigEndian.PutUint16(mapped[60:], packet.UDPChecksum(west4, east4, mapped[54:]))
	for _, c := range []struct {
		name     string
		port     int
		frame    []byte
		answered bool
	}{
		{"IPv4", wan, stampPacket(west4, east4, 5000, packet.STAMPPort, packet.STAMPLen), true},
		{"IPv6", wan, stampPacket(west6, east6, 5000, packet.STAMPPort, packet.STAMPLen), true},
		{"with extensions", wan, stampPacket(west4, east4, 5000, packet.STAMPPort, packet.STAMPLen+100), true},
		{"IPv4 without a checksum", wan, unchecked(stampPacket(west4, east4, 5000, packet.STAMPPort, packet.STAMPLen)), true},
		{"IPv6 without a checksum", wan, unchecked(stampPacket(west6, east6, 5000, packet.STAMPPort, packet.STAMPLen)), false},
		{"a wrong checksum", wan, wrong(stampPacket(west4, east4, 5000, packet.STAMPPort, packet.STAMPLen)), false},
		{"too short", wan, stampPacket(west4, east4, 5000, packet.STAMPPort, packet.STAMPLen-1), false},
		{"of an unknown peer", wan, stampPacket(other4, east4, 5000, packet.STAMPPort, packet.STAMPLen), false},
		{"to another address", wan, stampPacket(west4, other4, 5000, packet.STAMPPort, packet.STAMPLen), false},
		{"to another UDP port", wan, stampPacket(west4, east4, 5000, packet.STAMPPort+1, packet.STAMPLen), false},
		{"from a reflector", wan, stampPacket(west4, east4, packet.STAMPPort, packet.STAMPPort, packet.STAMPLen), false},
		{"a reply that nobody waits for", wan, stampPacket(west4, east4, packet.STAMPPort, 50000, packet.STAMPLen), false},
		{"from the fabric", fabric, stampPacket(west4, east4, 5000, packet.STAMPPort, packet.STAMPLen), false},
		{"a fragment", wan, fragmented, false},
		{"IPv6 with IPv4-mapped addresses", wan, mapped, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := probing(east4, west4, 0)
			p.Build.IPv6, p.Build.HasIPv6, p.Reflects = east6, true, []packet.Addr{west6, west4}
			r := testkit.New(t, testkit.Setup{Policy: p})
			r.Plane.SetWallClock(1_800_000_000_000_000_000)
			r.Inject(t, c.port, c.frame)
			r.Drain()
			passed, sent := r.Take(1-c.port), r.Take(c.port)
			if c.answered {
				passed, sent = sent, passed
			}
			if len(sent) != 0 && !c.answered || len(passed) != 1 || passed[0].Built != c.answered {
				t.Fatalf("%d frames on, %d back", len(passed), len(sent))
			}
			if c.answered {
				checkReply(t, r, c.frame, passed[0].Octets)
			} else if got := r.Count(c.port, counters.ConsumedSTAMP); got != 0 {
				t.Errorf("%d consumed", got)
			}
			r.Close(t)
		})
	}
}

// checkReply: a reply goes back as the test packet came, and says when that was.
func checkReply(t *testing.T, r *testkit.Rig, test, reply []byte) {
	t.Helper()
	var in, out packet.Parsed
	packet.Parse(test, uint32(len(test)), &in)
	packet.Parse(reply, uint32(len(reply)), &out)
	if out.Src != in.Dst || out.Dst != in.Src || out.SrcPort != in.DstPort || out.DstPort != in.SrcPort ||
		string(reply[:6]) != string(test[6:12]) || string(reply[6:12]) != string(test[:6]) || out.DSCP != 48 {
		t.Errorf("the reply is %+v", out)
	}
	if size := int(out.IPEnd) - int(out.L4) - packet.UDPLen; size != packet.STAMPLen {
		t.Fatalf("%d octets of STAMP", size)
	}
	at := packet.NTPTime(1_800_000_000_000_000_000 + r.Now)
	want := packet.STAMPReply{Sequence: 9, Timestamp: at, Received: at, Error: packet.STAMPError, TTL: 77,
		Test: packet.STAMPTest{Sequence: 9, Timestamp: 1 << 40, Error: 0x8001}}
	if got := packet.DecodeSTAMPReply(reply[len(reply)-packet.STAMPLen:]); got != want {
		t.Errorf("reply %+v, expected %+v", got, want)
	}
	if r.Count(wan, counters.STAMPReplySent) != 1 || r.Count(wan, counters.ConsumedSTAMP) != 1 {
		t.Error("not counted")
	}
}

// TestReflectorLimit: 1000 replies a second, and what is beyond is consumed and counted.
func TestReflectorLimit(t *testing.T) {
	r := testkit.New(t, testkit.Setup{Policy: probing(east4, west4, 0)})
	for range 2000 {
		r.Inject(t, wan, stampPacket(west4, east4, 5000, packet.STAMPPort, packet.STAMPLen))
		r.Settle()
		r.Advance(ms / 2)
	}
	_, replies, consumed := kindsSent(r)
	if limited := r.Count(wan, counters.STAMPReplyLimit); replies < 1000 || replies > 1011 || consumed != 2000 || limited+replies != 2000 {
		t.Errorf("%d replies, %d beyond the limit, %d consumed", replies, limited, consumed)
	}
	r.Drain()
	r.Close(t)
}

// TestForgedReplies: only a reply of the peer to an outstanding test packet, with its timestamp and to its port, counts, and only once. A time in the
// peer that can't be is no sample.
func TestForgedReplies(t *testing.T) {
	reply := func(test []byte, change func(src *packet.Addr, port *uint16, r *packet.STAMPReply)) []byte {
		var p packet.Parsed
		packet.Parse(test, uint32(len(test)), &p)
		sent := packet.DecodeSTAMPTest(test[len(test)-packet.STAMPLen:])
		r := packet.STAMPReply{Sequence: sent.Sequence, Timestamp: 2 << 32, Received: 2 << 32, Test: sent}
		src, port := west4, p.SrcPort
		change(&src, &port, &r)
		b := stampPacket(src, east4, packet.STAMPPort, port, packet.STAMPLen)
		r.Put(b[len(b)-packet.STAMPLen:])
		packet.PutUDPDatagram(b, packet.EthernetLen, src, east4, 0, 60, packet.STAMPPort, port)
		return b
	}
	for _, c := range []struct {
		name    string
		change  func(src *packet.Addr, port *uint16, r *packet.STAMPReply)
		samples uint64 // of the reply, sent twice
		rtt     int64
		passed  int
	}{
		{"the peer's", func(*packet.Addr, *uint16, *packet.STAMPReply) {}, 1, 10 * ms, 1},
		{"less the time in the peer", func(_ *packet.Addr, _ *uint16, r *packet.STAMPReply) { r.Timestamp += 1 << 32 / 250 }, 1, 6 * ms, 1},
		{"longer in the peer than away", func(_ *packet.Addr, _ *uint16, r *packet.STAMPReply) { r.Timestamp += 1 << 31 }, 0, 0, 1},
		{"sent before it came", func(_ *packet.Addr, _ *uint16, r *packet.STAMPReply) { r.Timestamp -= 1 << 10 }, 0, 0, 1},
		{"another timestamp", func(_ *packet.Addr, _ *uint16, r *packet.STAMPReply) { r.Test.Timestamp++ }, 0, 0, 2},
		{"no timestamp", func(_ *packet.Addr, _ *uint16, r *packet.STAMPReply) { r.Test.Timestamp = 0; r.Test.Sequence = 5 }, 0, 0, 2},
		{"another sequence number", func(_ *packet.Addr, _ *uint16, r *packet.STAMPReply) { r.Test.Sequence++ }, 0, 0, 2},
		{"another port", func(_ *packet.Addr, port *uint16, _ *packet.STAMPReply) { *port ^= 1 }, 0, 0, 2},
		{"another source", func(src *packet.Addr, _ *uint16, _ *packet.STAMPReply) { *src = address("192.0.2.9") }, 0, 0, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := testkit.New(t, testkit.Setup{Policy: probing(east4, west4, 100*ms), Rate: 10e9})
			r.Inject(t, fabric, data(false, 0).Frame())
			r.Settle()
			var test []byte
			for _, s := range r.Take(wan) {
				if s.Built {
					test = s.Octets
				}
			}
			if test == nil {
				r.Advance(ms)
				r.Settle()
				test = r.Take(wan)[0].Octets
			}
			r.Advance(10 * ms)
			forged := reply(test, c.change)
			r.Inject(t, wan, forged, forged)
			r.Settle()
			r.Advance(ms)
			r.Settle()
			if got := r.Plane.Port(wan).RTTSamples[congestion.RTTSTAMP]; got != c.samples {
				t.Errorf("%d samples, expected %d", got, c.samples)
			}
			r.Plane.Adapt(r.Now)
			if c.samples > 0 {
				wantRTT(t, r.Plane, congestion.RTTSTAMP, c.rtt, 1_000_000)
			}
			if passed := len(r.Take(fabric)); passed != c.passed {
				t.Errorf("%d replies passed, expected %d", passed, c.passed)
			}
			r.Drain()
			r.Close(t)
		})
	}
}

// TestSTAMPNotSent: a STAMP packet that the port's device drops, or that still waits at the end, counts as not sent, and as no notification.
func TestSTAMPNotSent(t *testing.T) {
	r := testkit.New(t, testkit.Setup{Policy: probing(east4, west4, 0), Rate: 1_000_000})
	r.Backends[0].Lose(wan, func(burst.Frame) (burst.Cause, bool) { return burst.LinkDown, true })
	for range 2 { // the second one waits for the line
		r.Inject(t, wan, stampPacket(west4, east4, 5000, packet.STAMPPort, packet.STAMPLen))
		r.Settle()
		r.Advance(100_000)
	}
	r.Close(t)
	if _, replies, consumed := kindsSent(r); replies != 0 || consumed != 2 || r.Count(wan, counters.STAMPNotSent) != 2 {
		t.Errorf("%d replies sent, %d not sent, %d consumed", replies, r.Count(wan, counters.STAMPNotSent), consumed)
	}
	for n := counters.SuppressedFirst; n < counters.Counters; n++ {
		if r.Count(wan, n) != 0 {
			t.Errorf("counted as a notification that was suppressed: %s", counters.Catalogue[n].Value)
		}
	}
}

// TestSTAMPNoPlace: test packets that find no buffer, or no space in the queue, are counted, one an interval.
func TestSTAMPNoPlace(t *testing.T) {
	for _, buffers := range []int{120, 4096} { // without buffers; with buffers for a full queue
		r := testkit.New(t, testkit.Setup{Policy: probing(east4, west4, ms), Buffers: buffers})
		r.Inject(t, fabric, data(false, 0).Frame())
		r.Settle()
		r.Backends[0].Limit(wan, 0) // the device takes nothing, and its line is free
		const intervals = 2000
		for range intervals * 2 {
			r.Advance(ms / 2)
			r.Plane.Worker(0).Step()
		}
		waiting := uint64(r.Plane.Worker(0).Queued())
		if n := r.Count(wan, counters.STAMPNoPlace); n == 0 || n+waiting < intervals-2 || n+waiting > intervals+2 {
			t.Errorf("%d buffers: %d test packets wait and %d are counted, expected %d together", buffers, waiting, n, intervals)
		}
		r.Backends[0].Limit(wan, 64)
		r.Drain()
		r.Close(t)
	}
}

// TestSTAMPNeedsAddress: without an address of the peer's family nothing is sent.
func TestSTAMPNeedsAddress(t *testing.T) {
	p := probing(east4, west6, ms)
	r := testkit.New(t, testkit.Setup{Policy: p, Rate: 10e9})
	for range 20 {
		r.Inject(t, fabric, data(false, 0).Frame())
		r.Settle()
		r.Advance(ms)
	}
	if tests, _, _ := kindsSent(r); tests != 0 {
		t.Errorf("%d test packets", tests)
	}
	r.Drain()
	r.Close(t)
}

// TestSTAMPAllocatesNothing: test packets, replies and acknowledgements that are timed cost no allocation.
func TestSTAMPAllocatesNothing(t *testing.T) {
	p := probing(east4, west4, ms)
	p.Ports[wan].RTTFrom.Sources[0] = congestion.RTTPassive
	r := testkit.New(t, testkit.Setup{Policy: p, Static: knownQPs(t), Rate: 10e9, Forget: true})
	test := stampPacket(west4, east4, 5000, packet.STAMPPort, packet.STAMPLen)
	var requests, acks [][]byte
	for psn := range uint32(6000) {
		requests, acks = append(requests, request(psn, 100)), append(acks, ack(psn, sourceQP))
	}
	n := 0
	round := func() {
		r.Inject(t, fabric, requests[n])
		r.Inject(t, wan, test, acks[max(n-3, 0)])
		r.Settle()
		r.Advance(ms)
		n++
	}
	for range 1500 {
		round()
	}
	if a := testing.AllocsPerRun(1000, round); a != 0 {
		t.Errorf("%v allocations a step", a)
	}
	tests, replies, _ := kindsSent(r)
	if samples := r.Plane.Port(wan).RTTSamples[congestion.RTTPassive]; tests < 1000 || replies < 1000 || samples < 5 {
		t.Errorf("%d test packets, %d replies, %d samples: not what was to be tested", tests, replies, samples)
	}
	r.Drain()
	r.Close(t)
}
