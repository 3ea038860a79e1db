package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// UC with RDMA-CM, where the first PSNs can be guessed. Nothing is acknowledged, so the port decides.

// TestUCGuessedPSN: RDMA-CM has set up a connection of QPs 100 and 200 whose end nobody saw. The two QPs now serve two other connections, which
// begin at PSN 0 as the old one did.
func TestUCGuessedPSN(t *testing.T) {
	w := newWire(t)
	w.cm(0, packet.CM{Attribute: packet.CMREQ, LocalComm: commA, QPN: 100, PSN: 0})
	w.cm(1, packet.CM{Attribute: packet.CMREP, LocalComm: commB, RemoteComm: commA, QPN: 200, PSN: 0})
	w.now += 1e9
	for i := range uint32(500) {
		w.send(0, 200, packet.UC|packet.RCSendOnly, i, 50001) // of 101 and 200
		w.send(1, 101, packet.UC|packet.RCSendOnly, i, 50001)
		w.send(1, 100, packet.UC|packet.RCSendOnly, i, 50002) // of 100 and 201
		w.send(0, 201, packet.UC|packet.RCSendOnly, i, 50002)
		if v := w.view(0, 200); v.Usable() && v.SourceQP() != 101 {
			t.Fatalf("packet %d comes from 101: %v", i, v)
		}
	}
}

// TestUCForgedClaim: an attacker off path forges a REQ for a QP that is about to begin at PSN 0, and the first packet of a flow to the QP
// in the genuine REP.
func TestUCForgedClaim(t *testing.T) {
	w := newWire(t)
	w.cm(1, packet.CM{Attribute: packet.CMREQ, LocalComm: 0x666, QPN: 200, PSN: 0})                    // forged, under bob's address
	w.cm(0, packet.CM{Attribute: packet.CMREP, LocalComm: 7, RemoteComm: 0x666, QPN: 333, PSN: 0x444}) // genuine
	w.send(1, 333, packet.UC|packet.RCSendOnly, 0x444, 9)                                              // forged
	for i := range uint32(100) {
		w.send(0, 200, packet.UC|packet.RCSendOnly, i, 50005)
		w.send(1, 100, packet.UC|packet.RCSendOnly, i, 50005)
		if v := w.view(0, 200); v.Usable() && v.SourceQP() != 100 {
			t.Fatalf("packet %d comes from 100: %v", i, v)
		}
	}
}
