package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/store"
)

func TestEqualSure(t *testing.T) {
	agree := func(a, b *store.Slot) {
		*b.EditElimination() = store.Elimination{OnlyIs: uint16(a.Number() + 1), Agreeing: minAgreeing}
	}
	for name, c := range map[string]struct {
		change func(p *Pairing, a, b *store.Slot)
		want   bool
	}{
		"sure":                        {func(*Pairing, *store.Slot, *store.Slot) {}, true},
		"ruled out one way":           {func(_ *Pairing, a, b *store.Slot) { a.RuleOut(b.Number()/64, 1<<(b.Number()%64)) }, false},
		"ruled out the other way":     {func(_ *Pairing, a, b *store.Slot) { b.RuleOut(a.Number()/64, 1<<(a.Number()%64)) }, false},
		"no requests":                 {func(_ *Pairing, a, _ *store.Slot) { a.PublishSent(a.Lease(), store.Sent(a.Lease())<<49) }, false},
		"an answer to something else": {func(_ *Pairing, _, b *store.Slot) { b.PublishAck(b.Lease(), store.MakeAck(5, b.Lease())) }, false},
		"requests back, not answered": {func(_ *Pairing, _, b *store.Slot) { b.PublishSent(b.Lease(), store.MakeSent(5, 5, b.Lease())) }, false},
		"few ports on one side":       {func(p *Pairing, a, b *store.Slot) { agree(a, b); p.share(a, 3) }, false},
		"few ports on the other side": {func(p *Pairing, a, b *store.Slot) { agree(a, b); p.share(b, 3) }, false},
		"no partners found":           {func(p *Pairing, a, _ *store.Slot) { p.unmatched(a, 64) }, false},
		"few partners found":          {func(p *Pairing, a, _ *store.Slot) { p.unmatched(a, 56) }, false},
	} {
		w := many(t, 64)
		a, b := w.at(0, 1000), w.at(1, 5000)
		for _, pl := range []*store.Slot{&a, &b} {
			for n := range pl.Own() {
				o, _ := w.pairing.store.Slot(pl.Group(), pl.Side(), n)
				o.SetPortMark(store.PortEqual)
			}
		}
		c.change(w.pairing, &a, &b)
		if got := equalSure(&a.View, &b.View, &w.workers[0].ports); got != c.want {
			t.Errorf("%s: sure %v, want %v", name, got, c.want)
		}
	}
}

// share gives this many flows of a side shared ports, two to three each. unmatched marks this many as having no port in common with the
// other side.
func (p *Pairing) share(pl *store.Slot, flows int) {
	for n := range flows {
		o, _ := p.store.Slot(pl.Group(), pl.Side(), pl.Own()-1-n)
		o.SetIdentity(store.MakeIdentity(o.Identity().QP(), uint16(max(min(n, flows-2)/2, 0)), false, false))
	}
}

func (p *Pairing) unmatched(pl *store.Slot, flows int) {
	for n := range flows {
		o, _ := p.store.Slot(pl.Group(), pl.Side(), pl.Own()-1-n)
		o.SetPortMark(0)
	}
}

// TestPortMatch: which flow of the other side fits a port.
func TestPortMatch(t *testing.T) {
	const port, fits, fitsToo, other = 52769, 100, 11405, 101
	type flow struct {
		qp                                   uint32
		varies, unreliable, ruledOut, paired bool
	}
	for _, c := range []struct {
		name    string
		varies  bool
		flows   []flow
		want    int
		formula bool
	}{
		{"fits", false, []flow{{qp: fits}}, 0, true},
		{"its port varies", true, []flow{{qp: fits}}, -1, false},
		{"the other's port varies", false, []flow{{qp: fits, varies: true}}, -1, false},
		{"the other is UC", false, []flow{{qp: fits, unreliable: true}}, -1, false},
		{"fits, but ruled out", false, []flow{{qp: fits, ruledOut: true}}, 0, true},
		{"equal", false, []flow{{qp: other}}, 0, false},
		{"equal, but ruled out", false, []flow{{qp: other, ruledOut: true}}, -1, false},
		{"equal, but paired", false, []flow{{qp: other, paired: true}}, -1, false},
		{"two equal", false, []flow{{qp: other}, {qp: other + 1}}, -1, false},
		{"two equal, one paired", false, []flow{{qp: other, paired: true}, {qp: other + 1}}, 1, false},
		{"one fits, one equal", false, []flow{{qp: other}, {qp: fits}}, 1, true},
		{"two fit", false, []flow{{qp: fits}, {qp: fitsToo}}, -1, false},
		{"two fit, one ruled out", false, []flow{{qp: fits, ruledOut: true}, {qp: fitsToo}}, 1, true},
		{"two fit, one paired", false, []flow{{qp: fits, paired: true}, {qp: fitsToo}}, -1, false},
	} {
		w := newWire(t)
		w.send(0, 200, packet.RCSendOnly, 5, 60000)
		w.send(0, 300, packet.RCSendOnly, 5, 60001)
		a, peer := w.at(0, 200), w.at(0, 300)
		a.SetIdentity(store.MakeIdentity(200, port, c.varies, false))
		for i, f := range c.flows {
			w.send(1, f.qp, packet.RCSendOnly, 0x5000, 60002+uint16(i))
			b := w.at(1, f.qp)
			b.SetIdentity(store.MakeIdentity(f.qp, port, f.varies, f.unreliable))
			if f.ruledOut {
				b.RuleOut(a.Number()/64, 1<<(a.Number()%64))
			}
			if f.paired {
				b.Pair(&peer, false)
			}
		}
		if m := matchPort(&a.View); m.n != c.want || m.formula != c.formula {
			t.Errorf("%s: flow %d, by the formula %v; want %d, %v", c.name, m.n, m.formula, c.want, c.formula)
		}
	}
}

// TestPSNRule: the only flow that can have sent the request is the peer flow, if no other flow can be.
func TestPSNRule(t *testing.T) {
	confirm := func(w *wire, g *store.Slot, s State) {
		w.pairing.answers.change(g.Ref(), func(Answer) Answer { return makeAnswer(1001, s, EvidencePSN) })
	}
	for name, c := range map[string]struct {
		change func(w *wire, a, b *store.Slot) // requester and responder
		want   bool
	}{
		"alone":              {func(*wire, *store.Slot, *store.Slot) {}, true},
		"too few responses":  {func(_ *wire, _, b *store.Slot) { b.EditElimination().Agreeing = 3 }, false},
		"ruled out":          {func(_ *wire, a, b *store.Slot) { a.RuleOut(b.Number()/64, 1<<(b.Number()%64)) }, false},
		"another may answer": {func(w *wire, _, _ *store.Slot) { w.send(1, 5001, packet.RCAcknowledge, 0x500000, 60001) }, false},
		"another, ruled out": {func(w *wire, a, _ *store.Slot) {
			w.send(1, 5001, packet.RCAcknowledge, 0x500000, 60001)
			g := w.at(1, 5001)
			g.RuleOut(a.Number()/64, 1<<(a.Number()%64))
		}, true},
		"another, which is paired": {func(w *wire, _, _ *store.Slot) {
			w.send(1, 5001, packet.RCAcknowledge, 0x500000, 60001)
			g, f := w.at(1, 5001), w.at(0, 1001)
			g.Pair(&f, false)
			confirm(w, &g, Confirmed)
		}, true},
		"another, whose pair is suspended": {func(w *wire, _, _ *store.Slot) {
			w.send(1, 5001, packet.RCAcknowledge, 0x500000, 60001)
			g, f := w.at(1, 5001), w.at(0, 1001)
			g.Pair(&f, false)
			confirm(w, &g, Candidate)
		}, false},
		"its peer flow, which is suspended": {func(w *wire, a, _ *store.Slot) {
			w.send(1, 5001, packet.RCAcknowledge, 0x500000, 60001)
			g := w.at(1, 5001)
			g.Pair(a, false)
			confirm(w, &g, Candidate)
		}, false},
		"requests back, not answered": {func(_ *wire, _, b *store.Slot) { b.PublishSent(b.Lease(), store.MakeSent(5, 5, b.Lease())) }, false},
		"requests back, answered": {func(_ *wire, a, b *store.Slot) {
			b.PublishSent(b.Lease(), store.MakeSent(5, 5, b.Lease()))
			a.PublishAck(a.Lease(), store.MakeAck(5, a.Lease()))
			a.EditElimination().OnlyIs = uint16(b.Number() + 1)
		}, true},
		"requests back, answered by two": {func(_ *wire, a, b *store.Slot) {
			b.PublishSent(b.Lease(), store.MakeSent(5, 5, b.Lease()))
			a.PublishAck(a.Lease(), store.MakeAck(5, a.Lease()))
		}, false},
	} {
		w := newWire(t)
		w.send(0, 1000, packet.RCSendOnly, 0x500000, 50000)
		w.send(0, 1001, packet.RCSendOnly, 0x900000, 50001)
		w.send(1, 5000, packet.RCAcknowledge, 0x500000, 60000)
		a, b := w.at(0, 1000), w.at(1, 5000)
		*b.EditElimination() = store.Elimination{OnlyIs: uint16(a.Number() + 1), Agreeing: 4}
		c.change(w, &a, &b)
		if _, ok := psnRule(w.pairing.answers, &b.View); ok != c.want {
			t.Errorf("%s: %v, want %v", name, ok, c.want)
		}
	}
}

// TestElimination: what a response adds to the evidence.
func TestElimination(t *testing.T) {
	before := store.Elimination{OnlyIs: 8, Width: 7, Agreeing: 9, Exact: 5, Retries: 1, Contradictions: 2, Plausible: 3}
	for _, c := range []struct {
		name string
		scan scan
		want [4]uint16 // OnlyIs, width, agreeing, exact
	}{
		{"nobody is left", scan{fresh: true}, [4]uint16{}},
		{"two are left", scan{fresh: true, left: 2, only: 7}, [4]uint16{}},
		{"another is left", scan{fresh: true, left: 1, only: 3, width: 15}, [4]uint16{4, 4, 1, 0}},
		{"the same", scan{fresh: true, left: 1, only: 7, width: 1 << 20}, [4]uint16{8, 7, 10, 5}},
		{"to less than others", scan{left: 1, only: 7}, [4]uint16{8, 7, 9, 5}},
		{"asked for", scan{fresh: true, left: 1, only: 7, asked: yes}, [4]uint16{8, 7, 10, 6}},
		{"not asked for", scan{fresh: true, left: 1, only: 7, asked: no}, [4]uint16{8, 7, 10, 0}},
	} {
		got := before
		c.scan.result(&got)
		if a := [4]uint16{got.OnlyIs, uint16(got.Width), uint16(got.Agreeing), uint16(got.Exact)}; a != c.want {
			t.Errorf("%s: %v, want %v", c.name, a, c.want)
		}
	}
	got := before
	if (&scan{fresh: true}).result(&got); got.Plausible != 0 {
		t.Error("a response that nobody asked for leaves the earlier ones plausible")
	}
	got = before
	if got.Restart(); got != (store.Elimination{Retries: 1, Contradictions: 2}) {
		t.Errorf("begun again: %+v", got)
	}
}

// TestExhausted: all flows become possible again after 0, 1, 3, 7 responses, and so on up to 4095.
func TestExhausted(t *testing.T) {
	_, _, b := two(t)
	none := func() bool { return b.Row(0)|b.Row(1)|b.Row(2)|b.Row(3) == 0 }
	for n := range 14 {
		want, waited := 1<<min(n, 12)-1, 0
		for w := range store.SlotsASide / 64 {
			b.RuleOut(w, ^uint64(0))
		}
		for ; none(); waited++ {
			exhausted(&b)
		}
		if waited-1 != want || b.EditElimination().Retries != uint8(min(n+1, 12)) {
			t.Errorf("time %d: after %d responses and %d retries, want %d", n, waited-1, b.EditElimination().Retries, want)
		}
	}
}

// TestSameResponseAgain: a repeated response is no new evidence.
func TestSameResponseAgain(t *testing.T) {
	w := newWire(t)
	w.send(0, 1000, packet.RCSendOnly, 0x500000, 50000)
	for range 2 * minAgreeing {
		w.send(1, 5000, packet.RCAcknowledge, 0x500000, 60000)
	}
	b := w.at(1, 5000)
	if b.EditElimination().Agreeing != 1 {
		t.Errorf("%d responses agree, want 1", b.EditElimination().Agreeing)
	}
}

// TestStartOver: nothing of the flow's earlier connection is left, and RDMA-CM's claims are searched again.
func TestStartOver(t *testing.T) {
	w := newWire(t)
	w.connect(100, 200)
	w.talk(100, 200, psnB+1000, 20, 7) // doesn't begin where RDMA-CM claims
	a := w.at(0, 200)
	if a.Claim() == 0 {
		t.Fatal("no claim")
	}
	key := w.key(0, 200)
	g, side := w.pairing.groupOf(&key)
	h := w.pairing.hashOf(&g)
	w.pairing.cm.Remove(h, [2]uint32{100, 200}, w.pairing.cm.Claim(h, side, 200, 100).Time)
	w.send(0, 200, packet.RCSendOnly, 0x800000, 8)
	w.send(0, 200, packet.RCSendOnly, 0x800001, 8)
	if a.Claim() != 0 || a.Ack().Valid() || a.Sent().First() != 0x800001 {
		t.Errorf("claim %x, responses %x, requests %x", a.Claim(), a.Ack(), a.Sent())
	}
	w = newWire(t)
	w.connect(100, 200)
	w.talk(100, 200, 0x5000, 20, 7)
	w.talk(100, 200, psnB-1, 20, 7) // the first packet doesn't count
	w.is(0, 200, 100, EvidenceCM)
}

// TestForget: clears what a flow's responses ruled out, what was ruled out about it, and the evidence for it; with a new connection, also
// its responses.
func TestForget(t *testing.T) {
	for name, forget := range map[string]func(w *wire, a *store.Slot){
		"forgotten": func(_ *wire, a *store.Slot) { a.Forget() },
		"a new beginning": func(w *wire, _ *store.Slot) {
			w.send(0, 1000, packet.RCSendOnly, 0x800000, 50000)
			w.send(0, 1000, packet.RCSendOnly, 0x800001, 50000)
			if a := w.at(0, 1000); a.Ack().Valid() || a.Sent().First() != 0x800001 {
				t.Errorf("begins anew with %x and %x", a.Ack(), a.Sent())
			}
		},
		"another port": func(w *wire, _ *store.Slot) { w.send(0, 1000, packet.RCSendOnly, 0x500001, 50001) },
	} {
		w, a, b := two(t)
		a.PublishAck(a.Lease(), store.MakeAck(5, a.Lease()))
		a.RuleOut(0, ^uint64(0))
		b.RuleOut(0, ^uint64(0))
		*b.EditElimination() = store.Elimination{OnlyIs: uint16(a.Number() + 1), Agreeing: 9, Contradictions: 1}
		forget(w, &a)
		if !a.May(b.Number()) || !b.May(a.Number()) || b.EditElimination().Agreeing != 0 || b.EditElimination().Contradictions != 1 {
			t.Errorf("%s: %v, %v, %+v", name, a.May(b.Number()), b.May(a.Number()), b.EditElimination())
		}
	}
}

// TestPortRule: whether third flows have the port of a pair by the formula, and how many.
func TestPortRule(t *testing.T) {
	const port = 52769
	for _, c := range []struct {
		others     [2]int // flows with the port besides, by side
		varies     bool   // their port has changed of late
		alone, few bool
	}{
		{[2]int{0, 0}, false, true, true},
		{[2]int{1, 0}, false, false, true},
		{[2]int{0, 1}, false, false, true},
		{[2]int{2, 0}, false, false, false},
		{[2]int{0, 2}, false, false, false},
		{[2]int{1, 0}, true, false, true},
		{[2]int{0, 1}, true, false, true},
	} {
		w := newWire(t)
		for side := range 2 {
			for n := range uint32(c.others[side] + 1) {
				qp := [2]uint32{200, 100}[side]
				if n > 0 {
					qp = 1000 + n
				}
				w.send(side, qp, packet.RCSendOnly, 5, 60000+uint16(qp)+uint16(side))
				pl := w.at(side, qp)
				pl.SetIdentity(store.MakeIdentity(qp, port, c.varies && n > 0, false))
			}
		}
		a := w.at(0, 200)
		pair := portRule(w.pairing.answers, &a.View)
		if !pair.formula || pair.alone != c.alone || pair.few != c.few {
			t.Errorf("%v flows besides: by the formula %v, alone %v, few %v", c.others, pair.formula, pair.alone, pair.few)
		}
	}
}

// TestOwnPort: the UDP source port is a connection's own only if it results from its QPs, or from the flow label in RDMA-CM's REQ.
func TestOwnPort(t *testing.T) {
	for name, c := range map[string]struct {
		ports   [2]uint16
		varies  [2]bool
		claimed uint16
		want    bool
	}{
		"the formula's":                {[2]uint16{52769, 52769}, [2]bool{}, 0, true},
		"another":                      {[2]uint16{52768, 52768}, [2]bool{}, 0, false},
		"the flow label's":             {[2]uint16{52768, 52768}, [2]bool{}, 52768, true},
		"another than claimed":         {[2]uint16{52768, 52768}, [2]bool{}, 50000, false},
		"one way only":                 {[2]uint16{52769, 52768}, [2]bool{}, 0, false},
		"it has changed":               {[2]uint16{52769, 52769}, [2]bool{true, false}, 0, false},
		"it has changed the other way": {[2]uint16{52769, 52769}, [2]bool{false, true}, 0, false},
	} {
		w := newWire(t)
		w.send(0, 200, packet.RCSendOnly, 5, 60000)
		w.send(1, 100, packet.RCSendOnly, 5, 60001)
		a, b := w.at(0, 200), w.at(1, 100)
		a.SetIdentity(store.MakeIdentity(200, c.ports[0], c.varies[0], false))
		b.SetIdentity(store.MakeIdentity(100, c.ports[1], c.varies[1], false))
		setClaim(&a, 7, 5, c.claimed)
		if got := ownPort(&a.View, &b.View); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
