package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// The last value on either side of a bound, for bounds that no other test checks exactly.

// TestGapAtMost: after two packets in a row less than 2^16 PSNs ahead the connection continues; further ahead it is another one.
func TestGapAtMost(t *testing.T) {
	for ahead, reuses := range map[uint32]uint64{1<<16 - 1: 0, 1 << 16: 1} {
		w := newWire(t)
		w.connect(100, 200)
		w.talk(100, 200, psnB, 100, 7)
		w.send(0, 200, packet.RCSendOnly, psnB+99+ahead-1, 7)
		w.send(0, 200, packet.RCSendOnly, psnB+99+ahead, 7)
		if n := w.workers[0].counts.Reuses; n != reuses {
			t.Errorf("%d PSNs ahead: %d records ended, want %d", ahead, n, reuses)
		}
	}
}

// TestSteadyAfter: after 64 packets a port is steady, so another one is unexpected.
func TestSteadyAfter(t *testing.T) {
	for packets, steady := range map[uint32]bool{63: false, 64: true} {
		w := newWire(t)
		for n := range packets - 1 {
			w.send(0, 200, packet.RCSendOnly, 5+n, 7)
		}
		w.send(0, 200, packet.RCSendOnly, 5+packets, 8)
		if unexpected := w.flow(0, 200).lastUnexpected != 0; unexpected != steady {
			t.Errorf("after %d packets with one port another port is unexpected: %v, want %v", packets-1, unexpected, steady)
		}
	}
}

// TestSpan: a flow may go back, or be answered for, 2^20 PSNs behind its highest.
func TestSpan(t *testing.T) {
	w := newWire(t)
	for psn := uint32(0); psn <= 1<<20+512; psn += 32 {
		w.send(0, 200, packet.RCSendOnly, psn, 7)
	}
	a := w.at(0, 200)
	if got := a.Sent().Width(); got != 1<<20 {
		t.Errorf("%d PSNs, want 2^20", got)
	}
}

// TestClaimDelay: a claim of RDMA-CM counts if it comes in the millisecond of a flow's first packet, or in the next one.
func TestClaimDelay(t *testing.T) {
	for after, counts := range map[int64]bool{1: true, 2: false} {
		w := newWire(t)
		w.send(0, 200, packet.RCSendOnly, psnB, 7)
		w.now = synthEpoch + after*1e6
		w.connect(100, 200)
		f := w.flow(0, 200)
		f.seenCM = 0
		f.findClaim(w.now)
		if got := f.slot.Claim() != 0; got != counts {
			t.Errorf("a claim %d ms after the first packet counts: %v, want %v", after, got, counts)
		}
	}
}

// TestSecondREP: after the first REP another one makes no claim, whatever QP it names.
func TestSecondREP(t *testing.T) {
	w := newWire(t)
	w.connect(100, 200)
	claims := w.pairing.cm.Added()
	w.cm(1, packet.CM{Attribute: packet.CMREP, LocalComm: 1, RemoteComm: commA, QPN: 300, PSN: psnB})
	if n := w.pairing.cm.Added(); n != claims {
		t.Errorf("%d claims more", n-claims)
	}
}

// TestPortPointsElsewhere: a port points at a flow whose own port points at a third one, by the formula. They are no pair.
func TestPortPointsElsewhere(t *testing.T) {
	const port = 52769
	w := newWire(t)
	for _, f := range []struct {
		side int
		qp   uint32
	}{{0, 200}, {0, 300}, {1, 100}} {
		w.send(f.side, f.qp, packet.RCSendOnly, 5, 60000+uint16(f.qp))
		pl := w.at(f.side, f.qp)
		pl.SetIdentity(store.MakeIdentity(f.qp, port, false, false))
	}
	b := w.at(0, 300) // the port is the formula's of 200 and 100
	if pair := portRule(w.pairing.answers, &b.View); pair.formula || pair.equal {
		t.Errorf("%+v", pair)
	}
}

// TestFewPorts: an equal port of 11 bits confirms nothing, whatever PSNs say.
func TestFewPorts(t *testing.T) {
	for shared, want := range map[int]bool{16: true, 17: false} {
		w := many(t, 250)
		a, b := w.at(0, 1000), w.at(1, 5000)
		for _, pl := range []*store.Slot{&a, &b} {
			for n := range pl.Own() {
				o, _ := w.pairing.store.Slot(pl.Group(), pl.Side(), n)
				o.SetPortMark(store.PortEqual)
			}
			w.pairing.share(pl, shared)
		}
		*b.EditElimination() = store.Elimination{OnlyIs: uint16(a.Number() + 1), Agreeing: minAgreeing}
		if got := equalSure(&a.View, &b.View, &w.workers[0].ports); got != want {
			t.Errorf("%d of 250 share a port, %d bits: sure %v, want %v", shared, bitsOfPort(250, shared), got, want)
		}
	}
}

// TestFullSideIsSearchedOnce: a side with a flow in each slot is not searched again, for one that has ended, for a millisecond.
func TestFullSideIsSearchedOnce(t *testing.T) {
	w := newWire(t)
	for n := range uint32(store.SlotsASide) {
		w.send(0, 1000+n, packet.RCSendOnly, n, 50000)
	}
	w.send(0, 200, packet.RCSendOnly, 5, 52769)
	slot := w.at(0, 1000)
	g, p, now := slot.Group(), w.pairing.store, w.now
	for _, c := range []struct {
		after int64
		found bool
	}{{1e6 - 1, false}, {1e6, true}} {
		if _, got := p.Empty(g, 0, now+c.after, func(store.Ref) bool { return true }); got != c.found {
			t.Errorf("%d ns later a slot is found: %v, want %v", c.after, got, c.found)
		}
	}
}

// TestPSNRuleIsCharged: the comparisons of the PSN rule use budget.
func TestPSNRuleIsCharged(t *testing.T) {
	w, a, b := two(t)
	*b.EditElimination() = store.Elimination{OnlyIs: uint16(a.Number() + 1), Agreeing: minAgreeing}
	l := w.workers[1].Learner
	before := l.budget
	if v := l.weigh(&b); v.why != EvidencePSN {
		t.Fatalf("%v", v.why)
	}
	if spent := before - l.budget; spent != b.Own()+b.Others() {
		t.Errorf("%d comparisons, want %d", spent, b.Own()+b.Others())
	}
}
