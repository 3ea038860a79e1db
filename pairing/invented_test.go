package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
)

// Cases that once misled the pairing, or left it without an answer forever.

// A hint for a learned pair is set and withdrawn: the pair is learned again.
func TestHintWithdrawn(t *testing.T) {
	w := newWire(t)
	w.talk(100, 200, 0, 10, 52769)
	w.pairing.SetHints(pairsMap(t, QPPair{Source: alice, Destination: bob, SourceQP: 100, DestinationQP: 200}))
	w.sweep()
	w.talk(100, 200, 10, 10, 52769)
	w.is(0, 200, 100, EvidenceHint)
	w.pairing.SetHints(nil)
	w.sweep()
	w.talk(100, 200, 20, 50, 52769)
	w.is(0, 200, 100, EvidencePort)
	w.is(1, 100, 200, EvidencePort)
}

// A REQ with the starting PSN 0 for the QP of a connection that will begin there, its genuine REP, and a forged ACK to the QP of the REP
// before the true one.
func TestForgedREQAndACK(t *testing.T) {
	for _, port := range []uint16{7, 52769} {
		w := newWire(t)
		w.cm(1, packet.CM{Attribute: packet.CMREQ, LocalComm: 0x666, QPN: 200, PSN: 0})
		w.cm(0, packet.CM{Attribute: packet.CMREP, LocalComm: 0x777, RemoteComm: 0x666, QPN: 3000, PSN: 0x444444})
		w.send(0, 200, packet.RCSendOnly, 0, port)
		w.send(1, 3000, packet.RCAcknowledge, 0, port)
		for i := range uint32(2000) {
			w.talk(100, 200, i+1, 1, port)
			if a := w.view(0, 200); a.Usable() && a.SourceQP() != 100 {
				t.Fatalf("port %d, packet %d: %v", port, i, a)
			}
		}
	}
}

// UDP source port 0 distinguishes no connection from another.
func TestPortZero(t *testing.T) {
	w := newWire(t)
	const flows = 8
	for i := range uint32(400) {
		for f := range uint32(flows) {
			w.talk(100+f, 200+f, f*0x123456+0x10000+i, 1, 0)
		}
	}
	for f := range uint32(flows) {
		w.is(0, 200+f, 100+f, EvidencePSN)
		pl, _ := w.workers[0].slotOf(w.find(0, 200+f))
		if pl.Link().OwnPort() {
			t.Errorf("flow %d has a port of its own", f)
		}
	}
}

// Forged responses for invented QPs, where all flows have one port and each has been suspended once: they replace no peer flow.
func TestInventedResponders(t *testing.T) {
	for seed := range uint32(1 + 3*effort.Long) {
		w := newWire(t)
		rnd := seed*0x9e3779b9 + 12345
		random := func() uint32 {
			rnd ^= rnd << 13
			rnd ^= rnd >> 17
			rnd ^= rnd << 5
			return rnd & packet.PSNMask
		}
		const flows, width = 200, 2048
		var base [flows]uint32
		for f := range base {
			base[f] = random()
		}
		for i := range uint32(width) {
			for f := range uint32(flows) {
				w.talk(100+f, 2000+f, base[f]+i, 1, 7)
			}
		}
		known := 0
		for f := range uint32(flows) {
			if w.view(0, 2000+f).Usable() {
				known++
			}
		}
		if known < flows*9/10 {
			t.Fatalf("%d flows are known", known)
		}
		for i := range uint32(40) {
			for f := range uint32(flows) { // back to what was acknowledged long ago, and on
				w.send(1, 0x90000+f, packet.RCAcknowledge, base[f]+width/2+i, 7)
				w.send(0, 2000+f, packet.RCSendOnly, base[f]+width-1000+i, 7)
				if a := w.view(0, 2000+f); a.Usable() && a.SourceQP() != 100+f {
					t.Fatalf("seed %d: the flow from QP %d is %v", seed, 100+f, a)
				}
			}
		}
	}
}

// A UC flow whose UDP source port changes for one packet, which no response will ever confirm.
func TestPortOfUCMoves(t *testing.T) {
	w := newWire(t)
	both := func(i uint32, port uint16) {
		w.send(0, 200, packet.UC|packet.RCSendOnly, 5+i, port)
		w.send(1, 100, packet.UC|packet.RCSendOnly, 7000+i, 52769)
	}
	for i := range uint32(10) {
		both(i, 52769)
	}
	w.is(0, 200, 100, EvidencePort)
	both(10, 50000)
	for i := range uint32(2000) {
		both(11+i, 52769)
	}
	w.is(0, 200, 100, EvidencePort)
	w.is(1, 100, 200, EvidencePort)
}

// Consecutive requests lost before the gateway don't end a pair that RDMA-CM has confirmed.
func TestGapBeforeTheGateway(t *testing.T) {
	w := newWire(t)
	w.connect(100, 200)
	w.talk(100, 200, psnB, 200, 7)
	w.is(0, 200, 100, EvidenceCM)
	w.send(0, 200, packet.RCSendOnly, psnB+300, 7)
	w.send(0, 200, packet.RCSendOnly, psnB+301, 7)
	w.is(0, 200, 0, 0)
	w.talk(100, 200, psnB+302, 30, 7)
	w.is(0, 200, 100, EvidenceCM)
	w.is(1, 100, 200, EvidenceCM)
}

// A silent peer flow is given up, and another flow can replace it.
func TestSilentPeer(t *testing.T) {
	w := newWire(t)
	w.connect(100, 200)
	w.talk(100, 200, psnB, 200, 7)
	for i := range uint32(1 << 18) {
		w.send(0, 200, packet.RCSendOnly, psnB+200+i, 7)
	}
	pl, _ := w.workers[0].slotOf(w.find(0, 200))
	if a := w.view(0, 200); a.Usable() || pl.Link() != 0 {
		t.Errorf("after 2^18 requests without a response: %v", a)
	}
}
