package dataplane_test

import (
	"bytes"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/telemetry"
)

// FuzzProxyNode: whatever frame arrives, a proxy doesn't panic, accounts for it, sends at most one answer to it and no notification without a data packet
// of the flow, and forwards it unchanged unless it is for one of the gateway's addresses.
func FuzzProxyNode(f *testing.F) {
	flow := data(false, 0).Frame()
	for _, seed := range [][]byte{
		flow, arp(1, neighbor4, own4), arp(1, "0.0.0.0", own4, 0x81000005), arp(2, own4, own4),
		icmpv6(solicitedMAC, neighbor6, solicitedNode, 255, solicitation(own6, sourceLink...)), icmpv6(solicitedMAC, "::", solicitedNode, 255, solicitation(own6)),
		icmpv6(packet.AllNodesMAC, own6, "ff02::1", 255, advertisement(own6)), ping4(neighbor4, own4, 57), ping6(neighbor6, own6, 57),
		asking(f, flow, own4, 5), asking(f, data(true, 0).Frame(), own6, 7), asking(f, data(true, 0).Frame(), own4, 7), asking(f, flow, own4, 5)[:70],
		other(neighbor4, own4, packet.ProtoTCP, 100), stampPacket(address(neighbor4), address(own4), 5000, packet.STAMPPort, packet.STAMPLen), macControl(),
	} {
		f.Add(seed, uint16(0), true)
		f.Add(seed, uint16(9), false)
	}
	policy, static := proxyFor(packet.StandardCNP), knownQPs(f)
	f.Fuzz(func(t *testing.T, frame []byte, missing uint16, fromWAN bool) {
		if len(frame) > 2048 {
			return
		}
		port := fabric
		if fromWAN {
			port = wan
		}
		r := testkit.New(t, testkit.Setup{Policy: policy, Static: static, Rate: 10e9, Flows: 16, Frames: 64, Buffers: 160, Change: onPages(t)})
		r.Inject(t, fabric, flow)
		r.Drain()
		r.Take(wan)
		before := r.Plane.Values()
		whole := uint32(len(frame)) + uint32(missing)
		r.InjectCut(t, 0, port, frame, whole)
		r.Drain()
		back, through := r.Take(port), r.Take(port^1)
		after := r.Plane.Values()
		grew := func(m *telemetry.Metric) uint64 { return after.Sum(m) - before.Sum(m) }
		if grew(telemetry.ForwardedPackets)+grew(telemetry.DroppedPackets)+grew(telemetry.ConsumedPackets) != 1 {
			t.Fatalf("% x isn't accounted for", frame)
		}
		if len(back)+len(through) > 1 || grew(telemetry.NotificationsSent) > 0 || len(back) == 1 && (!back[0].Built || grew(telemetry.AnswersSent) != 1) {
			t.Fatalf("% x: %d frames back, %d forwarded", frame, len(back), len(through))
		}
		if len(through) == 1 && (!bytes.Equal(through[0].Octets, frame) || through[0].Length != whole) {
			t.Fatalf("% x was forwarded as % x", frame, through[0].Octets)
		}
		if len(through) == 0 && !forProxy(frame, whole) {
			t.Fatalf("% x was not forwarded", frame)
		}
		accepted := grew(telemetry.ProxyAccepted)
		r.Inject(t, fabric, flow)
		r.Drain()
		after = r.Plane.Values()
		if n := grew(telemetry.NotificationsSent); n != accepted {
			t.Fatalf("% x: %d notifications because of %d accepted", frame, n, accepted)
		}
	})
}

// forProxy reports whether a frame may be for the gateway: for one of its addresses, about one of them by ARP or Neighbor Discovery, or MAC control of the link.
func forProxy(frame []byte, length uint32) bool {
	var p packet.Parsed
	packet.Parse(frame, length, &p)
	own := func(a packet.Addr) bool { return a == address(own4) || a == address(own6) }
	if p.Kind == packet.MACControl {
		return [6]byte(frame) == packet.MACControlAddr
	}
	if p.EtherType == packet.EtherTypeARP {
		return bytes.Contains(frame, []byte{192, 0, 2, 1})
	}
	return own(p.Dst) || p.Proto == packet.ProtoICMPv6 && p.Dst == packet.SolicitedNode(address(own6))
}

// TestStepAllocatesNothingAsProxy: a proxy that answers and translates allocates nothing.
func TestStepAllocatesNothingAsProxy(t *testing.T) {
	r := testkit.New(t, testkit.Setup{Policy: proxyFor(packet.StandardCNP), Static: knownQPs(t), Rate: 10e9, Forget: true})
	f := data(false, 0).Frame()
	frames := [][]byte{
		arp(1, neighbor4, own4), icmpv6(solicitedMAC, neighbor6, solicitedNode, 255, solicitation(own6, sourceLink...)), ping4(neighbor4, own4, 56),
		ping6(neighbor6, own6, 56), asking(t, f, own4, 5), asking(t, data(true, 0).Frame(), own6, 5), other(neighbor4, own4, packet.ProtoTCP, 100),
	}
	round := func() {
		r.Inject(t, wan, frames...)
		r.Inject(t, fabric, f)
		r.Advance(10 * ms)
		r.Plane.Worker(0).Step()
	}
	if n := testing.AllocsPerRun(500, round); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
	for c, n := range map[string]uint64{
		"answers": r.Count(wan, counters.AnswersSentFirst), "echo replies": r.Count(wan, counters.AnswersEchoSent), "advertisements": r.Count(wan, counters.AnswersNDSent),
		"CNPs": r.Count(fabric, formatCounter(counters.SentFirst, packet.StandardCNP)), "refused": refused(r, wan)["flow-unknown"],
	} {
		if n == 0 {
			t.Errorf("no %s: not what was to be tested", c)
		}
	}
	r.Drain()
	r.Close(t)
}
