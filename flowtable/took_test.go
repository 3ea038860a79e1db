package flowtable

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestTook: as many packets of a flow as had gone by when its source QP was confirmed, the one that confirmed it among them, whoever's
// packet that was and whatever follows.
func TestTook(t *testing.T) {
	requests := func(n int) func(w *wire) {
		return func(w *wire) {
			for i := range n {
				w.send(0, 200, packet.RCSendOnly, uint32(5+i), 52769)
			}
		}
	}
	ack := func(w *wire) { w.send(1, 100, packet.RCAcknowledge, 5, 52769) }
	connect := func(w *wire) { w.connect(100, 200) }
	for _, c := range []struct {
		name        string
		do          []func(w *wire)
		there, back uint64
	}{
		{"by the other direction's packet", []func(w *wire){requests(3), ack, requests(2), ack}, 3, 1},
		{"by the other direction's packet, the last one", []func(w *wire){requests(3), ack}, 3, 1},
		{"by its own packet", []func(w *wire){requests(1), ack, ack}, 1, 1},
		{"by RDMA-CM before", []func(w *wire){connect, requests(3), ack, ack}, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWire(t)
			for _, do := range c.do {
				do(w)
			}
			if there, back := w.took(0, 200), w.took(1, 100); there != c.there || back != c.back {
				t.Errorf("it took %d packets there and %d back, want %d and %d", there, back, c.there, c.back)
			}
		})
	}
}

// took is what the owner's View says.
func (w *wire) took(side int, qp uint32) (took uint64) {
	want := w.key(side, qp)
	w.tables[side].Each(func(x Index, k *Key, _ *Flow) bool {
		if k.same(&want) {
			took = w.tables[side].View(x).Took
		}
		return true
	})
	return took
}

// TestConfirmedIsCountedOnce: RDMA-CM's word on what the map says already confirms nothing.
func TestConfirmedIsCountedOnce(t *testing.T) {
	for _, before := range []bool{true, false} {
		w := newWire(t)
		m, err := NewQPMap([]QPPair{{Source: alice, Destination: bob, SourceQP: 100, DestinationQP: 200}})
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range w.tables {
			table.SetStatic(m)
		}
		if before {
			w.connect(100, 200)
		}
		w.talk(100, 200, 5, 3, 52769)
		if !before {
			w.connect(100, 200)
		}
		var n [Evidences]uint64
		for _, table := range w.tables {
			for e, k := range table.confirmed {
				n[e] += k
			}
		}
		if want := [Evidences]uint64{EvidenceStatic: 2}; n != want {
			t.Errorf("RDMA-CM before %v: confirmed %v, want %v", before, n, want)
		}
	}
}
