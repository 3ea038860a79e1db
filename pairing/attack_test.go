package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// Forged and stale messages of RDMA-CM and forged data must not have these effects.

// Someone sends a REQ with bob's address and a QP of bob's that is in use, and alice's listener answers it with a genuine REP. The live
// connection keeps its QPs.
func TestForgedREQForALiveQP(t *testing.T) {
	for name, c := range map[string]struct {
		live func(w *wire)
		why  Evidence
		port uint16
	}{
		"confirmed by RDMA-CM":  {func(w *wire) { w.connect(100, 200); w.talk(100, 200, psnB, 100, 7) }, EvidenceCM, 7},
		"confirmed by its port": {func(w *wire) { w.talk(100, 200, psnB, 100, 52769) }, EvidencePort, 52769},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			c.live(w)
			w.is(0, 200, 100, c.why)
			for i := range uint32(500) {
				if i%100 == 0 { // with a PSN in flight, too
					w.cm(1, packet.CM{Attribute: packet.CMREQ, LocalComm: 0x666 + i, QPN: 200, PSN: psnB + 100 + i})
					w.cm(0, packet.CM{Attribute: packet.CMREP, LocalComm: 0x777 + i, RemoteComm: 0x666 + i, QPN: 3000 + i, PSN: 0x444444})
				}
				w.talk(100, 200, psnB+100+i, 1, c.port)
				w.is(0, 200, 100, c.why)
				w.is(1, 100, 200, c.why)
			}
		})
	}
}

// REQ and REP name QPs that a connection gets 30 s later. Its data doesn't begin where they claim, so they are no evidence about it.
func TestForgedConnectionAhead(t *testing.T) {
	w := newWire(t)
	w.cm(1, packet.CM{Attribute: packet.CMREQ, LocalComm: 0x666, QPN: 200, PSN: 0x123456})
	w.cm(0, packet.CM{Attribute: packet.CMREP, LocalComm: 0x777, RemoteComm: 0x666, QPN: 333, PSN: 0x654321})
	w.now += 30e9
	for i := range uint32(300) {
		w.talk(100, 200, 5+i, 1, 52769)
		w.is(0, 200, 100, EvidencePort)
		w.is(1, 100, 200, EvidencePort)
	}
}

// The gateway has not seen the DREQ. The QP now serves a connection that was set up without RDMA-CM. It has another UDP source port, PSNs near
// the old ones, and its acknowledgements go to another QP.
func TestReuseAfterAnUnseenDREQ(t *testing.T) {
	for _, c := range []struct {
		name  string
		ahead uint32 // of where the old connection ended
	}{{"goes on", 0}, {"within the gap", 30}, {"beyond the gap", 1000}, {"within 2^16", 60_000}, {"begins where the old one did", packet.PSNMask + 1 - 200}} {
		t.Run(c.name, func(t *testing.T) {
			w := newWire(t)
			w.connect(100, 200)
			w.talk(100, 200, psnB, 200, 7)
			w.is(0, 200, 100, EvidenceCM)
			old := w.view(0, 200)
			port := packet.SourcePort(101, 200)
			for i := range uint32(300) {
				psn := (psnB + 200 + c.ahead + i) & packet.PSNMask
				w.send(0, 200, packet.RCSendOnly, psn, port)
				if a := w.view(0, 200); a.Usable() && a.SourceQP() != 101 {
					t.Fatalf("packet %d: %v, as before: %v", i, a, old)
				}
				w.send(1, 101, packet.RCAcknowledge, psn, port)
				if a := w.view(1, 101); a.Usable() && a.SourceQP() != 200 {
					t.Fatalf("response %d: %v", i, a)
				}
			}
			w.is(0, 200, 101, EvidencePort)
			w.is(1, 101, 200, EvidencePort)
		})
	}
}

// The same, but the new connection has the old one's port, and begins at the same PSN. The only sign, which is enough, is that the old QP
// no longer answers.
func TestReuseWithTheSamePort(t *testing.T) {
	w := newWire(t)
	w.connect(100, 200)
	w.talk(100, 200, psnB, 200, 7)
	w.is(0, 200, 100, EvidenceCM)
	for i := range uint32(1000) {
		w.send(0, 200, packet.RCSendOnly, psnB+i, 7)
		w.is(0, 200, 0, 0)
		w.send(1, 101, packet.RCAcknowledge, psnB+i, 7)
	}
}

// Two forged requests that go together end a flow's record. The flow is then learned as fast as at first.
func TestLearnedAgain(t *testing.T) {
	w := newWire(t)
	w.talk(100, 200, 5, 100, 52769)
	for i := range uint32(50) {
		w.send(0, 200, packet.RCSendOnly, 0x700000+i*0x1000, 50001)
		w.send(0, 200, packet.RCSendOnly, 0x700001+i*0x1000, 50001)
		w.is(0, 200, 0, 0)
		before := w.workers[0].counts.Confirmed[EvidencePort]
		w.talk(100, 200, 105+4*i, 4, 52769) // the first two end the record that the forged ones began
		w.is(0, 200, 100, EvidencePort)
		w.is(1, 100, 200, EvidencePort)
		if w.workers[0].counts.Confirmed[EvidencePort]+w.workers[1].counts.Confirmed[EvidencePort] == before {
			t.Fatal("the flow was known all the time: nothing was shown")
		}
	}
}

// After contradictions a pair needs more evidence, but never so much that it can't be confirmed again.
func TestContradictedForEver(t *testing.T) {
	w := newWire(t)
	psn := uint32(5)
	w.talk(100, 200, psn, 100, 52769)
	psn += 100
	for range 20 {
		w.send(1, 100, packet.RCAcknowledge, psn+0x300000, 52769)
		w.send(1, 100, packet.RCAcknowledge, psn+0x300001, 52769)
		w.is(0, 200, 0, 0)
		w.talk(100, 200, psn, 1<<maxContradictions, 52769)
		psn += 1 << maxContradictions
		w.is(0, 200, 100, EvidencePort)
		w.is(1, 100, 200, EvidencePort)
	}
}

// A verdict applies to the flows that had the slots when it was made. If one of them ends before the verdict is applied, and another flow
// gets its index, then neither that flow nor the other flow of the pair changes.
func TestVerdictAboutAFlowThatEnded(t *testing.T) {
	for _, side := range []int{0, 1} {
		w := newWire(t)
		w.send(0, 200, packet.RCSendOnly, 5, 52769)
		w.send(1, 100, packet.RCAcknowledge, 6, 52769) // doesn't agree
		w.is(0, 200, 0, 0)
		var slotSet [2]store.Slot
		var refs [2]store.Ref
		for i, qp := range []uint32{200, 100} {
			x := w.find(i, qp)
			slotSet[i], _ = w.workers[i].slotOf(x)
			refs[i] = w.workers[i].ref(x)
		}
		qp := []uint32{200, 100}[side]
		x := w.find(side, qp)
		w.workers[side].Renew(x, w.now) // the same index and key, another flow
		w.send(side, qp, packet.RCSendOnly, 0x70000, 40000)
		w.workers[1].pair(&slotSet[1], &slotSet[0], refs[1], refs[0], EvidencePort, true)
		for i, qp := range []uint32{200, 100} {
			if a := w.view(i, qp); a.State() == Confirmed {
				t.Errorf("side %d's flow has ended, and side %d's is %v", side, i, a)
			}
		}
	}
}

// While one worker compares the flows between two hosts, no other worker gives away their slots.
func TestSlotsStayWhileTheyAreCompared(t *testing.T) {
	w := newWire(t)
	w.send(0, 200, packet.RCSendOnly, 5, 52769)
	pl, _ := w.workers[0].slotOf(w.find(0, 200))
	if !pl.Group().Lock().Try() {
		t.Fatal("another worker holds the group's lock")
	}
	w.workers[0].setAnswer(w.find(0, 200), makeAnswer(100, Confirmed, EvidenceCM).closed(EndedReuse)) // its slot may be given away
	before := pl.Lease()
	for i := range uint32(2 * store.SlotsASide) {
		w.send(0, 1000+i, packet.RCSendOnly, 5, 52769)
		w.send(1, 1000+i, packet.RCAcknowledge, 5, 52769)
	}
	if pl.Ref() == 0 || before != pl.Lease() || pl.Own() != 1 || pl.Others() != 0 {
		t.Errorf("%d and %d slots are in use, the first one by %x", pl.Own(), pl.Others(), pl.Ref())
	}
	pl.Group().Lock().Release()
}

// Tenants are separate even if their VLANs differ only in the TPID of the tag: flows with different tags are in different groups, so
// RDMA-CM's claims in one VLAN don't count in the other.
func TestTenantsAreApart(t *testing.T) {
	p, err := New(make([]byte, Size(16)), Config{Flows: 16, Egress: []int{1, 0}})
	if err != nil {
		t.Fatal(err)
	}
	k := flowtable.Key{Src: alice, Dst: bob, DestQP: 200}
	seen := map[store.Key]bool{}
	for _, tags := range [][2]packet.Tag{{}, {0x1005}, {0x2005}, {0x1005, 0x1005}, {0x2005, 0x1005}, {0x2005, 0x2005}} {
		k.OuterTag, k.InnerTag = tags[0], tags[1]
		g, _ := p.groupOf(&k)
		if seen[g] {
			t.Errorf("tags %v: the group of others", tags)
		}
		seen[g] = true
	}
}

// The same, with requests both ways: if the new connection answers a PSN that the old one had not answered, that doesn't show that the old
// one continues.
func TestReuseWithTheSamePortBothWays(t *testing.T) {
	const start, requests, pending = 0x900, 500, 110
	w := requestsBothWays(t, start, requests, pending)
	w.send(0, 200, packet.RCSendOnly, psnB, 7)
	for i := range uint32(requests) {
		w.is(0, 200, 0, 0)
		w.send(0, 200, packet.RCAcknowledge, start+i, 7)
	}
}

// The PSNs for which a flow asks while it is paired are not recorded. When it is learned again, that gap is no rhythm that would
// distinguish it from other flows: after 20,000 PSNs an ACK to one of them is 24-15 bits of evidence, and among 16 flows the chance is
// 2^-17.
func TestGapIsNoRhythm(t *testing.T) {
	const flows = 16
	w := newWire(t)
	for k := range uint32(20_000) {
		w.lockstep(flows, k)
	}
	w.is(0, 1000, 5000, EvidencePSN)
	w.send(1, 5000, packet.RCAcknowledge, 0x300000, 50000)
	w.send(1, 5000, packet.RCAcknowledge, 0x300001, 50000)
	for k := range uint32(300) {
		w.lockstep(flows, 20_000+k)
		w.is(0, 1000, 0, 0)
	}
}

// A forged request to a QP that has only had responses doesn't prevent that the connection is confirmed. One before the connection's first
// packet does, until the true port has been steady for some hundred packets.
func TestForgedRequestFirst(t *testing.T) {
	for _, c := range []struct{ answers, packets int }{{1, 3}, {0, 600}} {
		w := newWire(t)
		for range c.answers {
			w.send(1, 100, packet.RCAcknowledge, 4, 52769)
		}
		w.send(1, 100, packet.RCSendOnly, 0x700000, 51217)
		w.talk(100, 200, 5, c.packets, 52769)
		w.is(0, 200, 100, EvidencePort)
		w.is(1, 100, 200, EvidencePort)
		if a := w.at(1, 100); c.answers > 0 && a.Sent().Valid() {
			t.Error("the forged request counts as one of the flow's")
		}
	}
}

// A forged response far ahead doesn't prevent that the connection is confirmed.
func TestForgedResponseAhead(t *testing.T) {
	w := newWire(t)
	w.send(0, 200, packet.RCSendOnly, 5, 52769)
	w.send(1, 100, packet.RCAcknowledge, 0x700000, 52769)
	w.talk(100, 200, 6, 3, 52769)
	w.is(0, 200, 100, EvidencePort)
	w.is(1, 100, 200, EvidencePort)
}

// A packet that may be another connection's first one causes no verdict about its flow: the evidence is about the old connection.
func TestNoVerdictAtAnOddPacket(t *testing.T) {
	w := newWire(t)
	w.send(0, 300, packet.RCSendOnly, 0x400000, 52769) // a third flow with the port: no verdict
	w.talk(100, 200, 5, 70, 52769)
	w.is(0, 200, 0, 0)
	third := w.at(0, 300)
	third.Vacate(third.Ref())
	w.workers[0].tracks[w.find(0, 200)].wait(0)
	w.send(0, 200, packet.RCSendOnly, 0x700000, 9)
	w.is(0, 200, 0, 0)
	w.talk(100, 200, 75, 2, 52769)
	w.is(0, 200, 100, EvidencePort)
}
