package flowtable

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// What once misled the pairing, or nearly.

// RDMA-CM's word ends with the connection, also where no DREQ told its end.
func TestCMsWordEndsWithTheConnection(t *testing.T) {
	w := newWire(t)
	w.connect(100, 200)
	w.talk(100, 200, 5, 300, 52769)
	w.is(0, 200, 100, EvidenceCM)
	for i := range uint32(50) { // QP 200 serves QP 101 now
		w.send(0, 200, packet.RCSendOnly, 0x800000+i, 50001)
		w.send(1, 101, packet.RCAcknowledge, 0x800000+i, 50001)
		if v := w.view(0, 200); v.State == Confirmed && v.SourceQP == 100 && v.Ended == Open {
			t.Fatalf("packet %d: %+v", i, v)
		}
	}
}

// A second REP to a connection that is set up is a forged one, or another's: the first stands.
func TestSecondREP(t *testing.T) {
	w := newWire(t)
	w.connect(100, 200)
	w.cm(1, packet.CM{Attribute: packet.CMREP, LocalComm: 0x77, RemoteComm: commA, QPN: 333})
	w.talk(100, 200, 5, 30, 52769)
	w.is(0, 200, 100, EvidenceCM)
	w.is(1, 100, 200, EvidenceCM)
}

// A QP that changes hands while its flow is unconfirmed: what the old connection's responses said is not held for the new one.
func TestReuseOfAnUnconfirmedFlow(t *testing.T) {
	w := newWire(t)
	for i := range uint32(200) { // three connections with one port, which random PSNs tell apart; but QP 200 changes hands all the time
		psn := (i/3*0x3779b9 + i) & psnMask
		from := 100 + i/3%2
		w.send(0, 200, packet.RCSendOnly, psn, 0xc000)
		w.send(1, from, packet.RCAcknowledge, psn, 0xc000)
		if v := w.view(0, 200); v.State == Confirmed && v.SourceQP != from && v.Ended == Open {
			t.Fatalf("packet %d of QP %d: %+v", i, from, v)
		}
	}
}

// Where half of the flows make their ports by the formula and the others have a constant one, that one fits the formula for one pair of
// QPs in 2^14: of the constant half there are nearly as many pairs.
func TestPortsHalfByTheFormula(t *testing.T) {
	const flows, formula, packets = 256, 135, 40
	for seed := range uint32(4) {
		w := newWire(t)
		a := func(i uint32) uint32 { return 0x100 + seed*977 + i }
		b := func(i uint32) uint32 { return 0x900 + seed*1531 + i }
		port := func(i uint32) uint16 {
			if i < formula {
				return symmetricPort(a(i), b(i))
			}
			return 0xc000
		}
		for psn := range uint32(packets) {
			for i := range uint32(flows) {
				w.send(0, b(i), packet.RCSendOnly, psn, port(i))
			}
			for i := range uint32(flows) {
				w.send(1, a(i), packet.RCAcknowledge, psn, port(i))
			}
		}
		confirmed := 0
		for i := range uint32(flows) {
			v := w.view(0, b(i))
			if v.State != Confirmed {
				continue
			}
			if confirmed++; v.SourceQP != a(i) {
				t.Errorf("seed %d: flow %d comes from %#x: %+v", seed, i, a(i), v)
			}
		}
		if confirmed < formula*9/10 {
			t.Errorf("seed %d: %d of %d flows by the formula are confirmed", seed, confirmed, formula)
		}
	}
}

// The same of a flow for which there was no place, so that RDMA-CM alone knows of it.
func TestCMsWordEndsWithoutAPlace(t *testing.T) {
	w := newCrowd(t)
	for i := range uint32(50) { // QP 200 serves another QP now
		w.send(0, 200, packet.RCSendOnly, 0x800000+i, 52769)
		if v := w.view(0, 200); v.State == Confirmed && v.Ended == Open {
			t.Fatalf("packet %d: %+v", i, v)
		}
	}
}

// A packet of an opcode without a role, to the QP of a connection, changes nothing of what was learned of it, nor of what will be.
func TestNoRole(t *testing.T) {
	w := newWire(t)
	w.talk(100, 200, 5, 5, 52769)
	w.is(0, 200, 100, EvidencePort)
	w.send(0, 200, packet.RDAcknowledge, 0, 4000)
	w.talk(100, 200, 10, 5, 52769)
	w.is(0, 200, 100, EvidencePort)
	w.is(1, 100, 200, EvidencePort)
	if n := w.tables[0].reuses; n != 0 {
		t.Errorf("%d records ended", n)
	}

	w = newWire(t)
	w.send(0, 200, packet.RDAcknowledge, 0, 52769)
	w.talk(100, 200, 5, 1000, 52769)
	w.is(0, 200, 100, EvidencePort)
	w.is(1, 100, 200, EvidencePort)
}
