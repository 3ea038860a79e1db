package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestBudget: a burst brings 512 comparisons, and no more than 2048 are kept.
func TestBudget(t *testing.T) {
	w := newWire(t)
	l := w.workers[0].Learner
	for _, want := range []int{512, 1024, 1536, 2048, 2048} {
		if l.StartBurst(); l.budget != want {
			t.Errorf("a budget of %d, want %d", l.budget, want)
		}
	}
}

// TestNothingOnCredit: without a budget no packet has anything compared, and what it would have brought about comes with a later one.
func TestNothingOnCredit(t *testing.T) {
	for name, c := range map[string]struct {
		before func(w *wire)
		packet func(w *wire)
		done   func(w *wire) bool
	}{
		"a place": {func(*wire) {}, func(w *wire) { w.send(0, 200, packet.RCSendOnly, 5, 52769) },
			func(w *wire) bool { _, ok := w.workers[0].place(w.find(0, 200)); return ok }},
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
			func(w *wire) bool { a, b := w.at(0, 200), w.at(1, 100); return !b.may(a.n) || b.trial().retries > 0 }},
		"a new beginning": {
			func(w *wire) { w.talk(100, 200, 5, 1, 7); w.send(0, 200, packet.RCSendOnly, 0x500000, 7) },
			func(w *wire) { w.send(0, 200, packet.RCSendOnly, 0x500001, 7) },
			func(w *wire) bool { a := w.at(0, 200); return a.sent().first() != 5 }},
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
			func(w *wire) bool { a := w.at(0, 200); return a.said() != 0 }},
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

// TestCosts: what a frame that everyone can send takes at least.
func TestCosts(t *testing.T) {
	for name, c := range map[string]struct {
		frame packet.Parsed
		least int
	}{
		"CNP": {packet.Parsed{Kind: packet.RoCEv2, Opcode: packet.CNP, DestQP: 100, Ext: 12}, 64},
		"MAD": {packet.Parsed{Kind: packet.RoCEv2, Opcode: packet.UDSendOnly, DestQP: packet.GSIQP, SourceQP: packet.GSIQP, Ext: 12}, 128},
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
}

// TestNoClaimNoJudgement: while another worker compares the flows of a group nobody else does.
func TestNoClaimNoJudgement(t *testing.T) {
	w := newWire(t)
	w.send(0, 200, packet.RCSendOnly, 5, 52769)
	w.send(1, 100, packet.RCAcknowledge, 4, 52769)
	a := w.at(0, 200)
	a.g.learning.try()
	w.talk(100, 200, 6, 10, 52769)
	w.is(0, 200, 0, 0)
	a.g.learning.release()
	w.talk(100, 200, 16, 4, 52769)
	w.is(0, 200, 100, EvidencePort)
}
