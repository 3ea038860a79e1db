package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// The bounds of the rules: evidence just at a bound confirms, evidence just below it does not.

func TestChance(t *testing.T) {
	for _, c := range []struct{ evidence, one, other, matched, want int }{
		{18, 1, 1, 1, 18},
		{18, 1, 1, 0, 16},    // two that have not found their partners
		{18, 16, 16, 16, 26}, // one in 16 hidden, on both sides
		{18, 31, 31, 31, 26}, // rounded down
		{18, 16, 8, 8, 20},   // of one side eight have found none
		{18, 8, 16, 8, 20},   // of the other side
		{18, 16, 16, 8, 17},  // of both
		{0, 256, 256, 256, 16},
		{18, 256, 256, 0, 1},
	} {
		if got := chance(c.evidence, c.one, c.other, c.matched); got != c.want {
			t.Errorf("chance(%d, %d, %d, %d) = %d, want %d", c.evidence, c.one, c.other, c.matched, got, c.want)
		}
	}
}

// two is a flow of each side that has a slot, of a connection between QPs 5000 and 1000.
func two(t *testing.T) (w *wire, a, b store.Slot) {
	w = newWire(t)
	w.send(0, 1000, packet.RCSendOnly, 0x500000, 50000)
	w.send(1, 5000, packet.RCAcknowledge, 0x500000, 50000)
	return w, w.at(0, 1000), w.at(1, 5000)
}

// at is the slot of the flow from a side to a QP.
func (w *wire) at(side int, qp uint32) store.Slot {
	w.t.Helper()
	pl, ok := w.workers[side].slotOf(w.find(side, qp))
	if !ok {
		w.t.Fatalf("the flow from side %d to QP %d has no slot", side, qp)
	}
	return pl
}

func TestEnough(t *testing.T) {
	for _, c := range []struct {
		contradictions, retries uint8
		least                   int
	}{{0, 0, 20}, {1, 0, 22}, {2, 0, 24}, {maxContradictions, 0, 30}, {0, 1, 21}, {0, 8, 28}, {0, 12, 28}, {2, 3, 27}} {
		_, a, b := two(t)
		for _, one := range []*store.Slot{&a, &b} { // whichever of the two it was
			*a.EditElimination(), *b.EditElimination() = store.Elimination{}, store.Elimination{}
			one.EditElimination().Contradictions, one.EditElimination().Retries = c.contradictions, c.retries
			if !enough(&a.View, &b.View, c.least) || enough(&a.View, &b.View, c.least-1) {
				t.Errorf("%d contradictions, %d retries: want exactly %d bits to be enough", c.contradictions, c.retries, c.least)
			}
		}
	}
}

func TestEnoughResponses(t *testing.T) {
	for _, c := range []struct{ contradictions, least uint8 }{{0, 0}, {1, 2}, {2, 4}, {maxContradictions, 32}} {
		_, a, b := two(t)
		for _, suspended := range []*store.Slot{&a, &b} {
			for _, answers := range []*store.Slot{&a, &b} {
				*a.EditElimination(), *b.EditElimination() = store.Elimination{}, store.Elimination{}
				suspended.EditElimination().Contradictions, answers.EditElimination().Plausible = c.contradictions, c.least
				if !enoughResponses(&a.View, &b.View) {
					t.Errorf("%d contradictions: %d responses are not enough", c.contradictions, c.least)
				}
				if answers.EditElimination().Plausible--; c.least > 0 && enoughResponses(&a.View, &b.View) {
					t.Errorf("%d contradictions: %d responses are enough", c.contradictions, c.least-1)
				}
			}
		}
	}
}

func TestPortBits(t *testing.T) {
	for _, c := range []struct{ flows, shared, want int }{
		{2, 0, 1}, {15, 0, 6}, {15, 2, 5}, {16, 0, 14}, {16, 1, 14}, {16, 2, 6}, {64, 2, 14}, {64, 3, 9}, {64, 33, 0}, {256, 17, 14}, {256, 18, 11}, {256, 129, 0},
	} {
		if got := bitsOfPort(c.flows, c.shared); got != c.want {
			t.Errorf("%d flows of which %d share a port: %d bits, want %d", c.flows, c.shared, got, c.want)
		}
	}
}

// many is n connections with own ports and distant first PSNs, which is too little to confirm any.
func many(t *testing.T, n uint32) *wire {
	w := newWire(t)
	for i := range n {
		w.send(0, 1000+i, packet.RCSendOnly, randomStart(i), 50000+uint16(i))
	}
	for i := range n {
		w.send(1, 5000+i, packet.RCAcknowledge, randomStart(i), 60000+uint16(i))
	}
	return w
}

func TestFormulaSure(t *testing.T) {
	for _, c := range []struct {
		name             string
		flows            uint32
		formula, equal   [2]int // flows of each side with such ports
		alone, few, none bool   // none: no response agrees
		want             bool
	}{
		{"few flows", 15, [2]int{}, [2]int{}, true, true, false, true},
		{"few flows, a third with the port", 15, [2]int{15, 15}, [2]int{15, 15}, false, true, false, false},
		{"few flows, no response", 15, [2]int{}, [2]int{}, true, true, true, false},
		{"many flows, two fit", 16, [2]int{2, 2}, [2]int{2, 2}, true, true, false, true},
		{"many flows, one fits", 16, [2]int{1, 1}, [2]int{1, 1}, true, true, false, false},
		{"many flows, one fits on one side", 16, [2]int{2, 1}, [2]int{2, 1}, true, true, false, false},
		{"many flows, half of those with a partner fit", 16, [2]int{8, 8}, [2]int{16, 15}, true, true, false, false},
		{"many flows, half on the other side", 16, [2]int{8, 8}, [2]int{15, 16}, true, true, false, false},
		{"many flows, most fit", 16, [2]int{9, 9}, [2]int{16, 16}, true, true, false, true},
		{"many flows, a third with the port, many fit", 20, [2]int{16, 16}, [2]int{20, 20}, false, true, false, true},
		{"many flows, a third with the port, not so many fit", 20, [2]int{15, 15}, [2]int{20, 20}, false, true, false, false},
		{"many flows, several with the port", 20, [2]int{20, 20}, [2]int{20, 20}, false, false, false, false},
	} {
		w := many(t, c.flows)
		p := w.pairing
		a, b := w.at(0, 1000), w.at(1, 5000)
		for side, pl := range []*store.Slot{&a, &b} {
			for n := range pl.Own() {
				o, _ := p.store.Slot(pl.Group(), pl.Side(), n)
				o.SetPortMark(0)
				if n < c.formula[side] {
					o.SetPortMark(o.PortMark() | store.PortFormula)
				}
				if n < c.equal[side] {
					o.SetPortMark(o.PortMark() | store.PortEqual)
				}
			}
		}
		if c.none {
			b.PublishAck(b.Lease(), store.MakeAck(0x5, b.Lease()))
		}
		if got := formulaSure(&a.View, &portPair{peer: b.View, formula: true, alone: c.alone, few: c.few}); got != c.want {
			t.Errorf("%s: sure %v, want %v", c.name, got, c.want)
		}
	}
}

// TestStartBits: the evidence in bits of a response for the flow whose request it answers.
func TestStartBits(t *testing.T) {
	const distance = 1 << 16
	far := func(n int) (others []uint32) {
		for i := range n {
			others = append(others, 0x500000+uint32(i+1)*0x20000)
		}
		return others
	}
	for _, c := range []struct {
		name   string
		first  uint32
		width  uint8
		others []uint32 // where others begin
		want   int
	}{
		{"alone", 0x500000, 0, nil, 18},
		{"alone, from 0", 0, 0, nil, 0},
		{"alone, near 0", distance - 1, 0, nil, 0},
		{"alone, not near 0", distance, 0, nil, 18},
		{"alone, before 2^24", packet.PSNMask - distance, 0, nil, 0},
		{"alone, long before 2^24", packet.PSNMask - distance - 1, 0, nil, 18},
		{"within the slack", 0x500000, 6, nil, 18},
		{"after 2^10 PSNs", 0x500000, 10, nil, 14},
		{"another near", 0x500000, 0, []uint32{0x500000 + distance}, 0},
		{"another near, before", 0x500000, 0, []uint32{0x500000 - distance}, 0},
		{"another far", 0x500000, 0, []uint32{0x500000 + distance + 1}, 18},
		{"two of three far", 0x500000, 0, append(far(2), 0x500001), 0},
		{"three of four far", 0x500000, 0, append(far(3), 0x500001), 18},
	} {
		w := newWire(t)
		w.send(0, 1000, packet.RCSendOnly, c.first, 50000)
		for i, psn := range c.others {
			w.send(0, 1001+uint32(i), packet.RCSendOnly, psn, 50000)
		}
		a := w.at(0, 1000)
		if got := startBits(&a.View, &store.Elimination{Width: c.width, Exact: minAgreeing - 1}); got != c.want {
			t.Errorf("%s: %d bits, want %d", c.name, got, c.want)
		}
	}
}

// TestRhythm: ACKs for exactly the PSNs with AckReq are more evidence the rarer these PSNs are, and count each time if no other flow asks
// at the same distances.
func TestRhythm(t *testing.T) {
	asks := func(w *wire, qp uint32, gaps []uint32) {
		psn := qp << 12
		for _, g := range append([]uint32{0}, gaps...) {
			for psn += g; g > 1; g-- {
				b := make([]byte, 64)
				w.frame(0, &packet.Parsed{Kind: packet.RoCEv2, Opcode: packet.RCSendOnly, DestQP: qp, PSN: (psn - g + 1) & packet.PSNMask, SrcPort: 50000}, b)
			}
			w.send(0, qp, packet.RCSendOnly, psn, 50000)
		}
	}
	own, same := []uint32{16, 12, 20, 16, 16}, []uint32{9, 9, 9, 9, 9}
	for _, c := range []struct {
		name   string
		mine   []uint32
		others [][]uint32
		exact  uint8
		want   int // more than by where the flow begins
	}{
		{"too few exact", own, [][]uint32{same, same, same}, 3, 0},
		{"its own", own, [][]uint32{same, same, same}, 4, 16},
		{"its own, at most", own, [][]uint32{same, same, same}, 20, 40},
		{"too few others", own, [][]uint32{same, same}, 4, 4},
		{"as another's", own, [][]uint32{same, same, own}, 4, 4},
		{"too few gaps", own[:4], [][]uint32{same, same, same}, 4, 4},
		{"others' too few gaps", own, [][]uint32{same, same, same[:4]}, 4, 4},
		{"as another's last ones", own, [][]uint32{same, same, append([]uint32{5, 5}, own...)}, 4, 4},
	} {
		w := newWire(t)
		for i, gaps := range append([][]uint32{c.mine}, c.others...) {
			asks(w, 1000+uint32(i)*100, gaps)
		}
		a := w.at(0, 1000)
		begins := startBits(&a.View, &store.Elimination{})
		if got := startBits(&a.View, &store.Elimination{Exact: c.exact}) - begins; got != c.want || begins != 18 {
			t.Errorf("%s: %d and %d bits more, want 18 and %d", c.name, begins, got, c.want)
		}
	}
}
