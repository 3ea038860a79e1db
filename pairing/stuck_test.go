package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Cases that once prevented forever that a flow with clear evidence was confirmed.

// randomStart is a first PSN for flow i that is far from those of the other flows.
func randomStart(i uint32) uint32 { return i * 2654435761 >> 8 }

// lockstep sends a request from alice on each of n connections with one UDP port, i from 5000+i to 1000+i, and bob's acknowledgement.
func (w *wire) lockstep(n, k uint32) {
	for i := range n {
		w.send(0, 1000+i, packet.RCSendOnly, randomStart(i)+k, 50000)
		w.send(1, 5000+i, packet.RCAcknowledge, randomStart(i)+k, 50000)
	}
}

// A connection that only PSNs can identify, and that begins after all others between its hosts were paired: those rule out nothing any more, but
// they are not its peer flow.
func TestConnectionAmongPairedOnes(t *testing.T) {
	w := newWire(t)
	for k := range uint32(1000) {
		w.lockstep(15, k)
	}
	w.is(0, 1000, 5000, EvidencePSN)
	for k := range uint32(100) {
		w.lockstep(16, 1000+k)
	}
	w.is(0, 1015, 5015, EvidencePSN)
	w.is(1, 5015, 1015, EvidencePSN)
}

// Another worker holds the lock of RDMA-CM's claims when a flow looks for its own: it looks again.
func TestClaimLookedForAgain(t *testing.T) {
	w := newWire(t)
	w.connect(100, 200)
	w.pairing.cmLock.Try()
	w.talk(100, 200, psnB, 1, 7)
	w.pairing.cmLock.Release()
	w.talk(100, 200, psnB+1, 10, 7)
	w.is(0, 200, 100, EvidenceCM)
	w.is(1, 100, 200, EvidenceCM)
}

// A stale or forged claim about the flow of a connection that only answers does not hide the connection's own, whichever came first.
func TestSeveralClaims(t *testing.T) {
	stale := func(w *wire) {
		w.cm(0, packet.CM{Attribute: packet.CMREQ, LocalComm: 0x666, QPN: 100, PSN: 0x123456})
		w.cm(1, packet.CM{Attribute: packet.CMREP, LocalComm: 0x777, RemoteComm: 0x666, QPN: 333, PSN: 0x654321})
	}
	forged := func(w *wire) {
		w.cm(1, packet.CM{Attribute: packet.CMREQ, LocalComm: 0x888, QPN: 200, PSN: 0x123456})
		w.cm(0, packet.CM{Attribute: packet.CMREP, LocalComm: 0x999, RemoteComm: 0x888, QPN: 444, PSN: 0x654321})
	}
	for name, claims := range map[string][]func(w *wire){
		"about who answers":       {stale, genuine},
		"about who answers, late": {genuine, stale},
		"about who asks":          {forged, genuine},
		"about who asks, late":    {genuine, forged},
		"about both":              {stale, forged, genuine},
		"about both, late":        {genuine, forged, stale},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			for _, claim := range claims {
				claim(w)
				w.now += 1e9
			}
			w.talk(100, 200, psnB, 10, 7)
			w.is(0, 200, 100, EvidenceCM)
			w.is(1, 100, 200, EvidenceCM)
		})
	}
}

func genuine(w *wire) { w.connect(100, 200) }

// A flow with requests both ways is suspended since an acknowledgement came late, and from then on only asks, or only answers: what follows
// ends the suspension, wherever the PSNs of the two directions lie.
func TestSuspensionEndsEitherWay(t *testing.T) {
	for _, start := range []uint32{0x900, 0x400000, 0x800900, 0xc00000} {
		for name, goOn := range map[string]func(w *wire){
			"asks": func(w *wire) { w.talk(100, 200, psnB+200, 5, 7) },
			"answers": func(w *wire) {
				for i := range uint32(2 * coarse) {
					w.send(1, 100, packet.RCSendOnly, start+200+i, 7)
					w.send(0, 200, packet.RCAcknowledge, start+200+i, 7)
				}
			},
		} {
			w := requestsBothWays(t, start, 200, 0)
			w.send(0, 200, packet.RCAcknowledge, start+50, 7)
			w.is(0, 200, 0, 0)
			goOn(w)
			if a := w.view(0, 200); !a.Usable() {
				t.Errorf("the reverse begins with PSN %#x; a flow that %s is %v", start, name, a)
			}
		}
	}
}

// requestsBothWays is a connection by RDMA-CM with one port, 200 requests of alice's and some of bob's, of which the last are not answered yet.
func requestsBothWays(t *testing.T, start, requests, pending uint32) *wire {
	w := newWire(t)
	w.cm(0, packet.CM{Attribute: packet.CMREQ, LocalComm: commA, QPN: 100, PSN: start})
	w.cm(1, packet.CM{Attribute: packet.CMREP, LocalComm: commB, RemoteComm: commA, QPN: 200, PSN: psnB})
	w.talk(100, 200, psnB, 200, 7)
	for i := range requests {
		w.send(1, 100, packet.RCSendOnly, start+i, 7)
		if i < requests-pending {
			w.send(0, 200, packet.RCAcknowledge, start+i, 7)
		}
	}
	w.is(0, 200, 100, EvidenceCM)
	return w
}

// One early packet with another UDP source port, perhaps a forged one: once the port has been the same for some time it counts again.
func TestPortIsSteadyAgain(t *testing.T) {
	w := newWire(t)
	w.send(0, 200, packet.RCSendOnly, 4, 50000)
	w.talk(100, 200, 5, 4*steadyPackets, 52769)
	w.is(0, 200, 0, 0)
	w.talk(100, 200, 5+4*steadyPackets, 8*steadyPackets, 52769)
	w.is(0, 200, 100, EvidencePort)
	w.is(1, 100, 200, EvidencePort)
}

// Whatever is forged about a QP, and whatever transport service had it before, the connection is confirmed after some packets.
func TestTransportServiceChanges(t *testing.T) {
	uc := func(w *wire, psn uint32, n int, port uint16) {
		for i := range uint32(n) {
			w.send(0, 200, packet.UC|packet.RCSendOnly, psn+i, port)
			w.send(1, 100, packet.UC|packet.RCSendOnly, psn+0x7000+i, port)
		}
	}
	for name, do := range map[string]func(w *wire){
		"RC, one UC packet forged before it": func(w *wire) {
			w.send(1, 100, packet.UC|packet.RCSendOnly, 0x500000, 50000)
			w.talk(100, 200, 5, 10, 52769)
		},
		"RC, the QP was UC's": func(w *wire) {
			uc(w, 0x100000, 300, 50000)
			w.talk(100, 200, 5, 10, 52769)
		},
		"RC, the QPs were UC's": func(w *wire) {
			uc(w, 0x100000, 300, 52769)
			w.talk(100, 200, 5, 10, 52769)
		},
		"UC, two responses forged": func(w *wire) {
			uc(w, 5, 100, 52769)
			w.send(1, 100, packet.RCAcknowledge, 0x700000, 52769)
			w.send(1, 100, packet.RCAcknowledge, 0x700001, 52769)
			w.is(1, 100, 0, 0)
			uc(w, 105, 10, 52769)
		},
		"UC, responses forged before it": func(w *wire) {
			w.send(1, 100, packet.RCAcknowledge, 0x700000, 50000)
			uc(w, 5, 10, 52769)
		},
		"UC, one packet forged with another port": func(w *wire) {
			uc(w, 5, 10, 52769)
			w.send(1, 100, packet.UC|packet.RCSendOnly, 0x7000+16, 50000)
			uc(w, 16, 12*steadyPackets, 52769)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			do(w)
			w.is(0, 200, 100, EvidencePort)
			w.is(1, 100, 200, EvidencePort)
		})
	}
}

// Responses before the first request of any flow don't count against the flows.
func TestResponsesFirst(t *testing.T) {
	const flows, early = 16, 8000
	w := newWire(t)
	for k := range uint32(early) {
		for i := range uint32(flows) {
			w.send(1, 5000+i, packet.RCAcknowledge, randomStart(i)+k, 50000)
		}
	}
	for k := range uint32(200) {
		w.lockstep(flows, early+k)
	}
	w.is(0, 1000, 5000, EvidencePSN)
}

// A claim that comes long after the flow's beginning is ignored: otherwise anyone could try claims until one fits.
func TestClaimAfterTheData(t *testing.T) {
	for after, want := range map[int64]Evidence{1e5: EvidenceCM, 2e6: EvidenceNone} {
		w := newWire(t)
		w.talk(100, 200, psnB, 10, 7)
		w.now += after
		w.connect(100, 200)
		w.talk(100, 200, psnB+10, 400, 7)
		if want == EvidenceNone {
			w.is(0, 200, 0, want)
		} else {
			w.is(0, 200, 100, want)
		}
	}
}
