package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

func TestEqualSure(t *testing.T) {
	agree := func(a, b *Slot) { *b.elimination() = elimination{onlyIs: uint16(a.n + 1), agreeing: minAgreeing} }
	for name, c := range map[string]struct {
		change func(p *Pairing, a, b *Slot)
		want   bool
	}{
		"sure":                        {func(*Pairing, *Slot, *Slot) {}, true},
		"ruled out one way":           {func(_ *Pairing, a, b *Slot) { a.ruleOut(b.n/64, 1<<(b.n%64)) }, false},
		"ruled out the other way":     {func(_ *Pairing, a, b *Slot) { b.ruleOut(a.n/64, 1<<(a.n%64)) }, false},
		"no requests":                 {func(_ *Pairing, a, _ *Slot) { a.p.sent[a.k].Store(uint64(a.p.lease[a.k]) << 49) }, false},
		"an answer to something else": {func(_ *Pairing, _, b *Slot) { b.p.ack[b.k].Store(uint64(makeAck(5, b.p.lease[b.k]))) }, false},
		"requests back, not answered": {func(_ *Pairing, _, b *Slot) { b.p.sent[b.k].Store(uint64(makeSent(5, 5, b.p.lease[b.k]))) }, false},
		"few ports on one side":       {func(p *Pairing, a, b *Slot) { agree(a, b); p.share(a, 3) }, false},
		"few ports on the other side": {func(p *Pairing, a, b *Slot) { agree(a, b); p.share(b, 3) }, false},
		"no partners found":           {func(p *Pairing, a, _ *Slot) { p.unmatched(a, 64) }, false},
		"few partners found":          {func(p *Pairing, a, _ *Slot) { p.unmatched(a, 56) }, false},
	} {
		w := many(t, 64)
		a, b := w.at(0, 1000), w.at(1, 5000)
		for _, pl := range []*Slot{&a, &b} {
			for n := range pl.own() {
				o, _ := w.pairing.at(pl.g, pl.side, n)
				o.p.match[o.k] = matchEqual
			}
		}
		c.change(w.pairing, &a, &b)
		if got := w.workers[0].equalSure(&a, &b); got != c.want {
			t.Errorf("%s: sure %v, want %v", name, got, c.want)
		}
	}
}

// share gives this many flows of a side shared ports, two to three each. unmatched marks this many as having no port in common with the
// other side.
func (p *Pairing) share(pl *Slot, flows int) {
	for n := range flows {
		o, _ := p.at(pl.g, pl.side, pl.own()-1-n)
		o.p.id[o.k] = makeIdentity(o.id().qp(), uint16(max(min(n, flows-2)/2, 0)), false, false)
	}
}

func (p *Pairing) unmatched(pl *Slot, flows int) {
	for n := range flows {
		o, _ := p.at(pl.g, pl.side, pl.own()-1-n)
		o.p.match[o.k] = 0
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
		a.p.id[a.k] = makeIdentity(200, port, c.varies, false)
		for i, f := range c.flows {
			w.send(1, f.qp, packet.RCSendOnly, 0x5000, 60002+uint16(i))
			b := w.at(1, f.qp)
			b.p.id[b.k] = makeIdentity(f.qp, port, f.varies, f.unreliable)
			if f.ruledOut {
				b.ruleOut(a.n/64, 1<<(a.n%64))
			}
			if f.paired {
				w.pairing.makePair(&b, &peer, false)
			}
		}
		if m := w.pairing.match(&a); m.n != c.want || m.formula != c.formula {
			t.Errorf("%s: flow %d, by the formula %v; want %d, %v", c.name, m.n, m.formula, c.want, c.formula)
		}
	}
}

// TestPSNRule: the only flow that can have sent the request is the peer flow, if no other flow can be.
func TestPSNRule(t *testing.T) {
	confirm := func(w *wire, g *Slot, s State) {
		w.pairing.update(g.owner(), func(Answer) Answer { return makeAnswer(1001, s, EvidencePSN) })
	}
	for name, c := range map[string]struct {
		change func(w *wire, a, b *Slot) // requester and responder
		want   bool
	}{
		"alone":              {func(*wire, *Slot, *Slot) {}, true},
		"too few responses":  {func(_ *wire, _, b *Slot) { b.elimination().agreeing = 3 }, false},
		"ruled out":          {func(_ *wire, a, b *Slot) { a.ruleOut(b.n/64, 1<<(b.n%64)) }, false},
		"another may answer": {func(w *wire, _, _ *Slot) { w.send(1, 5001, packet.RCAcknowledge, 0x500000, 60001) }, false},
		"another, ruled out": {func(w *wire, a, _ *Slot) {
			w.send(1, 5001, packet.RCAcknowledge, 0x500000, 60001)
			g := w.at(1, 5001)
			g.ruleOut(a.n/64, 1<<(a.n%64))
		}, true},
		"another, which is paired": {func(w *wire, _, _ *Slot) {
			w.send(1, 5001, packet.RCAcknowledge, 0x500000, 60001)
			g, f := w.at(1, 5001), w.at(0, 1001)
			w.pairing.makePair(&g, &f, false)
			confirm(w, &g, Confirmed)
		}, true},
		"another, whose pair is suspended": {func(w *wire, _, _ *Slot) {
			w.send(1, 5001, packet.RCAcknowledge, 0x500000, 60001)
			g, f := w.at(1, 5001), w.at(0, 1001)
			w.pairing.makePair(&g, &f, false)
			confirm(w, &g, Candidate)
		}, false},
		"its peer flow, which is suspended": {func(w *wire, a, _ *Slot) {
			w.send(1, 5001, packet.RCAcknowledge, 0x500000, 60001)
			g := w.at(1, 5001)
			w.pairing.makePair(&g, a, false)
			confirm(w, &g, Candidate)
		}, false},
		"requests back, not answered": {func(_ *wire, _, b *Slot) { b.p.sent[b.k].Store(uint64(makeSent(5, 5, b.p.lease[b.k]))) }, false},
		"requests back, answered": {func(_ *wire, a, b *Slot) {
			b.p.sent[b.k].Store(uint64(makeSent(5, 5, b.p.lease[b.k])))
			a.p.ack[a.k].Store(uint64(makeAck(5, a.p.lease[a.k])))
			a.elimination().onlyIs = uint16(b.n + 1)
		}, true},
		"requests back, answered by two": {func(_ *wire, a, b *Slot) {
			b.p.sent[b.k].Store(uint64(makeSent(5, 5, b.p.lease[b.k])))
			a.p.ack[a.k].Store(uint64(makeAck(5, a.p.lease[a.k])))
		}, false},
	} {
		w := newWire(t)
		w.send(0, 1000, packet.RCSendOnly, 0x500000, 50000)
		w.send(0, 1001, packet.RCSendOnly, 0x900000, 50001)
		w.send(1, 5000, packet.RCAcknowledge, 0x500000, 60000)
		a, b := w.at(0, 1000), w.at(1, 5000)
		*b.elimination() = elimination{onlyIs: uint16(a.n + 1), agreeing: 4}
		c.change(w, &a, &b)
		if _, ok := w.pairing.psnRule(&b); ok != c.want {
			t.Errorf("%s: %v, want %v", name, ok, c.want)
		}
	}
}

// TestTrial: what a response adds to the evidence.
func TestTrial(t *testing.T) {
	before := elimination{onlyIs: 8, width: 7, agreeing: 9, exact: 5, retries: 1, contradictions: 2, plausible: 3}
	for _, c := range []struct {
		name string
		scan scan
		want [4]uint16 // soleIs, width, agreeing, exact
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
		if a := [4]uint16{got.onlyIs, uint16(got.width), uint16(got.agreeing), uint16(got.exact)}; a != c.want {
			t.Errorf("%s: %v, want %v", c.name, a, c.want)
		}
	}
	got := before
	if got.noteResponse(false); got.plausible != 0 {
		t.Error("a response that nobody asked for leaves the trust there was")
	}
	got = before
	if got.restart(); got != (elimination{retries: 1, contradictions: 2}) {
		t.Errorf("begun again: %+v", got)
	}
}

// TestExhausted: all flows become possible again after 0, 1, 3, 7 responses, and so on up to 4095.
func TestExhausted(t *testing.T) {
	_, _, b := two(t)
	s := subject{pl: b}
	for n := range 14 {
		want, waited := 1<<min(n, 12)-1, 0
		for b.p.row[b.k] = [rowWords]uint64{}; b.p.row[b.k] == [rowWords]uint64{}; waited++ {
			s.exhausted()
		}
		if waited-1 != want || b.elimination().retries != uint8(min(n+1, 12)) {
			t.Errorf("time %d: after %d responses and %d retries, want %d", n, waited-1, b.elimination().retries, want)
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
	if b.elimination().agreeing != 1 {
		t.Errorf("%d responses agree, want 1", b.elimination().agreeing)
	}
}

// TestStartOver: nothing of the flow's earlier connection is left, and RDMA-CM's claims are searched again.
func TestStartOver(t *testing.T) {
	w := newWire(t)
	w.connect(100, 200)
	w.talk(100, 200, psnB+1000, 20, 7) // doesn't begin where RDMA-CM claims
	a := w.at(0, 200)
	if a.claimed() == 0 {
		t.Fatal("no claim")
	}
	w.pairing.cm.claims = make([]claimSet, len(w.pairing.cm.claims))
	w.send(0, 200, packet.RCSendOnly, 0x800000, 8)
	w.send(0, 200, packet.RCSendOnly, 0x800001, 8)
	if a.claimed() != 0 || a.ack().valid() || a.sent().first() != 0x800001 {
		t.Errorf("claim %x, responses %x, requests %x", a.claimed(), a.ack(), a.sent())
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
	for name, forget := range map[string]func(w *wire, a *Slot){
		"forgotten": func(w *wire, a *Slot) { w.pairing.forget(a) },
		"a new beginning": func(w *wire, _ *Slot) {
			w.send(0, 1000, packet.RCSendOnly, 0x800000, 50000)
			w.send(0, 1000, packet.RCSendOnly, 0x800001, 50000)
			if a := w.at(0, 1000); a.ack().valid() || a.sent().first() != 0x800001 {
				t.Errorf("begins anew with %x and %x", a.ack(), a.sent())
			}
		},
		"another port": func(w *wire, _ *Slot) { w.send(0, 1000, packet.RCSendOnly, 0x500001, 50001) },
	} {
		w, a, b := two(t)
		a.p.ack[a.k].Store(uint64(makeAck(5, a.p.lease[a.k])))
		a.ruleOut(0, ^uint64(0))
		b.ruleOut(0, ^uint64(0))
		*b.elimination() = elimination{onlyIs: uint16(a.n + 1), agreeing: 9, contradictions: 1}
		forget(w, &a)
		if !a.may(b.n) || !b.may(a.n) || b.elimination().agreeing != 0 || b.elimination().contradictions != 1 {
			t.Errorf("%s: %v, %v, %+v", name, a.may(b.n), b.may(a.n), b.elimination())
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
				pl.p.id[pl.k] = makeIdentity(qp, port, c.varies && n > 0, false)
			}
		}
		a := w.at(0, 200)
		pair, ok := w.pairing.portRule(&a)
		if !ok || !pair.formula || pair.alone != c.alone || pair.few != c.few {
			t.Errorf("%v flows besides: %v, by the formula %v, alone %v, few %v", c.others, ok, pair.formula, pair.alone, pair.few)
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
		a.p.id[a.k] = makeIdentity(200, c.ports[0], c.varies[0], false)
		b.p.id[b.k] = makeIdentity(100, c.ports[1], c.varies[1], false)
		setClaim(&a, 7, 5, c.claimed)
		if got := w.pairing.ownPort(&a, &b); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
