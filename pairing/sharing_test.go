package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// TestSharing: the number of flows of a side that share a port, at each count.
func TestSharing(t *testing.T) {
	for _, c := range []struct {
		ports []uint16
		want  int
	}{
		{[]uint16{7}, 0},
		{[]uint16{7, 8, 9}, 0},
		{[]uint16{7, 8, 7}, 2},
		{[]uint16{7, 7, 7, 7}, 4},
		{[]uint16{0, 0xffff, 0, 0xffff, 64, 63}, 4},
	} {
		w := newWire(t)
		for i, port := range c.ports {
			w.send(0, 1000+uint32(i), packet.RCSendOnly, 5, port)
		}
		w.send(1, 5000, packet.RCSendOnly, 5, c.ports[0])
		a, b := w.at(0, 1000), w.at(1, 5000)
		for range 2 { // nothing is left of one count in the next one
			if got := sharing(&a.View, &w.workers[0].ports); got != c.want {
				t.Errorf("ports %d: %d flows share one, want %d", c.ports, got, c.want)
			}
			if got := sharing(&b.View, &w.workers[0].ports); got != 0 {
				t.Errorf("the other side: %d", got)
			}
		}
	}
}

// TestSharedNoMore: flows that only equal ports can pair are paired once no other flow shares their ports: here the flows of one forged
// packet each have aged.
func TestSharedNoMore(t *testing.T) {
	const flows = 24
	w := newWire(t)
	port := func(i uint32) uint16 { return uint16(0xc000 + i*37) }
	psn := uint32(0)
	talk := func(packets int) {
		for range packets {
			for i := range uint32(flows) {
				w.send(0, 1000+i, packet.RCSendOnly, psn, port(i))
			}
			for i := range uint32(flows) {
				w.send(1, 5000+i, packet.RCAcknowledge, psn, port(i))
			}
			psn++
		}
	}
	for i := range uint32(flows) {
		w.send(1, 9000+i, packet.RCAcknowledge, 0x700000, port(i))
	}
	talk(20)
	for range 100 { // 300 s
		w.now += 3e9
		talk(2)
		for range 100 {
			w.sweep()
		}
	}
	if w.find(1, 9000) != 0 {
		t.Fatal("forged flows are still there")
	}
	talk(3000)
	for i := range uint32(flows) {
		w.is(0, 1000+i, 5000+i, EvidencePort)
	}
}

// TestPortMarkIsOfTheLastJudgement: earlier fits of the port no longer count.
func TestPortMarkIsOfTheLastJudgement(t *testing.T) {
	_, a, _ := two(t)
	for _, m := range []portMatch{{equal: 2, formula: true}, {equal: 1}, {formula: true}, {}} {
		m.mark(&a)
		got := a.PortMark()
		if (got&store.PortEqual != 0) != (m.equal > 0) || (got&store.PortFormula != 0) != m.formula {
			t.Errorf("%+v: marked %b", m, got)
		}
	}
}
