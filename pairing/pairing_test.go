package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/synth"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// wire is a gateway between two hosts, for hand-made packets. Side 0 is alice, behind port 0.
type wire struct {
	*gateway
	t   *testing.T
	now int64
	in  [2]packet.Tunnel // that each side's packets are in
}

var alice, bob = packet.Addr{Lo: 0xffff0a000001}, packet.Addr{Lo: 0xffff0a000002}

func newWire(t *testing.T) *wire { return &wire{gateway: newGateway(t, 1024), t: t, now: synthEpoch} }

func (w *wire) key(side int, qp uint32) flowtable.Key {
	k := flowtable.Key{Src: alice, Dst: bob, DestQP: qp, Port: uint16(side)}
	if side == 1 {
		k.Src, k.Dst = bob, alice
	}
	if w.in[side].Kind != packet.NoTunnel {
		k.SetTunnel(w.in[side], 0)
	}
	return k
}

// send sends a packet from a side to a QP of the other side.
func (w *wire) send(side int, qp uint32, op packet.Opcode, psn uint32, port uint16) {
	b := make([]byte, 64)
	b[8] = 0x80 // AckReq
	w.frame(side, &packet.Parsed{Kind: packet.RoCEv2, Opcode: op, DestQP: qp, PSN: psn & packet.PSNMask, SrcPort: port}, b)
}

func (w *wire) frame(side int, p *packet.Parsed, b []byte) {
	w.now += 1000
	worker := w.workers[side]
	k := [1]flowtable.Key{w.key(side, p.DestQP)}
	k[0].SourceQP = p.SourceQP
	var x [1]flowtable.Ref
	worker.StartBurst()
	if p.Opcode != packet.CNP {
		worker.lookup(k[:], w.now, x[:])
	}
	if p.Opcode == packet.CNP {
		worker.Observe(flowtable.None, &k[0], p, b, w.now)
		return
	}
	worker.observe(x[0].Index, &k[0], p, b, w.now)
}

// cnp sends a CNP from a side to a QP of the other side.
func (w *wire) cnp(side int, qp uint32) {
	w.frame(side, &packet.Parsed{Kind: packet.RoCEv2, Opcode: packet.CNP, DestQP: qp}, make([]byte, 64))
}

// sweep makes both workers apply new maps.
func (w *wire) setStatic(m *QPMap) {
	for _, worker := range w.workers {
		worker.SetStatic(m)
	}
}

func (w *wire) sweep() {
	for _, worker := range w.workers {
		worker.Sweep(w.now)
	}
}

// cm sends a communication management message from a side.
func (w *wire) cm(side int, m packet.CM) {
	w.now += 1000
	k := w.key(side, packet.GSIQP)
	if m.Attribute == packet.CMREQ {
		m.LocalGID, m.RemoteGID = k.Src, k.Dst
	}
	w.workers[side].StartBurst()
	w.workers[side].observeCM(&k, &m, w.now)
}

func (w *wire) view(side int, qp uint32) Answer {
	k := w.key(side, qp)
	a, _ := w.workers[side].find(&k)
	return a
}

// find is the flow from a side to a QP, None if there is none.
func (w *wire) find(side int, qp uint32) flowtable.Index {
	k := w.key(side, qp)
	x, _, _ := w.workers[side].Find(&k)
	return x
}

// is fails the test unless the flow from a side to a QP is confirmed with a source QP by some evidence; 0 is for unconfirmed.
func (w *wire) is(side int, qp, source uint32, why Evidence) {
	w.t.Helper()
	v := w.view(side, qp)
	if source == 0 && !v.Usable() {
		return
	}
	if !v.Usable() || v.SourceQP() != source || v.Evidence() != why {
		w.t.Errorf("the flow from side %d to QP %d is %v, want it from %d by %v", side, qp, v, source, why)
	}
}

// talk sends requests from alice to bob's QP, and bob's acknowledgements to alice's.
func (w *wire) talk(alices, bobs, psn uint32, packets int, port uint16) {
	for i := range uint32(packets) {
		w.send(0, bobs, packet.RCSendOnly, (psn+i)&packet.PSNMask, port)
		w.send(1, alices, packet.RCAcknowledge, (psn+i)&packet.PSNMask, port)
	}
}

func TestSymmetricPort(t *testing.T) {
	for _, c := range []struct {
		a, b uint32
		port uint16
	}{{100, 200, 52769}, {17, 18, 49458}, {280, 210, 58803}, {0xabcdef, 0x123456, 50120}} {
		if got := packet.SourcePort(c.a, c.b); got != c.port || packet.SourcePort(c.b, c.a) != got {
			t.Errorf("QPs %d and %d: port %d, want %d", c.a, c.b, got, c.port)
		}
	}
}

func TestPortConfirmsBothWays(t *testing.T) {
	w := newWire(t)
	w.send(0, 200, packet.RCSendOnly, 5, 52769)
	w.is(0, 200, 0, 0)
	w.send(1, 100, packet.RCAcknowledge, 5, 52769)
	w.is(0, 200, 100, EvidencePort)
	w.is(1, 100, 200, EvidencePort)
}

// TestPairsInTunnels: the two directions of a connection are paired if they are in tunnels of one kind, of VXLAN with one identifier: each direction
// may have its own labels and GRE key. One connection does not prove that two other scopes belong together.
func TestPairsInTunnels(t *testing.T) {
	in := func(kind packet.TunnelKind, id uint32) packet.Tunnel { return packet.Tunnel{Kind: kind, ID: id} }
	for _, c := range []struct {
		there, back packet.Tunnel
		pairs       bool
	}{
		{in(packet.VXLAN, 0x123456), in(packet.VXLAN, 0x123456), true},
		{in(packet.GRE, 0xffffffff), in(packet.GRE, 0xffffffff), true},
		{in(packet.IPInIP, 0), in(packet.IPInIP, 0), true},
		{in(packet.SRv6, 0), in(packet.SRv6, 0), true},
		{in(packet.MPLS, 17), in(packet.MPLS, 17), true},
		{in(packet.MPLS, 17), in(packet.MPLS, 18), true},
		{in(packet.GRE, 1), in(packet.GRE, 1<<16), true},
		{in(packet.VXLAN, 1), in(packet.VXLAN, 1<<16), false},
		{in(packet.VXLAN, 1), in(packet.GRE, 1), false},
		{in(packet.VXLAN, 0), packet.Tunnel{}, false},
	} {
		w := newWire(t)
		w.in = [2]packet.Tunnel{c.there, c.back}
		w.talk(100, 200, 5, 20, 52769)
		want := [2]uint32{}
		if c.pairs {
			want = [2]uint32{100, 200}
		}
		w.is(0, 200, want[0], EvidencePort)
		w.is(1, 100, want[1], EvidencePort)
		if !c.pairs && (w.view(0, 200).Usable() || w.view(1, 100).Usable()) {
			t.Errorf("%+v and %+v: paired", c.there, c.back)
		}
	}
}

func TestPortNeedsAnAgreeingAcknowledgement(t *testing.T) {
	w := newWire(t)
	for i := range uint32(100) {
		w.send(0, 200, packet.RCSendOnly, 1000+i, 52769)
		w.send(1, 100, packet.RCAcknowledge, 900000+i, 52769)
	}
	w.is(0, 200, 0, 0)
	w.is(1, 100, 0, 0)
}

func TestPortOfUC(t *testing.T) {
	w := newWire(t)
	w.send(0, 200, packet.UC|packet.RCSendOnly, 5, 52769)
	w.send(1, 100, packet.UC|packet.RCSendOnly, 7000, 52769)
	w.is(0, 200, 100, EvidencePort)
	w.is(1, 100, 200, EvidencePort)
}

// TestContradiction: two responses in a row to PSNs that were never sent end the pair. A contradicted pair is confirmed again with more
// evidence than before.
func TestContradiction(t *testing.T) {
	w := newWire(t)
	w.talk(100, 200, 5, 10, 52769)
	w.is(0, 200, 100, EvidencePort)
	w.send(1, 100, packet.RCAcknowledge, 5000, 52769)
	w.is(0, 200, 100, EvidencePort) // which continues as before
	w.is(1, 100, 0, 0)              // but the responder is suspended
	w.send(1, 100, packet.RCAcknowledge, 5001, 52769)
	w.is(0, 200, 0, 0)
	w.is(1, 100, 0, 0)
	if n := w.workers[1].counts.Contradictions; n != 1 {
		t.Errorf("%d contradictions counted", n)
	}
	w.talk(100, 200, 15, 1, 52769)
	w.is(0, 200, 0, 0)
	w.talk(100, 200, 16, 1, 52769)
	w.is(0, 200, 100, EvidencePort)
	w.is(1, 100, 200, EvidencePort)
}

// TestOneForgedResponse: after a single response to a PSN that was never sent, notifications don't name the QP until the next packet.
func TestOneForgedResponse(t *testing.T) {
	w := newWire(t)
	w.talk(100, 200, 5, 10, 52769)
	for i := range uint32(20) {
		w.send(1, 100, packet.RCAcknowledge, 0x700000+i*0x5000, 52769)
		w.is(1, 100, 0, 0)
		w.talk(100, 200, 15+i, 1, 52769)
		w.is(0, 200, 100, EvidencePort)
		w.is(1, 100, 200, EvidencePort)
	}
}

// TestNewBeginnings: after the first packet that only another connection can send, no notification names the QP. After the second one the
// record ends.
func TestNewBeginnings(t *testing.T) {
	for name, next := range map[string]struct {
		psn  uint32
		port uint16
	}{
		"another port":            {400, 50000},
		"another port, old PSNs":  {100, 50000},
		"a far PSN":               {0x800000, 52769},
		"a PSN beyond the gap":    {400 + maxGap + 20, 52769},
		"a PSN before the first":  {0x3000 - 1000, 52769},
		"a far PSN, another port": {0x800000, 50000},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			first := uint32(0)
			if name == "a PSN before the first" {
				first = 0x3000
			}
			w.talk(100, 200, first, 400, 52769)
			w.is(0, 200, 100, EvidencePort)
			w.send(0, 200, packet.RCSendOnly, next.psn, next.port)
			w.is(0, 200, 0, 0)
			w.send(0, 200, packet.RCSendOnly, next.psn+1, next.port)
			w.is(0, 200, 0, 0)
			w.is(1, 100, 0, 0)
			if n := w.workers[0].counts.Reuses; n != 1 {
				t.Errorf("%d records ended", n)
			}
		})
	}
}

// TestRetransmissionIsNoBeginning: a sender may go back to any PSN that it has sent, any number of times.
func TestRetransmissionIsNoBeginning(t *testing.T) {
	w := newWire(t)
	w.talk(100, 200, 0xffff00, 3000, 52769) // wraps
	for _, back := range []uint32{1, 47, 48, 49, 100, 1000, 2900} {
		for i := range back {
			w.send(0, 200, packet.RCSendOnly, 0xffff00+3000-back+i, 52769)
			w.is(0, 200, 100, EvidencePort)
		}
		w.send(1, 100, packet.RCAcknowledge, 0xffff00+2999, 52769)
		w.is(1, 100, 200, EvidencePort)
	}
	if n := w.workers[0].counts.Reuses + w.workers[1].counts.Contradictions; n != 0 {
		t.Errorf("%d records ended or pairs contradicted", n)
	}
}

func TestCNPMakesACandidate(t *testing.T) {
	w := newWire(t)
	w.send(0, 200, packet.RCWriteOnly, 5, 50000)
	w.cnp(1, 100)
	if a := w.view(0, 200); a.State() != Candidate || a.SourceQP() != 100 || a.Evidence() != EvidenceCNP {
		t.Errorf("after a CNP: %v", a)
	}
	w.send(0, 201, packet.RCWriteOnly, 5, 50000)
	w.cnp(1, 101)
	if a := w.view(0, 201); a.State() != Unknown {
		t.Errorf("with two flows a CNP is evidence: %v", a)
	}
}

// TestCNPTakesNothingBack: anyone can send a CNP, so it withdraws no pair.
func TestCNPTakesNothingBack(t *testing.T) {
	w := newWire(t)
	w.talk(100, 200, 0, 20, 52769)
	w.cnp(1, 100)
	w.is(0, 200, 100, EvidencePort)
	w.cnp(1, 101)
	w.is(0, 200, 100, EvidencePort)
}

func TestHints(t *testing.T) {
	m, err := NewQPMap([]QPPair{{Source: alice, Destination: bob, SourceQP: 100, DestinationQP: 200}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	w := newWire(t)
	w.talk(100, 200, 0, 3, 7)
	w.is(0, 200, 0, 0)
	w.pairing.SetHints(m)
	w.sweep()
	w.is(0, 200, 100, EvidenceHint)
	w.is(1, 100, 200, EvidenceHint)
	w.pairing.SetHints(nil)
	w.sweep()
	w.is(0, 200, 0, 0)
}

// TestFloodOfHosts: if there are too many forged pairs of hosts, their flows find no slot. Flows that are paired stay paired, and slots
// that become empty are used again.
func TestFloodOfHosts(t *testing.T) {
	w := newWire(t)
	w.talk(100, 200, 0, 20, 52769)
	flood := func(base uint32) {
		for n := range uint32(20_000) {
			w.now++
			k := [1]flowtable.Key{{Src: packet.Addr{Lo: 0xffff00000000 | uint64(base+n)}, Dst: bob, DestQP: 77, Port: 0}}
			var x [1]flowtable.Ref
			w.workers[0].StartBurst()
			w.workers[0].lookup(k[:], w.now, x[:])
			p := packet.Parsed{Kind: packet.RoCEv2, Opcode: packet.RCSendOnly, DestQP: 77, PSN: n & packet.PSNMask, SrcPort: 50000}
			w.workers[0].Observe(x[0].Index, &k[0], &p, nil, w.now)
			if n%100 == 0 {
				w.send(0, 200, packet.RCSendOnly, 20+n/100, 52769)
			}
		}
	}
	flood(0x0b000000)
	if w.workers[0].counts.NoSlot == 0 {
		t.Error("no flow was without a slot: no flood")
	}
	w.is(0, 200, 100, EvidencePort)
	w.now += 100e9
	w.talk(17, 18, 0, 20, 49458)
	w.is(0, 18, 17, EvidencePort)
}

// TestFullSide: if a side has no slot left, further flows are not paired, and they are counted.
func TestFullSide(t *testing.T) {
	w := newWire(t)
	for n := range uint32(store.SlotsASide) {
		w.send(0, 1000+n, packet.RCSendOnly, n, 50000)
	}
	w.talk(100, 200, 0, 20, 52769)
	w.is(0, 200, 0, 0)
	if w.workers[0].counts.NoSlot == 0 {
		t.Error("not counted")
	}
}

// TestPairingRefuses: New refuses invalid parameters.
func TestPairingRefuses(t *testing.T) {
	for _, c := range []Config{{Flows: 0}, {Flows: 10, Egress: []int{0}}, {Flows: 10, Egress: []int{1, 2}}} {
		if _, err := New(make([]byte, Size(100)), c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
	if _, err := New(make([]byte, Size(10)-1), Config{Flows: 10}); err == nil {
		t.Error("too little memory was accepted")
	}
}

// TestLearningAllocatesNothing, for every kind of packet.
func TestLearningAllocatesNothing(t *testing.T) {
	g := newGateway(t, 4096)
	traffic := synth.New(synth.Config{Seed: 5, CM: true, Generations: 1, Requesters: synth.FromBoth, CE: .1, Connections: 64,
		Attack: synth.Attack{Interval: 10_000, ACK: true, CM: true}})
	var events []synth.Event
	for e, ok := traffic.Next(); ok; e, ok = traffic.Next() {
		events = append(events, e)
	}
	n := testing.AllocsPerRun(5, func() {
		for i := range events {
			g.show(&events[i])
		}
	})
	if n != 0 {
		t.Errorf("%v allocations in %d packets", n, len(events))
	}
}
