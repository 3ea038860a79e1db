package dataplane_test

import (
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/burst/inmem"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/synth"
	"github.com/cnpgate/cnpgate/pairing"
)

// measuring is a policy whose RTT_est of the WAN port comes from a source, else from 40 ms that are configured.
func measuring(source congestion.RTTSource) *dataplane.Policy {
	p := testkit.DefaultPolicy(2)
	w := &p.Ports[wan]
	w.RTTFrom = congestion.RTTPolicy{Sources: [congestion.RTTSources]congestion.RTTSource{source}, Count: 1, Window: 10e9}
	w.RTT, w.Rate = 40*ms, 80_000_000
	w.Sizing = congestion.Sizing{KBase: 1000, Alpha: 1, KMinPercent: 50, Capacity: 1 << 30}
	return p
}

// wantRTT expects an RTT_est in force of so many ns, to a part in so many.
func wantRTT(t *testing.T, d *dataplane.Dataplane, source congestion.RTTSource, rtt, part int64) {
	t.Helper()
	p := d.Policy().Ports[wan]
	if d := p.RTT - rtt; p.RTTSource != source || d < -rtt/part || d > rtt/part {
		t.Errorf("RTT_est is %d ns by %v, expected %d by %v", p.RTT, p.RTTSource, rtt, source)
	}
	if want := congestion.Adaptive(p.Sizing.KBase, p.Sizing.Alpha, p.Rate, p.RTT, p.Sizing.KMinPercent); p.Thresholds != want {
		t.Errorf("thresholds %+v, expected %+v", p.Thresholds, want)
	}
}

// TestPassive: from data packets and acknowledgements alone, the RTT_est comes within 1 % of the path's round-trip time, although packets wait in
// a queue on the way, are lost and sent again, although an attacker who knows the QPs forges acknowledgements, and whichever worker
// the acknowledgements come to.
func TestPassive(t *testing.T) {
	const oneWay, reply = 5 * ms, 500 // ns, as synth has it
	plain := synth.Config{Seed: 1, Connections: 2, Messages: 1 << 20, Period: 2 * ms, Gap: 5_000, Delay: [2]int64{5_000, oneWay}, Duration: 2000 * ms}
	change := func(f func(*synth.Config)) synth.Config { c := plain; f(&c); return c }
	for _, c := range []struct {
		name    string
		traffic synth.Config
		workers int
		resent  bool
	}{
		{"undisturbed", plain, 1, false},
		{"acknowledgements at another worker", plain, 2, false},
		{"IPv6", change(func(c *synth.Config) { c.IPv6 = true }), 1, false},
		{"a queue and loss behind the gateway", change(func(c *synth.Config) {
			c.Bottleneck = synth.Bottleneck{Rate: 1e9, Capacity: 200_000}
			c.RequestLoss.After[synth.Fabric], c.PathJitter = .01, 20_000
		}), 1, true},
		{"loss before the gateway", change(func(c *synth.Config) { c.LossBefore = [2]float64{.01, .01} }), 1, true},
		{"forged acknowledgements", change(func(c *synth.Config) {
			c.Attack = synth.Attack{Interval: 100_000, KnowsQPs: true, ACK: true}
		}), 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			traffic := synth.New(c.traffic)
			s := testkit.Setup{Workers: c.workers, Policy: measuring(congestion.RTTPassive), Rate: 100e9, Forget: true}
			if c.traffic.Attack.Interval > 0 { // under which pairing abstains
				s.Static = pairsOf(t, traffic)
			}
			r := testkit.New(t, s)
			resent, adapted := 0, r.Now
			for e, ok := traffic.Next(); ok; e, ok = traffic.Next() {
				if at := testkit.Epoch + e.Time; at > r.Now {
					r.Advance(at - r.Now)
				}
				if e.Resent {
					resent++
				}
				r.InjectAt(t, int(e.From)%c.workers, int(e.From), synth.Frame(&e))
				r.Settle()
				if r.Now-adapted > 50*ms {
					r.Plane.Adapt(r.Now)
					adapted = r.Now
				}
			}
			if samples := r.Plane.Port(wan).RTTSamples[congestion.RTTPassive]; samples < 5 || c.resent && resent < 50 {
				t.Errorf("%d samples, %d packets sent again: not what was to be tested", samples, resent)
			}
			wantRTT(t, r.Plane, congestion.RTTPassive, 2*oneWay+reply, 100)
			r.Drain()
			r.Close(t)
		})
	}
}

// pairsOf are the pairs of QPs of generated traffic.
func pairsOf(t *testing.T, traffic *synth.Traffic) *pairing.QPMap {
	t.Helper()
	var pairs []pairing.QPPair
	for _, c := range traffic.Conns() {
		pairs = append(pairs, pairing.QPPair{Source: c.Host[0], Destination: c.Host[1], SourceQP: c.QP[0], DestinationQP: c.QP[1]})
	}
	m, err := pairing.NewQPMap(pairs, 1)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// farEnd acknowledges what leaves by a WAN port, a round-trip time later.
type farEnd struct {
	*testkit.Rig
	t      *testing.T
	rtt    int64
	coming []testkit.Sent
	drops  bool
	psn    uint32
	next   func(psn uint32) []byte // the packet of the flow that comes in next
}

const packetTime = 100_000 // ns on the line of farEnd's port

func newFarEnd(t *testing.T, p *dataplane.Policy, rtt int64) *farEnd {
	t.Helper()
	f := &farEnd{t: t, rtt: rtt, next: func(psn uint32) []byte { return request(psn, 100) }}
	f.Rig = testkit.New(t, testkit.Setup{Policy: p, Rate: 80_000_000, Static: knownQPs(t), Capacity: 1 << 20, Sent: func(_ int, s inmem.Sent) {
		var seen packet.Parsed
		if packet.Parse(s.Octets, s.Length, &seen); s.Port == wan && seen.Opcode == packet.RCWriteOnly && seen.DestQP == 100 && !f.drops {
			f.coming = append(f.coming, testkit.Sent{Octets: ack(seen.PSN, sourceQP), Now: s.Now + f.rtt})
		}
	}})
	return f
}

// ack is the receiver's acknowledgement of a PSN.
func ack(psn, qp uint32) []byte {
	return testkit.RoCE{Src: receiver4, Dst: sender4, SrcPort: 0xc123, Opcode: packet.RCAcknowledge, DestQP: qp, PSN: psn}.Frame()
}

// request is a data packet that asks to be acknowledged.
func request(psn, qp uint32) []byte {
	const bth = packet.EthernetLen + packet.IPv4Len + packet.UDPLen
	f := testkit.RoCE{Src: sender4, Dst: receiver4, SrcPort: 0xc123, Opcode: packet.RCWriteOnly, DestQP: qp, PSN: psn, Size: 976}.Frame()
	f[bth+8] |= 0x80
	return f
}

// goOn lets one packet's time pass, with the next packet of the flow, and what is due from the far end.
func (f *farEnd) goOn() {
	f.t.Helper()
	for len(f.coming) > 0 && f.coming[0].Now <= f.Now {
		f.Inject(f.t, wan, f.coming[0].Octets)
		f.coming = f.coming[1:]
	}
	f.Inject(f.t, fabric, f.next(f.psn&0xffffff))
	f.psn++
	f.Settle()
	f.Plane.Adapt(f.Now)
	f.Advance(packetTime)
}

// goOnUntil goes on until there are so many samples.
func (f *farEnd) goOnUntil(samples uint64) {
	f.t.Helper()
	for range 60_000 {
		if f.samples() >= samples {
			return
		}
		f.goOn()
	}
	f.t.Fatalf("%d samples after 6 s, expected %d", f.samples(), samples)
}

func (f *farEnd) samples() uint64 { return f.Plane.Port(wan).RTTSamples[congestion.RTTPassive] }

// TestPassiveLeavesOwnQueueOut: a queue of 50 packets that never drains is no part of the round-trip time; else K_max would grow with the queue
// that it allows. PSNs wrap on the way.
func TestPassiveLeavesOwnQueueOut(t *testing.T) {
	f := newFarEnd(t, measuring(congestion.RTTPassive), 10*ms)
	f.psn = 1<<24 - 5_000
	for range 50 {
		f.Inject(t, fabric, testkit.RoCE{Src: sender4, Dst: receiver4, DestQP: 101, Size: 976}.Frame())
	}
	f.Settle()
	for range 36_000 {
		f.goOn()
	}
	if q := f.Plane.Port(wan).Depth[0]; q < 40*976 || f.samples() < 5 {
		t.Errorf("a queue of %d bytes, %d samples: not what was to be tested", q, f.samples())
	}
	wantRTT(t, f.Plane, congestion.RTTPassive, 10*ms, 100)
	f.Drain()
	f.Close(t)
}

// TestPassiveAcknowledgements: while a packet is timed, only an acknowledgement of it ends that; and a retransmission of it, or a second without
// one, ends it without a sample.
func TestPassiveAcknowledgements(t *testing.T) {
	elsewhere := ack(0, sourceQP)
	for _, c := range []struct {
		name   string
		forged func(psn uint32) []byte // psn is the last one sent
		port   int
		ends   bool
		sample bool
	}{
		{"the acknowledgement", func(psn uint32) []byte { return ack(psn, sourceQP) }, wan, true, true},
		{"of a PSN not sent yet", func(psn uint32) []byte { return ack(psn+1, sourceQP) }, wan, false, false},
		{"of an earlier PSN", func(psn uint32) []byte { return ack(psn-1000, sourceQP) }, wan, false, false},
		{"to another QP", func(psn uint32) []byte { return ack(psn, sourceQP+1) }, wan, false, false},
		{"to another host", func(psn uint32) []byte {
			return testkit.RoCE{Src: receiver4, Dst: "198.18.0.2", Opcode: packet.RCAcknowledge, DestQP: sourceQP, PSN: psn}.Frame()
		}, wan, false, false},
		{"from another host", func(psn uint32) []byte {
			return testkit.RoCE{Src: "198.19.0.2", Dst: sender4, Opcode: packet.RCAcknowledge, DestQP: sourceQP, PSN: psn}.Frame()
		}, wan, false, false},
		{"a NAK", func(psn uint32) []byte {
			nak := ack(psn, sourceQP)
			nak[len(nak)-packet.ICRCLen-packet.AETHLen] = 0x60
			return nak
		}, wan, false, false},
		{"a READ response", func(psn uint32) []byte {
			return testkit.RoCE{Src: receiver4, Dst: sender4, Opcode: packet.RCReadRespOnly, DestQP: sourceQP, PSN: psn}.Frame()
		}, wan, false, false},
		{"from the fabric", func(psn uint32) []byte { return ack(psn, sourceQP) }, fabric, false, false},
		{"a retransmission", func(psn uint32) []byte { return request(psn-30, 100) }, fabric, true, false},
		{"nothing of RoCEv2", func(uint32) []byte { return elsewhere[:30] }, wan, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFarEnd(t, measuring(congestion.RTTPassive), 10*ms)
			f.goOnUntil(2)
			f.drops, f.coming = true, nil
			for range 1200 { // until the next packet is timed
				f.goOn()
			}
			before := f.samples()
			f.Inject(t, c.port, c.forged(f.psn-1))
			f.Settle()
			if got := f.samples() - before; got == 1 != c.sample {
				t.Errorf("%d samples", got)
			}
			f.Inject(t, wan, ack(f.psn-1, sourceQP))
			f.Settle()
			if got := f.samples() - before; !c.ends && got != 1 || c.ends && !c.sample && got != 0 {
				t.Errorf("%d samples after the true acknowledgement", got)
			}
			f.Drain()
			f.Close(t)
		})
	}
}

// TestPassiveGivesUp: a packet that is never acknowledged is timed for a second, and then another one is.
func TestPassiveGivesUp(t *testing.T) {
	f := newFarEnd(t, measuring(congestion.RTTPassive), 10*ms)
	f.goOnUntil(1)
	f.drops, f.coming = true, nil
	for range 5_000 {
		f.goOn()
	}
	f.drops = false
	before := f.samples()
	for range 12_000 {
		f.goOn()
	}
	if f.samples() == before {
		t.Error("no sample any more")
	}
	wantRTT(t, f.Plane, congestion.RTTPassive, 10*ms, 100)
	f.Drain()
	f.Close(t)
}

// TestPassiveNeverTimes what would give a wrong time.
func TestPassiveNeverTimes(t *testing.T) {
	notAsking := func(psn uint32) []byte {
		return testkit.RoCE{Src: sender4, Dst: receiver4, SrcPort: 0xc123, Opcode: packet.RCWriteOnly, DestQP: 100, PSN: psn, Size: 976}.Frame()
	}
	unreliable := func(psn uint32) []byte {
		f := request(psn, 100)
		f[packet.EthernetLen+packet.IPv4Len+packet.UDPLen] = byte(packet.UC | packet.RCWriteOnly)
		return f
	}
	for _, c := range []struct {
		name string
		rtt  int64
		next func(psn uint32) []byte
	}{
		{"what doesn't ask for an acknowledgement", 10 * ms, notAsking},
		{"what isn't acknowledged", 10 * ms, unreliable},
		{"what takes longer than a second", 1200 * ms, func(psn uint32) []byte { return request(psn, 100) }},
		{"a flow whose source QP isn't known", 10 * ms, func(psn uint32) []byte { return request(psn, 999) }},
		{"the same packet again and again", 10 * ms, func(uint32) []byte { return request(7, 100) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFarEnd(t, measuring(congestion.RTTPassive), c.rtt)
			f.next = c.next
			for range 20_000 { // 2 s
				f.goOn()
				if c.rtt < 1000*ms {
					f.Inject(t, wan, ack((f.psn-2)&0xffffff, sourceQP)) // of the packet before the last
				}
			}
			if n := f.samples(); n != 0 {
				t.Errorf("%d samples", n)
			}
			f.Drain()
			f.Close(t)
		})
	}
}

// TestPassiveAfterStart: a gateway starts amid packets that are sent again too early. Their acknowledgements come 1 ms after them, those of the first
// transmission.
func TestPassiveAfterStart(t *testing.T) {
	f := newFarEnd(t, measuring(congestion.RTTPassive), 1*ms)
	for range 9_000 {
		f.goOn()
	}
	f.rtt = 10 * ms
	for range 15_000 {
		f.goOn()
	}
	wantRTT(t, f.Plane, congestion.RTTPassive, 10*ms, 100)
	f.Drain()
	f.Close(t)
}

// TestConfiguredRTT: without another source nothing is measured, and the policy stays as it is.
func TestConfiguredRTT(t *testing.T) {
	p := measuring(congestion.RTTConfigured)
	f := newFarEnd(t, p, 10*ms)
	for range 15_000 {
		f.goOn()
	}
	if got := f.Plane.Policy().Ports[wan]; f.samples() != 0 || got.RTT != 40*ms || got.Thresholds != p.Ports[wan].Thresholds {
		t.Errorf("%d samples, RTT_est %d, %+v", f.samples(), got.RTT, got.Thresholds)
	}
	f.Drain()
	f.Close(t)
}
