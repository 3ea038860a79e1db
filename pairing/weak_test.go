package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Traffic that misled an earlier version of the pairing, or nearly did.

// A QP serves another connection while its flow is unconfirmed. What the old connection's responses showed doesn't count for the new one.
func TestReuseOfAnUnconfirmedFlow(t *testing.T) {
	w := newWire(t)
	for i := range uint32(200) { // three connections with one port, which random PSNs distinguish; but QP 200 moves between connections all the time
		psn := (i/3*0x3779b9 + i) & packet.PSNMask
		from := 100 + i/3%2
		w.send(0, 200, packet.RCSendOnly, psn, 0xc000)
		w.send(1, from, packet.RCAcknowledge, psn, 0xc000)
		if v := w.view(0, 200); v.Usable() && v.SourceQP() != from {
			t.Fatalf("packet %d of QP %d: %v", i, from, v)
		}
	}
}

// Half of the flows have their ports by the formula, the others have a constant port. The constant port fits the formula for one pair of QPs in
// 2^14, and the constant half has nearly as many pairs of flows.
func TestPortsHalfByTheFormula(t *testing.T) {
	const flows, formula, packets = 256, 135, 40
	for seed := range uint32(4) {
		w := newWire(t)
		a := func(i uint32) uint32 { return 0x100 + seed*977 + i }
		b := func(i uint32) uint32 { return 0x900 + seed*1531 + i }
		port := func(i uint32) uint16 {
			if i < formula {
				return packet.SourcePort(a(i), b(i))
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
			if v.State() != Confirmed {
				continue
			}
			if confirmed++; v.SourceQP() != a(i) {
				t.Errorf("seed %d: flow %d comes from %#x: %+v", seed, i, a(i), v)
			}
		}
		if confirmed < formula*9/10 {
			t.Errorf("seed %d: %d of %d flows by the formula are confirmed", seed, confirmed, formula)
		}
	}
}

// A packet to the QP of a connection, with an opcode that has no role, doesn't affect what the gateway learns about the connection.
func TestNoRole(t *testing.T) {
	w := newWire(t)
	w.talk(100, 200, 5, 5, 52769)
	w.is(0, 200, 100, EvidencePort)
	w.send(0, 200, packet.RD|packet.RCAcknowledge, 0, 4000)
	w.talk(100, 200, 10, 5, 52769)
	w.is(0, 200, 100, EvidencePort)
	w.is(1, 100, 200, EvidencePort)
	if n := w.workers[0].counts.Reuses; n != 0 {
		t.Errorf("%d records ended", n)
	}

	w = newWire(t)
	w.send(0, 200, packet.RD|packet.RCAcknowledge, 0, 52769)
	w.talk(100, 200, 5, 1000, 52769)
	w.is(0, 200, 100, EvidencePort)
	w.is(1, 100, 200, EvidencePort)
}
