package dataplane_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/burst/inmem"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/pairing"
)

// farHost is a receiver behind the WAN port that acknowledges a time after a packet, ms: the path's round-trip time, or another.
type farHost struct {
	address int    // the last octet
	vlan    uint32 // 0: none
	rtt     int64  // ms
}

// measureRTT is a gateway with a configured RTT of 12 ms whose flows, one to each host, send a packet a millisecond, for 12 seconds.
func measureRTT(t *testing.T, hosts []farHost) *testkit.Rig {
	t.Helper()
	const bth = packet.EthernetLen + packet.IPv4Len + packet.UDPLen
	var pairs []pairing.QPPair
	frame := func(n int, f testkit.RoCE) []byte {
		if f.Tags = nil; hosts[n].vlan != 0 {
			f.Tags = []uint32{0x8100<<16 | hosts[n].vlan}
		}
		return f.Frame()
	}
	far := func(n int) string { return fmt.Sprintf("198.19.0.%d", hosts[n].address) }
	for n := range hosts {
		pairs = append(pairs, pairing.QPPair{Source: address(sender4), Destination: address(far(n)), SourceQP: uint32(500 + n), DestinationQP: uint32(100 + n)})
	}
	known, err := pairing.NewQPMap(pairs, 1)
	if err != nil {
		t.Fatal(err)
	}
	p := measuring(congestion.RTTPassive)
	w := &p.Ports[wan]
	w.RTT = 12 * ms
	w.Trust = w.RTTFrom.Trust(w.RTT)
	type answer struct {
		at    int64
		frame []byte
	}
	var answers []answer
	var r *testkit.Rig
	r = testkit.New(t, testkit.Setup{Policy: p, Static: known, Rate: 10e9, Forget: true, Sent: func(_ int, s inmem.Sent) {
		var seen packet.Parsed
		if packet.Parse(s.Octets, s.Length, &seen); s.Port == wan && seen.Opcode == packet.RCWriteOnly {
			n := int(seen.DestQP - 100)
			answers = append(answers, answer{r.Now + hosts[n].rtt*ms, frame(n, testkit.RoCE{
				Src: far(n), Dst: sender4, SrcPort: 0xc123, Opcode: packet.RCAcknowledge, DestQP: uint32(500 + n), PSN: seen.PSN,
			})})
		}
	}})
	for psn := range uint32(12_000) {
		answers = slices.DeleteFunc(answers, func(a answer) bool {
			if a.at <= r.Now {
				r.Inject(t, wan, a.frame)
			}
			return a.at <= r.Now
		})
		for n := range hosts {
			f := frame(n, testkit.RoCE{Src: sender4, Dst: far(n), SrcPort: 0xc123, Opcode: packet.RCWriteOnly, DestQP: uint32(100 + n), PSN: psn, Size: 200})
			ackReq := bth + 8
			if hosts[n].vlan != 0 {
				ackReq += 4
			}
			f[ackReq] |= 0x80
			r.Inject(t, fabric, f)
		}
		r.Settle()
		if psn%50 == 0 {
			r.Plane.Adapt(r.Now)
		}
		r.Advance(1 * ms)
	}
	return r
}

// TestPassiveReceiversAgree: RTT_est goes by passive samples only if several receivers agree; those that acknowledge too early or too late, also
// all of one tenant, can't move it far.
func TestPassiveReceiversAgree(t *testing.T) {
	many := func(n int, h farHost) (hosts []farHost) {
		for range n {
			hosts = append(hosts, h)
			h.address++
		}
		return hosts
	}
	const configured = 12
	for _, c := range []struct {
		name    string
		hosts   []farHost
		rtt     int64 // ms, in force at the end
		refused bool
	}{
		{"three", many(3, farHost{1, 0, 10}), 10, false},
		{"three in a VLAN", many(3, farHost{1, 10, 10}), 10, false},
		{"one", many(1, farHost{1, 0, 10}), configured, false},
		{"one with many flows", []farHost{{1, 0, 10}, {1, 0, 10}, {1, 0, 10}, {1, 0, 10}, {1, 0, 10}}, configured, false},
		{"three that don't agree", []farHost{{1, 0, 7}, {2, 0, 10}, {3, 0, 14}}, configured, false},
		{"one that acknowledges at once", many(1, farHost{1, 0, 1}), configured, true},
		{"all acknowledge at once", many(4, farHost{1, 0, 1}), configured, true},
		{"two early", append(many(2, farHost{1, 0, 7}), many(3, farHost{8, 0, 10})...), 10, false},
		{"two late", append(many(2, farHost{1, 0, 60}), many(3, farHost{8, 0, 10})...), 10, false},
		{"one at once", append(many(1, farHost{1, 0, 1}), many(3, farHost{8, 0, 10})...), 10, true},
		{"a tenant's", append(many(4, farHost{1, 10, 6}), farHost{1, 20, 10}), configured, false},
		{"the tenants'", append(many(3, farHost{1, 10, 10}), farHost{1, 20, 10}), 10, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := measureRTT(t, c.hosts)
			w := r.Plane.Policy().Ports[wan]
			if got, off := w.RTT/ms, w.RTT%ms; got != c.rtt || off > ms/100 || (w.RTTSource == congestion.RTTPassive) != (c.rtt != configured) {
				t.Errorf("RTT_est is %d ns by %v, expected %d ms", w.RTT, w.RTTSource, c.rtt)
			}
			if n := r.Count(wan, counters.RTTRefused); n > 0 != c.refused {
				t.Errorf("%d samples refused", n)
			}
			r.Drain()
			r.Close(t)
		})
	}
}

// TestPassiveOfOneVLAN: an ACK in another VLAN, with the same addresses, QP and PSN, doesn't end the measurement.
func TestPassiveOfOneVLAN(t *testing.T) {
	f := newFarEnd(t, measuring(congestion.RTTPassive), 10*ms)
	f.goOnUntil(2)
	f.drops, f.coming = true, nil
	for range 1200 { // until the next packet is timed
		f.goOn()
	}
	before := f.samples()
	for _, vlan := range []uint32{0x8100<<16 | 20, 0} {
		a := testkit.RoCE{Src: receiver4, Dst: sender4, SrcPort: 0xc123, Opcode: packet.RCAcknowledge, DestQP: sourceQP, PSN: f.psn - 1}
		if vlan != 0 {
			a.Tags = []uint32{vlan}
		}
		f.Inject(t, wan, a.Frame())
		f.Settle()
		if got := f.samples() > before; got != (vlan == 0) {
			t.Errorf("VLAN %#x: a sample: %v", vlan, got)
		}
	}
	f.Drain()
	f.Close(t)
}
