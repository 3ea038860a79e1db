package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestBudget: a burst adds 512 comparisons, and at most 2048 are kept.
func TestBudget(t *testing.T) {
	w := newWire(t)
	l := w.workers[0].Learner
	for _, want := range []int{512, 1024, 1536, 2048, 2048} {
		if l.StartBurst(); l.budget != want {
			t.Errorf("a budget of %d, want %d", l.budget, want)
		}
	}
}

// TestNothingOnCredit: without a budget no packet causes a comparison, and a later packet has the effect instead.
func TestNothingOnCredit(t *testing.T) {
	for name, c := range map[string]struct {
		before func(w *wire)
		packet func(w *wire)
		done   func(w *wire) bool
	}{
		"a slot": {func(*wire) {}, func(w *wire) { w.send(0, 200, packet.RCSendOnly, 5, 52769) },
			func(w *wire) bool { _, ok := w.workers[0].slotOf(w.find(0, 200)); return ok }},
		"a judgement": {
			func(w *wire) {
				w.talk(100, 200, 5, 1, 7)
				w.workers[0].tracks[w.find(0, 200)].pace = 0
				w.workers[0].tracks[w.find(0, 200)].wait(1)
			},
			func(w *wire) { w.send(0, 200, packet.RCSendOnly, 6, 7) },
			func(w *wire) bool { return w.workers[0].tracks[w.find(0, 200)].pace > 1 }},
		"an elimination": {
			func(w *wire) {
				w.send(0, 200, packet.RCSendOnly, 0x1000, 7)
				w.send(1, 100, packet.RCAcknowledge, 0x1000, 7)
			},
			func(w *wire) { w.send(1, 100, packet.RCAcknowledge, 0x5000, 7) },
			func(w *wire) bool {
				a, b := w.at(0, 200), w.at(1, 100)
				return !b.May(a.Number()) || b.EditElimination().Retries > 0
			}},
		"a new beginning": {
			func(w *wire) { w.talk(100, 200, 5, 1, 7); w.send(0, 200, packet.RCSendOnly, 0x500000, 7) },
			func(w *wire) { w.send(0, 200, packet.RCSendOnly, 0x500001, 7) },
			func(w *wire) bool { a := w.at(0, 200); return a.Sent().First() != 5 }},
		"another connection": {
			func(w *wire) { w.talk(100, 200, 5, 10, 52769); w.send(0, 200, packet.RCSendOnly, 0x500000, 7) },
			func(w *wire) { w.send(0, 200, packet.RCSendOnly, 0x500001, 7) },
			func(w *wire) bool { return w.workers[0].counts.Reuses > 0 }},
		"a contradiction": {
			func(w *wire) { w.talk(100, 200, 5, 10, 52769); w.send(1, 100, packet.RCAcknowledge, 0x500000, 7) },
			func(w *wire) { w.send(1, 100, packet.RCAcknowledge, 0x500001, 7) },
			func(w *wire) bool { return w.workers[1].counts.Contradictions > 0 }},
		"a claim of RDMA-CM": {
			func(w *wire) { w.send(0, 200, packet.RCSendOnly, psnB, 7); w.connect(100, 200) },
			func(w *wire) { w.talk(100, 200, psnB, 3, 7) },
			func(w *wire) bool { a := w.at(0, 200); return a.Claim() != 0 }},
		"what was ruled out about a flow whose port moves": {
			func(w *wire) {
				w.send(1, 100, packet.RCAcknowledge, 0x900000, 7)
				w.send(0, 200, packet.RCSendOnly, 5, 7)
				pl := w.at(1, 100)
				pl.RuleOut(0, 1)
			},
			func(w *wire) { w.send(0, 200, packet.RCSendOnly, 6, 8) },
			func(w *wire) bool { pl := w.at(1, 100); return pl.May(0) }},
		"the connection after a DREQ": {
			func(w *wire) {
				w.connect(100, 200)
				w.talk(100, 200, psnB, 20, 7)
				w.release(1)
				w.cm(0, packet.CM{Attribute: packet.CMREQ, LocalComm: 0xccc, QPN: 100, PSN: 0x111111})
				w.cm(1, packet.CM{Attribute: packet.CMREP, LocalComm: 0xddd, RemoteComm: 0xccc, QPN: 200, PSN: 0x222222})
			},
			func(w *wire) { w.send(0, 200, packet.RCSendOnly, 0x222222, 7) },
			func(w *wire) bool { return w.view(0, 200).Ended() == Open }},
		"a CNP": {
			func(w *wire) { w.send(0, 200, packet.RCSendOnly, 5, 7) },
			func(w *wire) { w.cnp(1, 100) },
			func(w *wire) bool { return w.workers[1].counts.Evidence[EvidenceCNP] > 0 }},
	} {
		w := newWire(t)
		c.before(w)
		for _, l := range w.workers {
			l.budget = -1 << 20
		}
		for range 3 {
			c.packet(w)
			if c.done(w) {
				t.Errorf("%s: done without a budget", name)
			}
		}
		for _, l := range w.workers {
			l.budget = 0
		}
		for range 3 {
			c.packet(w)
		}
		if !c.done(w) {
			t.Errorf("%s: not done with a budget", name)
		}
	}
}

// TestCosts: the minimum cost of frames that anyone can send.
func TestCosts(t *testing.T) {
	for name, c := range map[string]struct {
		frame packet.Parsed
		least int
	}{
		"CNP": {packet.Parsed{Kind: packet.RoCEv2, Opcode: packet.CNP, DestQP: 100}, 64},
	} {
		w := newWire(t)
		for range 4 {
			w.workers[0].StartBurst()
		}
		w.frame(0, &c.frame, make([]byte, 64))
		if spent := 2048 - w.workers[0].budget; spent < c.least {
			t.Errorf("a %s takes %d, want at least %d", name, spent, c.least)
		}
		w.workers[0].budget = -1 << 20
		debt := w.workers[0].counts.Skipped
		if w.frame(0, &c.frame, make([]byte, 64)); w.workers[0].counts.Skipped == debt {
			t.Errorf("a %s is looked at without a budget", name)
		}
	}
	w := newWire(t)
	for range 4 {
		w.workers[0].StartBurst()
	}
	if w.cm(0, packet.CM{Attribute: packet.CMREQ, LocalComm: commA, QPN: 100, PSN: psnA}); w.workers[0].budget != 2048-128 {
		t.Errorf("a REQ leaves a budget of %d, want 128 less than 2048", w.workers[0].budget)
	}
}

// TestClosedRecordIsCharged: each packet of a released connection pays for the search of RDMA-CM's claims.
func TestClosedRecordIsCharged(t *testing.T) {
	w := newWire(t)
	w.connect(100, 200)
	w.talk(100, 200, psnB, 20, 7)
	w.release(1)
	l := w.workers[0].Learner
	for range 4 {
		l.StartBurst()
	}
	w.send(0, 200, packet.RCAcknowledge, psnA, 7)
	if spent := maxBudget - l.budget; spent != madCost/4 {
		t.Errorf("%d comparisons, want %d", spent, madCost/4)
	}
}

// TestCNPIsCharged: a CNP pays for the slots that it scans.
func TestCNPIsCharged(t *testing.T) {
	w := onlyInSlot8(t)
	l := w.workers[1].Learner
	for range 4 {
		l.StartBurst()
	}
	w.cnp(1, 100)
	if spent := maxBudget - l.budget; spent != cnpCost+9 {
		t.Errorf("%d comparisons, want %d", spent, cnpCost+9)
	}
}

// TestNoClaimNoJudgement: while another worker compares the flows of a group nobody else does.
func TestNoClaimNoJudgement(t *testing.T) {
	w := newWire(t)
	w.send(0, 200, packet.RCSendOnly, 5, 52769)
	w.send(1, 100, packet.RCAcknowledge, 4, 52769)
	a := w.at(0, 200)
	a.Group().Lock().Try()
	w.talk(100, 200, 6, 10, 52769)
	w.is(0, 200, 0, 0)
	a.Group().Lock().Release()
	w.talk(100, 200, 16, 4, 52769)
	w.is(0, 200, 100, EvidencePort)
}
