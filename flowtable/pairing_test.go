package flowtable

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/synth"
)

// wire is a gateway between two hosts, for hand-made packets. Side 0 is alice, behind port 0.
type wire struct {
	*gateway
	t   *testing.T
	now int64
}

var alice, bob = packet.Addr{Lo: 0xffff0a000001}, packet.Addr{Lo: 0xffff0a000002}

func newWire(t *testing.T) *wire { return &wire{newGateway(t, 1024), t, synthEpoch} }

func (w *wire) key(side int, qp uint32) Key {
	k := Key{Src: alice, Dst: bob, DestQP: qp, Port: uint16(side)}
	if side == 1 {
		k.Src, k.Dst = bob, alice
	}
	return k
}

// send has a side send a packet to a QP of the other side.
func (w *wire) send(side int, qp uint32, op packet.Opcode, psn uint32, port uint16) {
	w.now += 1000
	table := w.tables[side]
	k := [1]Key{w.key(side, qp)}
	var x [1]Index
	table.Lookup(k[:], w.now, x[:])
	p := packet.Parsed{Kind: packet.RoCEv2, Opcode: op, DestQP: qp, PSN: psn, SrcPort: port, Ext: 12}
	b := make([]byte, 64)
	b[8] = 0x80 // AckReq
	observe(table, x[0], &p, b, w.now)
}

// cm has a side send a communication management message.
func (w *wire) cm(side int, m packet.CM) {
	w.now += 1000
	k := w.key(side, packet.GSIQP)
	if m.Attribute == packet.CMREQ {
		m.LocalGID, m.RemoteGID = k.Src, k.Dst
	}
	w.tables[side].ObserveCM(&k, &m, w.now)
}

func (w *wire) view(side int, qp uint32) View {
	k := w.key(side, qp)
	v, _ := w.tables[side].Find(&k)
	return v
}

// find is the flow from a side to a QP, None if there is none.
func (w *wire) find(side int, qp uint32) Index {
	k := w.key(side, qp)
	return w.tables[side].find(&k, w.tables[side].hash(&k))
}

// is fails the test unless the flow from a side to a QP is confirmed with a source QP by some evidence; 0 is for unconfirmed.
func (w *wire) is(side int, qp, source uint32, why Evidence) {
	w.t.Helper()
	v := w.view(side, qp)
	if source == 0 && (v.State != Confirmed || v.Ended != Open) {
		return
	}
	if v.State != Confirmed || v.Ended != Open || v.SourceQP != source || v.Evidence != why {
		w.t.Errorf("the flow from side %d to QP %d is %v from %d by %v (ended %q), want it from %d by %v",
			side, qp, v.State, v.SourceQP, v.Evidence, v.Ended, source, why)
	}
}

// talk has alice send requests to bob's QP, and bob acknowledge them to alice's.
func (w *wire) talk(alices, bobs, psn uint32, packets int, port uint16) {
	for i := range uint32(packets) {
		w.send(0, bobs, packet.RCSendOnly, (psn+i)&psnMask, port)
		w.send(1, alices, packet.RCAcknowledge, (psn+i)&psnMask, port)
	}
}

func TestSymmetricPort(t *testing.T) {
	for _, c := range []struct {
		a, b uint32
		port uint16
	}{{100, 200, 52769}, {17, 18, 49458}, {280, 210, 58803}, {0xabcdef, 0x123456, 50120}} {
		if got := symmetricPort(c.a, c.b); got != c.port || symmetricPort(c.b, c.a) != got {
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
	w.send(0, 200, packet.UCSendOnly, 5, 52769)
	w.send(1, 100, packet.UCSendOnly, 7000, 52769)
	w.is(0, 200, 100, EvidencePort)
	w.is(1, 100, 200, EvidencePort)
}

// TestContradictionDemotes: an acknowledgement of what was never sent ends the pair at once, and the same evidence doesn't bring it back.
func TestContradictionDemotes(t *testing.T) {
	w := newWire(t)
	w.talk(100, 200, 5, 10, 52769)
	w.is(0, 200, 100, EvidencePort)
	w.send(1, 100, packet.RCAcknowledge, 500, 52769)
	w.is(0, 200, 0, 0)
	w.is(1, 100, 0, 0)
	w.talk(100, 200, 15, 2000, 52769)
	w.is(0, 200, 0, 0)
	if n := w.tables[1].contradictions; n != 1 {
		t.Errorf("%d contradictions counted", n)
	}
}

const commA, commB = 0xa1a1, 0xb2b2

func (w *wire) connect(alices, bobs uint32) {
	w.cm(0, packet.CM{Attribute: packet.CMREQ, LocalComm: commA, QPN: alices})
	w.cm(1, packet.CM{Attribute: packet.CMREP, LocalComm: commB, RemoteComm: commA, QPN: bobs})
}

func TestCMConfirms(t *testing.T) {
	for name, set := range map[string]func(w *wire){
		"in order":       func(w *wire) { w.connect(100, 200) },
		"REP before REQ": func(w *wire) { w.swapped(100, 200) },
		"sent again":     func(w *wire) { w.connect(100, 200); w.connect(100, 200) },
		"flows before":   func(w *wire) { w.talk(100, 200, 0, 1, 7); w.swapped(100, 200); w.talk(100, 200, 1, 1, 7) },
		"bob asks":       func(w *wire) { w.fromBob(100, 200) },
		"another's REJ": func(w *wire) {
			w.connect(100, 200)
			w.cm(1, packet.CM{Attribute: packet.CMREJ, LocalComm: 1, RemoteComm: commA})
		},
		"another's DREQ": func(w *wire) {
			w.connect(100, 200)
			w.cm(1, packet.CM{Attribute: packet.CMDREQ, LocalComm: commB, RemoteComm: 1, QPN: 100})
		},
		"DREQ, another QP": func(w *wire) {
			w.connect(100, 200)
			w.cm(1, packet.CM{Attribute: packet.CMDREQ, LocalComm: commB, RemoteComm: commA, QPN: 101})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			set(w)
			w.talk(100, 200, 2, 1, 7)
			w.is(0, 200, 100, EvidenceCM)
			w.is(1, 100, 200, EvidenceCM)
		})
	}
}

func (w *wire) swapped(alices, bobs uint32) {
	w.cm(1, packet.CM{Attribute: packet.CMREP, LocalComm: commB, RemoteComm: commA, QPN: bobs})
	w.cm(0, packet.CM{Attribute: packet.CMREQ, LocalComm: commA, QPN: alices})
}

func (w *wire) fromBob(alices, bobs uint32) {
	w.cm(1, packet.CM{Attribute: packet.CMREQ, LocalComm: commB, QPN: bobs})
	w.cm(0, packet.CM{Attribute: packet.CMREP, LocalComm: commA, RemoteComm: commB, QPN: alices})
}

func TestCMSaysNothing(t *testing.T) {
	for name, set := range map[string]func(w *wire){
		"REQ alone": func(w *wire) { w.cm(0, packet.CM{Attribute: packet.CMREQ, LocalComm: commA, QPN: 100}) },
		"REP from alice's": func(w *wire) {
			w.cm(0, packet.CM{Attribute: packet.CMREQ, LocalComm: commA, QPN: 100})
			w.cm(0, packet.CM{Attribute: packet.CMREP, LocalComm: commB, RemoteComm: commA, QPN: 200})
		},
		"rejected": func(w *wire) {
			w.connect(100, 200)
			w.cm(1, packet.CM{Attribute: packet.CMREJ, LocalComm: commB, RemoteComm: commA})
		},
		"a QP of management":  func(w *wire) { w.connect(1, 200) },
		"a QP that can't be":  func(w *wire) { w.connect(0xffffff, 200) },
		"too long ago":        func(w *wire) { w.connect(100, 200); w.now += 61e9 },
		"released before use": func(w *wire) { w.connect(100, 200); w.release(1) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			set(w)
			w.talk(100, 200, 2, 1, 7)
			w.is(0, 200, 0, 0)
			w.is(1, 100, 0, 0)
		})
	}
	t.Run("another address in the path", func(t *testing.T) {
		w := newWire(t)
		k := w.key(0, packet.GSIQP)
		w.tables[0].ObserveCM(&k, &packet.CM{Attribute: packet.CMREQ, LocalComm: commA, QPN: 100, LocalGID: bob, RemoteGID: alice}, w.now)
		w.cm(1, packet.CM{Attribute: packet.CMREP, LocalComm: commB, RemoteComm: commA, QPN: 200})
		w.talk(100, 200, 2, 1, 7)
		w.is(0, 200, 0, 0)
	})
}

func (w *wire) release(side int) {
	m := packet.CM{Attribute: packet.CMDREQ, LocalComm: commA, RemoteComm: commB, QPN: 200}
	if side == 1 {
		m = packet.CM{Attribute: packet.CMDREQ, LocalComm: commB, RemoteComm: commA, QPN: 100}
	}
	w.cm(side, m)
}

// TestReleaseClosesTheRecord: after a DREQ the flow keeps what it knew, is named no more, and packets of the next second are its own;
// later ones begin another.
func TestReleaseClosesTheRecord(t *testing.T) {
	for side := range 2 {
		w := newWire(t)
		var ended []View
		for _, table := range w.tables {
			table.ended = func(_ *Key, _ *Flow, v View) { ended = append(ended, v) }
		}
		w.connect(100, 200)
		w.talk(100, 200, 0, 3, 7)
		w.release(side)
		k := w.key(0, 200)
		x := one(w.tables[0], k, w.now)
		if qp, ok := w.tables[0].SourceQP(x); ok {
			t.Errorf("QP %d is still to be named", qp)
		}
		w.now += dreqLinger - 10_000
		w.talk(100, 200, 3, 1, 7)
		if v := w.view(0, 200); v.Ended != EndedDREQ || v.SourceQP != 100 || len(ended) != 0 {
			t.Errorf("within a second: %+v, ended %v", v, ended)
		}
		w.now += 20_000
		w.talk(100, 200, 4, 1, 7)
		w.is(0, 200, 0, 0)
		if len(ended) != 2 || ended[0].Ended != EndedDREQ || ended[0].SourceQP != 100 || ended[0].Evidence != EvidenceCM {
			t.Errorf("ended: %+v", ended)
		}
	}
}

// TestRequestReusesAQP: a REQ that names a QP in use closes the record of its old flows at once, whatever closed them before.
func TestRequestReusesAQP(t *testing.T) {
	for _, released := range []bool{false, true} {
		w := newWire(t)
		w.connect(100, 200)
		w.talk(100, 200, 0, 3, 7)
		if released {
			w.release(0)
		}
		w.cm(0, packet.CM{Attribute: packet.CMREQ, LocalComm: 0xccc, QPN: 100})
		if v := w.view(1, 100); v.Ended != EndedReuse || v.SourceQP != 200 {
			t.Errorf("released %v: the flow to the QP is %+v", released, v)
		}
		w.cm(1, packet.CM{Attribute: packet.CMREP, LocalComm: 0xddd, RemoteComm: 0xccc, QPN: 300})
		w.talk(100, 300, 0, 1, 7)
		w.is(0, 300, 100, EvidenceCM)
		w.is(1, 100, 300, EvidenceCM)
		w.is(0, 200, 0, 0)
	}
}

// TestNewBeginnings: what only another connection can send ends the record, at the first such packet.
func TestNewBeginnings(t *testing.T) {
	for name, next := range map[string]func(w *wire){
		"another port":        func(w *wire) { w.send(0, 200, packet.RCSendOnly, 400, 50000) },
		"a far PSN":           func(w *wire) { w.send(0, 200, packet.RCSendOnly, 0x800000, 52769) },
		"an acknowledged PSN": func(w *wire) { w.send(0, 200, packet.RCSendOnly, 100, 52769) },
		"an old ACK":          func(w *wire) { w.send(1, 100, packet.RCAcknowledge, 100, 52769) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			w.talk(100, 200, 0, 400, 52769)
			w.is(0, 200, 100, EvidencePort)
			next(w)
			w.is(0, 200, 0, 0)
			w.is(1, 100, 0, 0)
		})
	}
}

// TestGoingBackIsNoBeginning: what retransmission and reordering do leaves a pair alone.
func TestGoingBackIsNoBeginning(t *testing.T) {
	w := newWire(t)
	w.talk(100, 200, 0xfffff0, 400, 52769) // wraps
	for _, psn := range []uint32{399, 384, 380, 385, 386, 420, 400, 450} {
		w.send(0, 200, packet.RCSendOnly, psn, 52769)
	}
	for _, psn := range []uint32{383, 380, 400, 450, 440} {
		w.send(1, 100, packet.RCAcknowledge, psn, 52769)
	}
	w.is(0, 200, 100, EvidencePort)
	w.is(1, 100, 200, EvidencePort)
}

func TestCNPMakesACandidate(t *testing.T) {
	w := newWire(t)
	w.send(0, 200, packet.RCWriteOnly, 5, 50000)
	k := w.key(1, 100)
	w.tables[1].ObserveCNP(&k)
	if v := w.view(0, 200); v.State != Candidate || v.SourceQP != 100 || v.Evidence != EvidenceCNP {
		t.Errorf("after a CNP: %+v", v)
	}
	w.send(0, 201, packet.RCWriteOnly, 5, 50000)
	k = w.key(1, 101)
	w.tables[1].ObserveCNP(&k)
	if v := w.view(0, 201); v.State != Unknown {
		t.Errorf("with two flows a CNP says nothing: %+v", v)
	}
}

func TestCNPContradicts(t *testing.T) {
	w := newWire(t)
	w.talk(100, 200, 0, 20, 52769)
	k := w.key(1, 100)
	w.tables[1].ObserveCNP(&k)
	w.is(0, 200, 100, EvidencePort)
	k = w.key(1, 101)
	w.tables[1].ObserveCNP(&k)
	w.is(0, 200, 0, 0)
}

func TestHints(t *testing.T) {
	m, err := NewQPMap([]QPPair{{Source: alice, Destination: bob, SourceQP: 100, DestinationQP: 200}})
	if err != nil {
		t.Fatal(err)
	}
	w := newWire(t)
	w.talk(100, 200, 0, 3, 7)
	w.is(0, 200, 0, 0)
	w.pairing.SetHints(m)
	for _, table := range w.tables {
		table.Sweep(w.now)
	}
	w.is(0, 200, 100, EvidenceHint)
	w.is(1, 100, 200, EvidenceHint)
	w.pairing.SetHints(nil)
	for _, table := range w.tables {
		table.Sweep(w.now)
	}
	w.is(0, 200, 0, 0)
}

// TestFloodOfHosts: made-up pairs of hosts find no place when there are too many; those there are stay paired, and places that become
// empty are used again.
func TestFloodOfHosts(t *testing.T) {
	w := newWire(t)
	w.talk(100, 200, 0, 20, 52769)
	flood := func(base uint32) {
		for n := range uint32(20_000) {
			w.now++
			k := [1]Key{{Src: packet.Addr{Lo: 0xffff00000000 | uint64(base+n)}, Dst: bob, DestQP: 77, Port: 0}}
			var x [1]Index
			w.tables[0].Lookup(k[:], w.now, x[:])
			p := packet.Parsed{Kind: packet.RoCEv2, Opcode: packet.RCSendOnly, DestQP: 77, PSN: n & psnMask, SrcPort: 50000}
			w.tables[0].Observe(x[0], &p, nil, w.now)
			if n%100 == 0 {
				w.send(0, 200, packet.RCSendOnly, 20+n/100, 52769)
			}
		}
	}
	flood(0x0b000000)
	if w.tables[0].noPlace == 0 {
		t.Error("none was without a place: no flood")
	}
	w.is(0, 200, 100, EvidencePort)
	w.now += 100e9
	w.talk(17, 18, 0, 20, 49458)
	w.is(0, 18, 17, EvidencePort)
}

// TestFullSide: flows beyond the places of a side are never paired, and counted.
func TestFullSide(t *testing.T) {
	w := newWire(t)
	for n := range uint32(placesASide) {
		w.send(0, 1000+n, packet.RCSendOnly, n, 50000)
	}
	w.talk(100, 200, 0, 20, 52769)
	w.is(0, 200, 0, 0)
	if w.tables[0].noPlace == 0 {
		t.Error("not counted")
	}
}

// TestPairingRefuses says what is wrong.
func TestPairingRefuses(t *testing.T) {
	for _, c := range []PairingConfig{{Flows: 0}, {Flows: 10, Peers: []int{0}}, {Flows: 10, Peers: []int{1, 2}}} {
		if _, err := NewPairing(make([]byte, PairingSize(100)), c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
	if _, err := NewPairing(make([]byte, PairingSize(10)-1), PairingConfig{Flows: 10}); err == nil {
		t.Error("too little memory was taken")
	}
}

// TestLearningAllocatesNothing, whatever is learned.
func TestLearningAllocatesNothing(t *testing.T) {
	g := newGateway(t, 4096)
	traffic := synth.New(synth.Config{Seed: 5, CM: true, Generations: 1, Requesters: synth.FromBoth, CE: .1, Connections: 64,
		Attack: synth.Attack{Interval: 10_000, ACK: true, CM: true}})
	var events []synth.Event
	for e, ok := traffic.Next(); ok; e, ok = traffic.Next() {
		events = append(events, e)
	}
	n := testing.AllocsPerRun(1, func() {
		for i := range events {
			g.take(&events[i])
		}
	})
	if n != 0 {
		t.Errorf("%v allocations in %d packets", n, len(events))
	}
}
