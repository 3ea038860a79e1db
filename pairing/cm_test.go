package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/cm"
	"github.com/cnpgate/cnpgate/pairing/store"
)

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

// TestCMSaysNothing: RDMA-CM's claims by themselves confirm nothing, and neither do claims that the data doesn't confirm.
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
		"requests elsewhere":      func(w *wire) { w.connect(100, 200); w.talk(100, 200, psnB+store.FirstSlack+1, 3, 7) },
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

// TestReleaseClosesTheRecord: after a DREQ the record keeps its answer, but no notification uses it. Packets of the next second still
// belong to it, later ones begin a new record.
func TestReleaseClosesTheRecord(t *testing.T) {
	for side := range 2 {
		w := newWire(t)
		var ended []Description
		for _, worker := range w.workers {
			worker.ended = func(_ *flowtable.Key, v Description) { ended = append(ended, v) }
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

// TestReleaseAheadOfTheClock: the workers' clocks differ a little, so a packet that comes just before the DREQ does, by the clock of its worker,
// may be observed after it.
func TestReleaseAheadOfTheClock(t *testing.T) {
	w := newWire(t)
	w.connect(100, 200)
	w.talk(100, 200, psnB, 20, 7)
	w.now = (w.now/1e6+1)*1e6 - 1000
	w.release(1) // at the beginning of a millisecond
	w.now -= 1200
	w.send(0, 200, packet.RCSendOnly, psnB+19, 7)
	if v := w.view(0, 200); v.Ended() != EndedDREQ {
		t.Errorf("200 ns before the DREQ: %v", v)
	}
}

// TestConnectedAgain: a connection of the same QPs that RDMA-CM sets up within a second after a DREQ is confirmed at once.
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

// TestREQDisplacesNothing: neither a REQ nor a REQ with its REP changes the answers of a live connection.
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

// TestConnectedAgainUnseen: the DREQ is lost, and RDMA-CM connects the same two QPs again. The end of the old connection, which the new
// one's data shows, doesn't affect RDMA-CM's claims about the new one.
func TestConnectedAgainUnseen(t *testing.T) {
	w := newWire(t)
	w.connect(100, 200)
	w.talk(100, 200, psnB, 3, 7)
	w.is(0, 200, 100, EvidenceCM)
	w.cm(0, packet.CM{Attribute: packet.CMREQ, LocalComm: 0xccc, QPN: 100, PSN: 0x111111})
	w.cm(1, packet.CM{Attribute: packet.CMREP, LocalComm: 0xddd, RemoteComm: 0xccc, QPN: 200, PSN: 0x222222})
	w.talk(100, 200, 0x222222, 4, 7)
	w.is(0, 200, 100, EvidenceCM)
	w.is(1, 100, 200, EvidenceCM)
}

// TestLateDREQ: a repeated DREQ, after the same two QPs were connected again, belongs to the old connection, before the new one's data as well as after it.
func TestLateDREQ(t *testing.T) {
	for _, n := range []int{0, 3} {
		w := newWire(t)
		w.connect(100, 200)
		w.cm(0, packet.CM{Attribute: packet.CMREQ, LocalComm: 0xccc, QPN: 100, PSN: 0x111111})
		w.cm(1, packet.CM{Attribute: packet.CMREP, LocalComm: 0xddd, RemoteComm: 0xccc, QPN: 200, PSN: 0x222222})
		w.talk(100, 200, 0x222222, n, 7)
		w.release(0)
		if a := w.view(0, 200); n > 0 && a.Ended() != Open {
			t.Errorf("the DREQ leaves the flow %v", a)
		}
		w.talk(100, 200, 0x222222+uint32(n), 3, 7)
		w.is(0, 200, 100, EvidenceCM)
		w.is(1, 100, 200, EvidenceCM)
	}
}

// TestConnectedBehind: an unconfirmed connection ends, and RDMA-CM connects its QPs again, with PSNs behind the old ones. The old
// connection's acknowledgements don't prevent that the new one's responses count.
func TestConnectedBehind(t *testing.T) {
	w := newWire(t)
	w.talk(100, 200, 10, 200, 7)
	w.is(0, 200, 0, 0)
	const first = 0x900000 // more than 2^23 ahead is behind
	w.cm(0, packet.CM{Attribute: packet.CMREQ, LocalComm: commA, QPN: 100, PSN: psnA})
	w.cm(1, packet.CM{Attribute: packet.CMREP, LocalComm: commB, RemoteComm: commA, QPN: 200, PSN: first})
	w.talk(100, 200, first, 30, 7)
	w.is(0, 200, 100, EvidenceCM)
	w.is(1, 100, 200, EvidenceCM)
}

// TestConnectedAtOnce: a job connects all its QPs before it sends. The claims of a connection for each 32 flows of the table are kept, all but some in a hundred.
func TestConnectedAtOnce(t *testing.T) {
	const flows = 1 << 16
	const pairs = flows / 32
	p, err := New(make([]byte, Size(flows)), Config{Flows: flows, Egress: []int{1, 0}, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	g := store.Key{Hosts: [2]packet.Addr{alice, bob}}
	h := p.hashOf(&g)
	for i := range 2 * pairs {
		p.cm.Add(h, i%2, uint32(i), cm.Claim{Time: int64(i + 1), SourceQP: uint32(i)})
	}
	lost := 0
	for i := range 2 * pairs {
		if p.cm.Claim(h, i%2, uint32(i), uint32(i)) == nil {
			lost++
		}
	}
	if lost > 2*pairs/100 {
		t.Errorf("%d of %d claims are lost", lost, 2*pairs)
	}
}
