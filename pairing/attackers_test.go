package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// fitting is a QP, not alice's, that makes the same UDP source port with bob's by the formula.
func fitting(alices, bobs uint32) uint32 {
	for qp := alices + 1; ; qp++ {
		if packet.SourcePort(qp, bobs) == packet.SourcePort(alices, bobs) {
			return qp
		}
	}
}

// TestForgedFormula: someone who knows two QPs sends packets to a QP that fits by the formula before the true peer flow does. The pair ends when
// the true peer flow has sent some packets, and no wrong one is made after that.
func TestForgedFormula(t *testing.T) {
	for name, c := range map[string]struct {
		request, response packet.Opcode
		psn               uint32
	}{
		"PSNs from 0":                   {packet.RCSendOnly, packet.RCAcknowledge, 0},
		"on path, where PSNs are known": {packet.RCSendOnly, packet.RCAcknowledge, psnB},
		"UC":                            {packet.UC | packet.RCSendOnly, packet.UC | packet.RCSendOnly, 0},
	} {
		w := newWire(t)
		port, forged, wrong := packet.SourcePort(100, 200), fitting(100, 200), 0
		w.send(1, forged, c.response, c.psn, port)
		check := func(packet uint32) {
			if a := w.view(0, 200); a.Usable() && a.SourceQP() != 100 {
				if wrong++; packet > 200 {
					t.Fatalf("%s: at packet %d %v", name, packet, a)
				}
			}
		}
		for i := range uint32(5000) {
			w.send(0, 200, c.request, c.psn+i, port)
			check(i)
			w.send(1, 100, c.response, c.psn+i, port)
			if i%1000 == 999 { // again and again
				w.send(1, forged, c.response, c.psn, port)
			}
			check(i)
		}
		if wrong == 0 {
			t.Errorf("%s: the forged packet had no effect: not the scene that this test is about", name)
		}
	}
}

// TestForgedFormulaLater: such packets change nothing about a confirmed pair, unless it is of UC.
func TestForgedFormulaLater(t *testing.T) {
	w := newWire(t)
	port, forged := packet.SourcePort(100, 200), fitting(100, 200)
	for i := range uint32(5000) {
		w.talk(100, 200, i, 1, port)
		w.is(0, 200, 100, EvidencePort)
		w.send(1, forged, packet.RCAcknowledge, i/2, port)
	}
}

// TestOnPath: what someone gains who sees all packets and adds some: a wrong pair of a flow that isn't confirmed yet.
func TestOnPath(t *testing.T) {
	forged := fitting(100, 200)
	for name, c := range map[string]struct {
		why  Evidence
		port uint16
		do   func(w *wire)
	}{
		"responses, and the formula's port": {EvidencePort, packet.SourcePort(100, 200), func(w *wire) {
			w.send(0, 200, packet.RCSendOnly, psnB, packet.SourcePort(100, 200))
			w.send(1, forged, packet.RCAcknowledge, psnB, packet.SourcePort(100, 200))
		}},
		"REQ, REP and a response": {EvidenceCM, 7, func(w *wire) {
			w.connect(forged, 200)
			w.send(0, 200, packet.RCSendOnly, psnB, 7)
			w.send(1, forged, packet.RCAcknowledge, psnB, 7)
		}},
		"a REP before the genuine one": {EvidenceCM, 7, func(w *wire) {
			w.cm(0, packet.CM{Attribute: packet.CMREQ, LocalComm: commA, QPN: forged, PSN: psnA})
			w.cm(1, packet.CM{Attribute: packet.CMREP, LocalComm: 1, RemoteComm: commA, QPN: 200, PSN: psnB})
			w.cm(1, packet.CM{Attribute: packet.CMREP, LocalComm: commB, RemoteComm: commA, QPN: 201, PSN: psnB})
			w.send(0, 200, packet.RCSendOnly, psnB, 7)
			w.send(1, forged, packet.RCAcknowledge, psnB, 7)
		}},
	} {
		w := newWire(t)
		if c.do(w); !w.usable(0) {
			t.Errorf("%s: nothing is confirmed", name)
		}
		w.is(0, 200, forged, c.why)
	}
}

// TestOtherMessages: the messages that don't set up or release a connection change nothing, whatever QPs and IDs they name.
func TestOtherMessages(t *testing.T) {
	for _, a := range []packet.CMAttribute{packet.CMMRA, packet.CMRTU, packet.CMDREP, packet.CMLAP, packet.CMAPR, packet.CMSIDRREQ, packet.CMSIDRREP} {
		w := newWire(t)
		w.connect(100, 200)
		w.talk(100, 200, psnB, 10, 7)
		for side := range 2 {
			for _, ids := range [][2]uint32{{commA, commB}, {commB, commA}} {
				for _, qp := range []uint32{100, 200, 300} {
					w.cm(side, packet.CM{Attribute: a, LocalComm: ids[0], RemoteComm: ids[1], QPN: qp, PSN: psnA, LocalGID: alice, RemoteGID: bob})
				}
			}
		}
		w.is(0, 200, 100, EvidenceCM)
		w.is(1, 100, 200, EvidenceCM)
		w.talk(100, 200, psnB+10, 10, 7)
		w.is(0, 200, 100, EvidenceCM)
		w.release(0)
		if v := w.view(0, 200); v.Ended() != EndedDREQ {
			t.Errorf("after message %#x a DREQ leaves %v", a, v)
		}
	}
}
