package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/flowtable"
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

func (w *wire) key(side int, qp uint32) flowtable.Key {
	k := flowtable.Key{Src: alice, Dst: bob, DestQP: qp, Port: uint16(side)}
	if side == 1 {
		k.Src, k.Dst = bob, alice
	}
	return k
}

// send has a side send a packet to a QP of the other side.
func (w *wire) send(side int, qp uint32, op packet.Opcode, psn uint32, port uint16) {
	b := make([]byte, 64)
	b[8] = 0x80 // AckReq
	w.frame(side, &packet.Parsed{Kind: packet.RoCEv2, Opcode: op, DestQP: qp, PSN: psn & psnMask, SrcPort: port, Ext: 12}, b)
}

func (w *wire) frame(side int, p *packet.Parsed, b []byte) {
	w.now += 1000
	worker := w.workers[side]
	k := [1]flowtable.Key{w.key(side, p.DestQP)}
	k[0].SourceQP = p.SourceQP
	var x [1]flowtable.Index
	worker.StartBurst()
	if p.Opcode != packet.CNP {
		worker.Lookup(k[:], w.now, x[:])
	}
	if p.Opcode == packet.CNP {
		worker.Observe(flowtable.None, &k[0], p, b, w.now)
		return
	}
	worker.observe(x[0], &k[0], p, b, w.now)
}

// cnp has a side send a CNP to a QP of the other side.
func (w *wire) cnp(side int, qp uint32) {
	w.frame(side, &packet.Parsed{Kind: packet.RoCEv2, Opcode: packet.CNP, DestQP: qp, Ext: 12}, make([]byte, 64))
}

// sweep has both workers take up new maps.
func (w *wire) sweep() {
	for _, worker := range w.workers {
		worker.Sweep(w.now)
	}
}

// cm has a side send a communication management message.
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

// TestContradiction: two responses in a row to what was never sent end the pair. A contradicted pair needs more evidence than before, and
// then comes back.
func TestContradiction(t *testing.T) {
	w := newWire(t)
	w.talk(100, 200, 5, 10, 52769)
	w.is(0, 200, 100, EvidencePort)
	w.send(1, 100, packet.RCAcknowledge, 5000, 52769)
	w.is(0, 200, 100, EvidencePort) // which goes on as before
	w.is(1, 100, 0, 0)              // but who answers is in doubt
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

// TestOneForgedResponse: a single response to what was never sent only keeps notifications from naming the QP until the next packet.
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

const (
	commA, commB = 0xa1a1, 0xb2b2
	psnA, psnB   = 0x345900, 0x678902 // where requests to alice's QP begin, and to bob's
)

func (w *wire) connect(alices, bobs uint32) {
	w.cm(0, packet.CM{Attribute: packet.CMREQ, LocalComm: commA, QPN: alices, PSN: psnA})
	w.cm(1, packet.CM{Attribute: packet.CMREP, LocalComm: commB, RemoteComm: commA, QPN: bobs, PSN: psnB})
}

func TestCMConfirms(t *testing.T) {
	for name, set := range map[string]func(w *wire){
		"in order":       func(w *wire) { w.connect(100, 200) },
		"REP before REQ": func(w *wire) { w.swapped(100, 200) },
		"sent again":     func(w *wire) { w.connect(100, 200); w.connect(100, 200) },
		"data before":    func(w *wire) { w.talk(100, 200, psnB, 1, 7); w.swapped(100, 200); w.talk(100, 200, psnB+1, 1, 7) },
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
			w.talk(100, 200, psnB, 3, 7)
			w.is(0, 200, 100, EvidenceCM)
			w.is(1, 100, 200, EvidenceCM)
		})
	}
}

func (w *wire) swapped(alices, bobs uint32) {
	w.cm(1, packet.CM{Attribute: packet.CMREP, LocalComm: commB, RemoteComm: commA, QPN: bobs, PSN: psnB})
	w.cm(0, packet.CM{Attribute: packet.CMREQ, LocalComm: commA, QPN: alices, PSN: psnA})
}

func (w *wire) fromBob(alices, bobs uint32) {
	w.cm(1, packet.CM{Attribute: packet.CMREQ, LocalComm: commB, QPN: bobs, PSN: psnB})
	w.cm(0, packet.CM{Attribute: packet.CMREP, LocalComm: commA, RemoteComm: commB, QPN: alices, PSN: psnA})
}

// TestCMSaysNothing: RDMA-CM's claims by themselves confirm nothing, and neither do claims that the data doesn't bear out.
func TestCMSaysNothing(t *testing.T) {
	talk := func(w *wire) { w.talk(100, 200, psnB, 3, 7) }
	for name, do := range map[string]func(w *wire){
		"REQ alone": func(w *wire) {
			w.cm(0, packet.CM{Attribute: packet.CMREQ, LocalComm: commA, QPN: 100, PSN: psnA})
			talk(w)
		},
		"REP from alice's": func(w *wire) {
			w.cm(0, packet.CM{Attribute: packet.CMREQ, LocalComm: commA, QPN: 100, PSN: psnA})
			w.cm(0, packet.CM{Attribute: packet.CMREP, LocalComm: commB, RemoteComm: commA, QPN: 200, PSN: psnB})
			talk(w)
		},
		"rejected": func(w *wire) {
			w.connect(100, 200)
			w.cm(1, packet.CM{Attribute: packet.CMREJ, LocalComm: commB, RemoteComm: commA})
			talk(w)
		},
		"a QP of management":      func(w *wire) { w.connect(1, 200); talk(w) },
		"a QP that can't be":      func(w *wire) { w.connect(0xffffff, 200); talk(w) },
		"too long ago":            func(w *wire) { w.connect(100, 200); w.now += 61e9; talk(w) },
		"released before use":     func(w *wire) { w.connect(100, 200); w.release(1); talk(w) },
		"requests elsewhere":      func(w *wire) { w.connect(100, 200); w.talk(100, 200, psnB+firstSlack+1, 3, 7) },
		"requests before":         func(w *wire) { w.connect(100, 200); w.talk(100, 200, psnB-1, 3, 7) },
		"no response":             func(w *wire) { w.connect(100, 200); w.send(0, 200, packet.RCSendOnly, psnB, 7) },
		"responses to another QP": func(w *wire) { w.connect(100, 200); w.talk(101, 200, psnB, 3, 7) },
		"responses to another PSN": func(w *wire) {
			w.connect(100, 200)
			w.send(0, 200, packet.RCSendOnly, psnB, 7)
			w.send(1, 100, packet.RCAcknowledge, 0x5000, 7)
		},
		"the reverse begins elsewhere": func(w *wire) {
			w.connect(100, 200)
			w.send(1, 100, packet.RCSendOnly, psnA+100, 7)
			talk(w)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			do(w)
			w.is(0, 200, 0, 0)
			w.is(1, 100, 0, 0)
		})
	}
	t.Run("another address in the path", func(t *testing.T) {
		w := newWire(t)
		k := w.key(0, packet.GSIQP)
		w.workers[0].StartBurst()
		w.workers[0].observeCM(&k, &packet.CM{Attribute: packet.CMREQ, LocalComm: commA, QPN: 100, PSN: psnA, LocalGID: bob, RemoteGID: alice}, w.now)
		w.cm(1, packet.CM{Attribute: packet.CMREP, LocalComm: commB, RemoteComm: commA, QPN: 200, PSN: psnB})
		talk(w)
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

// TestReleaseClosesTheRecord: after a DREQ the record keeps what was known, but no notification names it. Packets of the next second still belong
// to it, later ones begin a new record.
func TestReleaseClosesTheRecord(t *testing.T) {
	for side := range 2 {
		w := newWire(t)
		var ended []View
		for _, worker := range w.workers {
			worker.ended = func(_ *flowtable.Key, v View) { ended = append(ended, v) }
		}
		w.connect(100, 200)
		w.talk(100, 200, psnB, 3, 7)
		w.is(0, 200, 100, EvidenceCM)
		w.release(side)
		if a := w.view(0, 200); a.Usable() || a.Ended() != EndedDREQ {
			t.Errorf("after the DREQ the flow is %v", a)
		}
		w.now += 1e9 - 3e6
		w.talk(100, 200, psnB+3, 1, 7)
		if a := w.view(0, 200); a.Ended() != EndedDREQ || a.SourceQP() != 100 || len(ended) != 0 {
			t.Errorf("within a second: %v, ended %v", a, ended)
		}
		w.now += 5e6
		w.talk(100, 200, psnB+4, 1, 7)
		w.is(0, 200, 0, 0)
		if len(ended) != 2 || ended[0].Ended() != EndedDREQ || ended[0].SourceQP() != 100 || ended[0].Evidence() != EvidenceCM {
			t.Errorf("ended: %+v", ended)
		}
	}
}

// TestConnectedAgain: a connection of the same QPs that RDMA-CM sets up within the second after a DREQ is known at once.
func TestConnectedAgain(t *testing.T) {
	w := newWire(t)
	w.connect(100, 200)
	w.talk(100, 200, psnB, 3, 7)
	w.release(0)
	w.cm(0, packet.CM{Attribute: packet.CMREQ, LocalComm: 0xccc, QPN: 100, PSN: 0x111111})
	w.cm(1, packet.CM{Attribute: packet.CMREP, LocalComm: 0xddd, RemoteComm: 0xccc, QPN: 300, PSN: 0x222222})
	w.talk(100, 300, 0x222222, 1, 7)
	w.is(0, 300, 100, EvidenceCM)
	w.is(1, 100, 300, EvidenceCM)
	w.is(0, 200, 0, 0)
}

// TestREQDisplacesNothing: neither a REQ nor a REQ with its REP changes what is known of a connection that lives.
func TestREQDisplacesNothing(t *testing.T) {
	for name, before := range map[string]func(w *wire){
		"by RDMA-CM":  func(w *wire) { w.connect(100, 200); w.talk(100, 200, psnB, 10, 7) },
		"by its port": func(w *wire) { w.talk(100, 200, psnB, 10, 52769) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			before(w)
			why, port := w.view(0, 200).Evidence(), w.workers[0].tracks[w.find(0, 200)].port
			w.cm(0, packet.CM{Attribute: packet.CMREQ, LocalComm: 0xccc, QPN: 100, PSN: 0x555})
			w.is(0, 200, 100, why)
			w.cm(1, packet.CM{Attribute: packet.CMREP, LocalComm: 0xddd, RemoteComm: 0xccc, QPN: 333, PSN: 0x666})
			for i := range uint32(500) {
				w.talk(100, 200, psnB+10+i, 1, port)
				w.is(0, 200, 100, why)
				w.is(1, 100, 200, why)
			}
		})
	}
}

// TestNewBeginnings: after the first packet that only another connection can send, no notification names the QP any more. After the second one
// the record ends.
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

// TestRetransmissionIsNoBeginning: a sender may go back to anything it has sent, as often as it likes.
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
		t.Errorf("with two flows a CNP says nothing: %v", a)
	}
}

// TestCNPTakesNothingBack: anyone can send one.
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

// TestFloodOfHosts: if there are too many made-up pairs of hosts, their flows find no place. Flows that are paired stay paired, and places that
// become empty are used again.
func TestFloodOfHosts(t *testing.T) {
	w := newWire(t)
	w.talk(100, 200, 0, 20, 52769)
	flood := func(base uint32) {
		for n := range uint32(20_000) {
			w.now++
			k := [1]flowtable.Key{{Src: packet.Addr{Lo: 0xffff00000000 | uint64(base+n)}, Dst: bob, DestQP: 77, Port: 0}}
			var x [1]flowtable.Index
			w.workers[0].StartBurst()
			w.workers[0].Lookup(k[:], w.now, x[:])
			p := packet.Parsed{Kind: packet.RoCEv2, Opcode: packet.RCSendOnly, DestQP: 77, PSN: n & psnMask, SrcPort: 50000}
			w.workers[0].Observe(x[0], &k[0], &p, nil, w.now)
			if n%100 == 0 {
				w.send(0, 200, packet.RCSendOnly, 20+n/100, 52769)
			}
		}
	}
	flood(0x0b000000)
	if w.workers[0].counts.NoPlace == 0 {
		t.Error("none was without a place: no flood")
	}
	w.is(0, 200, 100, EvidencePort)
	w.now += 100e9
	w.talk(17, 18, 0, 20, 49458)
	w.is(0, 18, 17, EvidencePort)
}

// TestFullSide: if a side has no place left, further flows are not paired, and they are counted.
func TestFullSide(t *testing.T) {
	w := newWire(t)
	for n := range uint32(placesASide) {
		w.send(0, 1000+n, packet.RCSendOnly, n, 50000)
	}
	w.talk(100, 200, 0, 20, 52769)
	w.is(0, 200, 0, 0)
	if w.workers[0].counts.NoPlace == 0 {
		t.Error("not counted")
	}
}

// TestPairingRefuses: New refuses what it can't work with.
func TestPairingRefuses(t *testing.T) {
	for _, c := range []Config{{Flows: 0}, {Flows: 10, Peers: []int{0}}, {Flows: 10, Peers: []int{1, 2}}} {
		if _, err := New(make([]byte, Size(100)), c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
	if _, err := New(make([]byte, Size(10)-1), Config{Flows: 10}); err == nil {
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
	n := testing.AllocsPerRun(5, func() {
		for i := range events {
			g.show(&events[i])
		}
	})
	if n != 0 {
		t.Errorf("%v allocations in %d packets", n, len(events))
	}
}
