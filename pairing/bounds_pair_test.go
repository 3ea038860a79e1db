package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// TestConfirm: the effect of a verdict on an existing answer, and whether the flow has the verdict's QP then.
func TestConfirm(t *testing.T) {
	confirmed := func(qp uint32, why Evidence) Answer { return makeAnswer(qp, Confirmed, why) }
	for _, c := range []struct {
		name   string
		before Answer
		why    Evidence
		after  Answer
		has    bool
	}{
		{"nothing known", 0, EvidencePSN, confirmed(7, EvidencePSN), true},
		{"a candidate", makeAnswer(8, Candidate, EvidenceCM), EvidencePSN, confirmed(7, EvidencePSN), true},
		{"the same by worse evidence", confirmed(7, EvidencePSN), EvidencePort, confirmed(7, EvidencePort), true},
		{"the same by better evidence", confirmed(7, EvidenceCM), EvidencePort, confirmed(7, EvidenceCM), true},
		{"another by worse evidence", confirmed(8, EvidencePSN), EvidencePort, confirmed(7, EvidencePort), true},
		{"another by better evidence", confirmed(8, EvidenceCM), EvidencePort, confirmed(8, EvidenceCM), false},
		{"another by as good evidence", confirmed(8, EvidencePort), EvidencePort, confirmed(8, EvidencePort), false},
		{"another by the packets themselves", confirmed(8, EvidenceDETH), EvidenceCM, confirmed(8, EvidenceDETH), false},
		{"another by the map", confirmed(8, EvidenceStatic), EvidenceCM, confirmed(8, EvidenceStatic), false},
		{"closed", confirmed(7, EvidencePSN).closed(EndedDREQ), EvidenceCM, confirmed(7, EvidencePSN).closed(EndedDREQ), false},
	} {
		w, a, _ := two(t)
		w.workers[0].setAnswer(w.find(0, 1000), c.before)
		if has := w.workers[0].confirm(a.Ref(), 7, c.why); has != c.has || w.view(0, 1000) != c.after {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, w.view(0, 1000), has, c.after, c.has)
		}
	}
}

// TestSuggest: a candidate replaces nothing better.
func TestSuggest(t *testing.T) {
	for name, c := range map[string]struct {
		before Answer
		paired bool
		want   bool
	}{
		"nothing known":     {0, false, true},
		"another candidate": {makeAnswer(8, Candidate, EvidenceCNP), false, true},
		"suspended":         {makeAnswer(8, Candidate, EvidenceCM), true, false},
		"confirmed":         {makeAnswer(8, Confirmed, EvidencePSN), false, false},
		"closed":            {makeAnswer(8, Candidate, EvidencePSN).closed(EndedDREQ), false, false},
	} {
		w, a, b := two(t)
		w.workers[0].setAnswer(w.find(0, 1000), c.before)
		if c.paired {
			a.Pair(&b, false)
		}
		w.pairing.answers.suggest(&a.View, 7, EvidencePort)
		want := c.before
		if c.want {
			want = makeAnswer(7, Candidate, EvidencePort)
		}
		if w.view(0, 1000) != want {
			t.Errorf("%s: %v, want %v", name, w.view(0, 1000), want)
		}
	}
}

// TestPair: a verdict about two flows when one has a peer flow, or better evidence for another one.
func TestPair(t *testing.T) {
	confirm := func(w *wire, side int, qp, source uint32, s State, why Evidence) {
		w.workers[side].setAnswer(w.find(side, qp), makeAnswer(source, s, why))
	}
	for name, c := range map[string]struct {
		before         func(w *wire, a, b, third *store.Slot)
		there, back    uint32 // what the flows to 1000 and 5000 are confirmed with
		contradictions uint64
	}{
		"free":                     {func(*wire, *store.Slot, *store.Slot, *store.Slot) {}, 5000, 1000, 0},
		"the requester's evidence": {func(w *wire, _, _, _ *store.Slot) { confirm(w, 0, 1000, 8, Confirmed, EvidenceCM) }, 8, 0, 0},
		"the responder's evidence": {func(w *wire, _, _, _ *store.Slot) { confirm(w, 1, 5000, 8, Confirmed, EvidenceCM) }, 0, 8, 0},
		"the requester has a peer flow": {func(w *wire, a, _, c *store.Slot) {
			a.Pair(c, false)
			confirm(w, 0, 1000, 5001, Confirmed, EvidencePSN)
		}, 5001, 0, 0},
		"the requester's is suspended": {func(w *wire, a, _, c *store.Slot) {
			a.Pair(c, false)
			confirm(w, 0, 1000, 5001, Candidate, EvidencePSN)
		}, 5000, 1000, 1},
		"its peer flow has gone": {func(w *wire, a, _, c *store.Slot) {
			a.Pair(c, false)
			reassign(c)
			confirm(w, 0, 1000, 5001, Confirmed, EvidencePSN)
		}, 5000, 1000, 0},
		"they are each other's already": {func(w *wire, a, b, _ *store.Slot) {
			a.Pair(b, false)
			confirm(w, 0, 1000, 5000, Confirmed, EvidencePSN)
		}, 5000, 1000, 0},
	} {
		w, a, b := two(t)
		w.send(1, 5001, packet.RCAcknowledge, 0x100, 50001)
		third := w.at(1, 5001)
		c.before(w, &a, &b, &third)
		w.workers[0].pair(&a, &b, a.Ref(), b.Ref(), EvidencePort, false)
		for side, want := range []uint32{c.there, c.back} {
			v := w.view(side, [2]uint32{1000, 5000}[side])
			if v.Usable() != (want != 0) || want != 0 && v.SourceQP() != want {
				t.Errorf("%s: the flow of side %d is %v, want it from %d", name, side, v, want)
			}
		}
		if n := w.workers[0].counts.Contradictions; n != c.contradictions {
			t.Errorf("%s: %d contradictions, want %d", name, n, c.contradictions)
		}
	}
}

// TestContradictOne: contradictions count against a flow, up to five. The evidence of its port and its responses is cleared.
func TestContradictOne(t *testing.T) {
	w, a, _ := two(t)
	for n := range 20 {
		a.SetPortMark(store.PortFormula)
		a.SetNext(0, 5|store.NoteBit)
		w.pairing.contradictOne(&a)
		if a.PortMark() != 0 || waitsFor(&a.View, 5) {
			t.Errorf("%d contradictions: its port and responses count", n+1)
		}
		if want := min(n+1, 5); int(a.EditElimination().Contradictions) != want {
			t.Errorf("%d contradictions: %d that count, want %d", n+1, a.EditElimination().Contradictions, want)
		}
	}
}

// reassign gives a slot to its flow again, as if to another one.
func reassign(s *store.Slot) {
	r := s.Ref()
	s.Vacate(r)
	s.Occupy(r, s.Identity(), 0, 0)
}

// TestLeases: a word of a slot belongs to the flow that had the slot when it was written.
func TestLeases(t *testing.T) {
	w, _, _ := paired(t, false)
	a, b := w.at(0, 200), w.at(1, 100)
	there, back := a.Link(), b.Link()
	if _, ok := a.LinkedPeer(there); !ok || !a.SentBy(back.Lease()).Valid() || !b.AckBy(there.Lease()).Valid() || !a.Sent().Valid() || !b.Ack().Valid() {
		t.Fatal("the pair's words are not valid")
	}
	before := there + 1<<9 // of the next lease
	if _, ok := a.LinkedPeer(before); ok || a.SentBy(before.Lease()) != 0 || b.AckBy(before.Lease()) != 0 {
		t.Error("words of another lease are accepted")
	}
	sent, ack := store.MakeSent(1, 1, a.Lease()), store.MakeAck(1, b.Lease())
	reassign(&a)
	reassign(&b)
	a.PublishSent(a.Lease(), sent)
	b.PublishAck(b.Lease(), ack)
	a.ChangeLink(0, there)
	if a.Sent().Valid() || b.Ack().Valid() {
		t.Error("words of the flow that had the slot before are accepted")
	}
	if _, ok := a.Peer(); ok {
		t.Error("a flow is paired with one that has gone")
	}
}

// TestPeerEnds: a flow whose peer flow has ended is no longer confirmed by it.
func TestPeerEnds(t *testing.T) {
	w, next, _ := paired(t, false)
	w.workers[1].Renew(w.find(1, 100), w.now)
	for i := range uint32(coarse) {
		w.send(0, 200, packet.RCSendOnly, next+i, 7)
	}
	w.is(0, 200, 0, 0)
}

// TestWhatEndsAClaim: RDMA-CM's claim ends when data of another connection comes with another UDP source port.
func TestWhatEndsAClaim(t *testing.T) {
	for _, c := range []struct {
		side int
		op   packet.Opcode
		port uint16
		kept bool
	}{{0, packet.RCSendOnly, 8, false}, {0, packet.RCSendOnly, 7, false}, {1, packet.RCAcknowledge, 8, false}, {1, packet.RCAcknowledge, 7, true}} {
		w, _, _ := paired(t, false)
		qp := [2]uint32{200, 100}[c.side]
		for i := range uint32(2) {
			w.send(c.side, qp, c.op, 0x700000+i, c.port)
		}
		for side, qp := range []uint32{200, 100} {
			if _, ok, _ := w.claimOf(side, qp, psnB); ok != c.kept {
				t.Errorf("two packets to QP %d with port %d: the claim about the flow of side %d is there: %v", qp, c.port, side, ok)
			}
		}
		if a := w.at(c.side, qp); a.Claim() != 0 && !c.kept {
			t.Errorf("two packets to QP %d with port %d: the flow reads %+v", qp, c.port, a.Claim())
		}
	}
}

// TestFixedStays: no packet suspends a flow with a QP of a map, and a new map changes no closed record.
func TestFixedStays(t *testing.T) {
	m, err := NewQPMap([]QPPair{{Source: alice, Destination: bob, SourceQP: 100, DestinationQP: 200}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	w, _, _ := paired(t, false)
	w.release(0)
	closed := w.view(0, 200)
	w.setStatic(m)
	w.sweep()
	if w.view(0, 200) != closed {
		t.Errorf("the closed record is %v, was %v", w.view(0, 200), closed)
	}
	w = newWire(t)
	w.setStatic(m)
	w.sweep()
	w.talk(100, 200, 5, 100, 7)
	s := flow{l: w.workers[0].Learner, index: w.find(0, 200)}
	for _, do := range []func(){s.suspend, func() { w.send(0, 200, packet.RCSendOnly, 0x700000, 9) }, func() { w.send(0, 200, packet.RCSendOnly, 0x700001, 9) }} {
		do()
		w.is(0, 200, 100, EvidenceStatic)
	}
}

// TestCNPOfSeveralFlows: it is no evidence about any of them.
func TestCNPOfSeveralFlows(t *testing.T) {
	w := newWire(t)
	w.send(0, 200, packet.RCWriteOnly, 5, 50000)
	w.send(0, 201, packet.RCWriteOnly, 5, 50000)
	w.cnp(1, 101)
	for _, qp := range []uint32{200, 201} {
		if a := w.view(0, qp); a != 0 {
			t.Errorf("the flow to QP %d is %v", qp, a)
		}
	}
}

// onlyInSlot8 is a side with one flow, to QP 208, in a slot on its second page.
func onlyInSlot8(t *testing.T) *wire {
	w := newWire(t)
	for i := range uint32(9) {
		w.send(0, 200+i, packet.RCWriteOnly, 5, 50000)
	}
	for i := range uint32(8) {
		pl := w.at(0, 200+i)
		pl.Vacate(pl.Ref())
	}
	if pl := w.at(0, 208); pl.Number() != 8 || pl.Group().Flows(0) != 1 {
		t.Fatalf("slot %d, of %d flows", pl.Number(), pl.Group().Flows(0))
	}
	return w
}

// TestCNPOfTheOnlyFlow: wherever its slot is.
func TestCNPOfTheOnlyFlow(t *testing.T) {
	w := onlyInSlot8(t)
	w.cnp(1, 100)
	if v := w.view(0, 208); v.State() != Candidate || v.SourceQP() != 100 || v.Evidence() != EvidenceCNP {
		t.Errorf("%v", v)
	}
}

// TestCNPSkipped: a CNP that is left out because another worker holds the group's lock is counted.
func TestCNPSkipped(t *testing.T) {
	w := newWire(t)
	w.send(0, 200, packet.RCWriteOnly, 5, 50000)
	pl := w.at(0, 200)
	pl.Group().Lock().Try()
	w.cnp(1, 100)
	if n := w.workers[1].counts.Skipped; n != 1 {
		t.Errorf("%d are counted, want 1", n)
	}
}
