package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestTook: Took is the number of packets of the flow up to the confirmation of its source QP, including one that confirmed it. It doesn't
// matter which flow's packet confirmed it, or what follows.
func TestTook(t *testing.T) {
	requests := func(n int) func(w *wire) {
		return func(w *wire) {
			for i := range n {
				w.send(0, 200, packet.RCSendOnly, uint32(5+i), 52769)
			}
		}
	}
	ack := func(w *wire) { w.send(1, 100, packet.RCAcknowledge, 5, 52769) }
	connect := func(w *wire) {
		w.cm(0, packet.CM{Attribute: packet.CMREQ, LocalComm: commA, QPN: 100, PSN: psnA})
		w.cm(1, packet.CM{Attribute: packet.CMREP, LocalComm: commB, RemoteComm: commA, QPN: 200, PSN: 5})
	}
	for _, c := range []struct {
		name        string
		do          []func(w *wire)
		there, back uint64
	}{
		{"by the other direction's packet", []func(w *wire){requests(3), ack, requests(2), ack}, 3, 1},
		{"by the other direction's packet, the last one", []func(w *wire){requests(3), ack}, 3, 1},
		{"by its own packet", []func(w *wire){requests(1), ack, ack}, 1, 1},
		{"by RDMA-CM", []func(w *wire){connect, requests(3), ack, ack}, 3, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWire(t)
			for _, do := range c.do {
				do(w)
			}
			if there, back := w.took(0, 200), w.took(1, 100); there != c.there || back != c.back {
				t.Errorf("it took %d and %d packets in the two directions, want %d and %d", there, back, c.there, c.back)
			}
		})
	}
}

// took returns Took of the worker's Description.
func (w *wire) took(side int, qp uint32) uint64 {
	return w.workers[side].Describe(w.find(side, qp)).Took
}

// TestConfirmedIsCountedOnce: if RDMA-CM agrees with the map, it confirms nothing more.
func TestConfirmedIsCountedOnce(t *testing.T) {
	for _, before := range []bool{true, false} {
		w := newWire(t)
		m, err := NewQPMap([]QPPair{{Source: alice, Destination: bob, SourceQP: 100, DestinationQP: 200}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		w.setStatic(m)
		w.sweep()
		if before {
			w.connect(100, 200)
		}
		w.talk(100, 200, 5, 3, 52769)
		if !before {
			w.connect(100, 200)
		}
		var n [Evidences]uint64
		for _, worker := range w.workers {
			for e, k := range worker.counts.Confirmed {
				n[e] += k
			}
		}
		if want := [Evidences]uint64{EvidenceStatic: 2}; n != want {
			t.Errorf("RDMA-CM before %v: confirmed %v, want %v", before, n, want)
		}
	}
}
