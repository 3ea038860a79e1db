package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/cm"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// TestAsClaimed: RDMA-CM's claim counts if the data of both directions begins as claimed, and has responses if the service has any.
func TestAsClaimed(t *testing.T) {
	const begin = 0x345900
	for name, c := range map[string]struct {
		a, b                 uint32 // first PSN of each direction's requests, 0 for none
		answered, unreliable bool
		claimed, port        uint16
		want                 bool
	}{
		"one way":                          {a: begin, answered: true, want: true},
		"the other way":                    {b: begin, answered: true, want: true},
		"both ways":                        {a: begin, b: begin, answered: true, want: true},
		"within the slack":                 {a: begin + 63, answered: true, want: true},
		"beyond the slack":                 {a: begin + 64, answered: true},
		"before":                           {a: begin - 1, answered: true},
		"one way elsewhere":                {a: begin + 64, b: begin, answered: true},
		"the other way elsewhere":          {a: begin, b: begin + 64, answered: true},
		"no requests":                      {answered: true},
		"not answered":                     {a: begin},
		"UC, both ways":                    {a: begin, b: begin, unreliable: true, want: true},
		"UC, one way, no port claimed":     {a: begin, unreliable: true},
		"UC, one way, the port claimed":    {a: begin, unreliable: true, claimed: 50000, port: 50000, want: true},
		"UC, one way, another port":        {a: begin, unreliable: true, claimed: 50000, port: 50001},
		"UC, elsewhere, with its own port": {a: begin + 64, unreliable: true, claimed: 50000, port: 50000},
	} {
		_, a, b := two(t)
		for i, pl := range []*store.Slot{&a, &b} {
			first := [2]uint32{c.a, c.b}[i]
			setClaim(pl, 7, begin, c.claimed)
			pl.PublishSent(pl.Lease(), store.Sent(pl.Lease())<<49)
			if first != 0 {
				pl.PublishSent(pl.Lease(), store.MakeSent(first, first, pl.Lease()))
			}
			pl.SetIdentity(store.MakeIdentity(pl.Identity().QP(), c.port, false, c.unreliable))
			psn := [2]uint32{c.b, c.a}[i]
			if !c.answered {
				psn = 0x500000
			}
			pl.PublishAck(pl.Lease(), store.MakeAck(psn, pl.Lease()))
		}
		if got := asClaimed(&a.View, &b.View); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestAsClaimedNear0: where anyone might guess the first PSN, the port must be the connection's own and four responses must have agreed.
func TestAsClaimedNear0(t *testing.T) {
	for name, c := range map[string]struct {
		psn       uint32
		port      [2]uint16
		claimed   uint16
		plausible uint8
		want      bool
	}{
		"the flow label's port":       {5, [2]uint16{50000, 50000}, 50000, 4, true},
		"too few responses":           {5, [2]uint16{50000, 50000}, 50000, 3, false},
		"another port than claimed":   {5, [2]uint16{50000, 50000}, 50001, 4, false},
		"one way only":                {5, [2]uint16{50000, 50001}, 50000, 4, false},
		"no port":                     {5, [2]uint16{0, 0}, 0, 4, false},
		"near 2^24":                   {packet.PSNMask - 5, [2]uint16{50000, 50000}, 50001, 4, false},
		"far from 0":                  {farApart, [2]uint16{50000, 50000}, 50001, 0, true},
		"the formula's port":          {5, [2]uint16{packet.SourcePort(5000, 1000), packet.SourcePort(5000, 1000)}, 0, 4, true},
		"the formula's, of other QPs": {5, [2]uint16{packet.SourcePort(5001, 1000), packet.SourcePort(5001, 1000)}, 0, 4, false},
	} {
		_, a, b := two(t)
		setClaim(&a, 7, c.psn, c.claimed)
		for i, pl := range []*store.Slot{&a, &b} {
			pl.SetIdentity(store.MakeIdentity(pl.Identity().QP(), c.port[i], false, false))
		}
		a.PublishSent(a.Lease(), store.MakeSent(c.psn, c.psn, a.Lease()))
		b.PublishSent(b.Lease(), store.Sent(b.Lease())<<49)
		b.PublishAck(b.Lease(), store.MakeAck(c.psn, b.Lease()))
		b.EditElimination().Plausible = c.plausible
		if got := asClaimed(&a.View, &b.View); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestAsClaimedNear0UC: where anyone might guess a first PSN, UC flows that begin as claimed also need a port that is the connection's own.
func TestAsClaimedNear0UC(t *testing.T) {
	for name, c := range map[string]struct {
		a, b    uint32 // first PSN of each flow
		ports   [2]uint16
		claimed uint16
		want    bool
	}{
		"both far from 0":         {farApart, farApart, [2]uint16{50000, 50001}, 0, true},
		"the first near 0":        {5, farApart, [2]uint16{50000, 50000}, 0, false},
		"the second near 0":       {farApart, packet.PSNMask, [2]uint16{50000, 50000}, 0, false},
		"the flow label's port":   {0, 0, [2]uint16{50000, 50000}, 50000, true},
		"that, one way":           {0, 0, [2]uint16{50000, 50001}, 50000, false},
		"the formula's port":      {0, 0, [2]uint16{packet.SourcePort(5000, 1000), packet.SourcePort(5000, 1000)}, 0, true},
		"another port than those": {0, 0, [2]uint16{50000, 50000}, 50001, false},
	} {
		_, a, b := two(t)
		for i, pl := range []*store.Slot{&a, &b} {
			first := [2]uint32{c.a, c.b}[i]
			setClaim(pl, 7, first, c.claimed)
			pl.PublishSent(pl.Lease(), store.MakeSent(first, first, pl.Lease()))
			pl.SetIdentity(store.MakeIdentity(pl.Identity().QP(), c.ports[i], false, true))
		}
		if got := asClaimed(&a.View, &b.View); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// setClaim sets RDMA-CM's claim about the flow at a slot.
func setClaim(pl *store.Slot, sourceQP, psn uint32, port uint16) {
	pl.SetClaim(store.MakeClaim(sourceQP, psn, port))
}

// TestCrossCheck: each flow's claim names the other one's QP, or the other one has no requests to distinguish its claims.
func TestCrossCheck(t *testing.T) {
	for name, c := range map[string]struct {
		change func(a, b *store.Slot)
		want   bool
	}{
		"both":                        {func(_, _ *store.Slot) {}, true},
		"the other's, of an answerer": {func(_, b *store.Slot) { setClaim(b, 1, 5, 0) }, true},
		"none, of an answerer":        {func(_, b *store.Slot) { b.SetClaim(0) }, true},
		"the other's, of a requester": {func(_, b *store.Slot) {
			setClaim(b, 1, 5, 0)
			b.PublishSent(b.Lease(), store.MakeSent(5, 5, b.Lease()))
		}, false},
		"the other's, not begun itself": {func(a, b *store.Slot) { setClaim(b, 1, 5, 0); setClaim(a, 5000, 5, 0) }, false},
		"the other's, UC": {func(a, b *store.Slot) {
			setClaim(b, 1, 5, 0)
			setClaim(a, 5000, 0x500000, 50000)
			a.SetIdentity(store.MakeIdentity(1000, 50000, false, true))
		}, false},
		"its own names another QP": {func(a, _ *store.Slot) { setClaim(a, 1, 0x500000, 0) }, false},
		"no claim":                 {func(a, _ *store.Slot) { a.SetClaim(0) }, false},
	} {
		_, a, b := two(t)
		setClaim(&a, 5000, 0x500000, 0)
		setClaim(&b, 1000, 5, 0)
		c.change(&a, &b)
		if _, ok := cmRule(&a.View); ok != c.want {
			t.Errorf("%s: %v, want %v", name, ok, c.want)
		}
	}
}

// TestCMRecords: which messages make and end a connection.
func TestCMRecords(t *testing.T) {
	req := packet.CM{Attribute: packet.CMREQ, LocalComm: commA, QPN: 100, PSN: psnA}
	rep := packet.CM{Attribute: packet.CMREP, LocalComm: commB, RemoteComm: commA, QPN: 200, PSN: psnB}
	with := func(m packet.CM, change func(m *packet.CM)) packet.CM { change(&m); return m }
	for name, c := range map[string]struct {
		do   func(w *wire)
		want [2]uint32 // claimed source QPs of the flows to 200 and to 100; 0 for none
	}{
		"REQ and REP": {func(w *wire) { w.connect(100, 200) }, [2]uint32{100, 200}},
		"a second REP, of another QP": {func(w *wire) {
			w.connect(100, 200)
			w.cm(1, with(rep, func(m *packet.CM) { m.QPN, m.LocalComm = 300, 1 }))
		}, [2]uint32{100, 200}},
		"the ID again, not answered yet": {func(w *wire) {
			w.cm(0, req)
			w.cm(1, rep)
			w.cm(0, with(req, func(m *packet.CM) { m.QPN = 101 }))
		}, [2]uint32{100, 200}},
		"the ID again, answered": {func(w *wire) {
			w.connect(100, 200)
			w.cm(0, with(req, func(m *packet.CM) { m.QPN, m.PSN = 101, 1 }))
			w.cm(1, with(rep, func(m *packet.CM) { m.QPN = 201 }))
			w.release(0) // of the first
		}, [2]uint32{100, 200}},
		"DREQ": {func(w *wire) { w.connect(100, 200); w.release(0) }, [2]uint32{}},
		"DREQ of other IDs": {func(w *wire) {
			w.connect(100, 200)
			w.cm(0, packet.CM{Attribute: packet.CMDREQ, LocalComm: commA, RemoteComm: 1, QPN: 200})
		}, [2]uint32{100, 200}},
		"DREQ of another QP": {func(w *wire) {
			w.connect(100, 200)
			w.cm(0, packet.CM{Attribute: packet.CMDREQ, LocalComm: commA, RemoteComm: commB, QPN: 201})
		}, [2]uint32{100, 200}},
		"REJ": {func(w *wire) {
			w.connect(100, 200)
			w.cm(1, packet.CM{Attribute: packet.CMREJ, LocalComm: commB, RemoteComm: commA})
		}, [2]uint32{}},
		"REJ of another ID": {func(w *wire) {
			w.connect(100, 200)
			w.cm(1, packet.CM{Attribute: packet.CMREJ, LocalComm: 1, RemoteComm: commA})
		}, [2]uint32{100, 200}},
		"a REQ of QP 1":        {func(w *wire) { w.connect(1, 200) }, [2]uint32{}},
		"a REP of QP 0xffffff": {func(w *wire) { w.connect(100, 0xffffff) }, [2]uint32{}},
		"60 s old":             {func(w *wire) { w.connect(100, 200); w.now += 59e9 }, [2]uint32{100, 200}},
		"older":                {func(w *wire) { w.connect(100, 200); w.now += 61e9 }, [2]uint32{}},
	} {
		w := newWire(t)
		w.send(0, 200, packet.RCSendOnly, 0x700000, 7)
		w.send(1, 100, packet.RCSendOnly, 0x700000, 8)
		w.now -= 3000
		c.do(w)
		for side, qp := range []uint32{200, 100} {
			got, ok, busy := w.claimOf(side, qp, 0x700000)
			if ok != (c.want[side] != 0) || busy || got.SourceQP != c.want[side] {
				t.Errorf("%s: the flow to QP %d is claimed (%v) to come from %d, want %d", name, qp, ok, got.SourceQP, c.want[side])
			}
		}
	}
}

// TestNearestClaim: of several claims about a flow, the one with the flow's first PSN counts.
func TestNearestClaim(t *testing.T) {
	w := newWire(t)
	w.send(0, 200, packet.RCSendOnly, 0x700000, 7)
	key, side := w.pairing.groupOf(w.workers[0].table.Key(w.find(0, 200)))
	h, all := w.pairing.hashOf(&key), w.pairing.cm
	for i, psn := range []uint32{1, 0x700000 - 64, 0x700000 - 63, 0x700001} {
		all.Add(h, side, 200, cm.Claim{Time: w.now, SourceQP: 100 + uint32(i), PSN: psn})
		all.Add(h, 1-side, 100+uint32(i), cm.Claim{Time: w.now, SourceQP: 200})
	}
	if c, _, _ := w.claimOf(0, 200, 0x700000); c.SourceQP != 102 {
		t.Errorf("the claim of source QP %d, want 102", c.SourceQP)
	}
	for qp := uint32(100); qp < 104; qp++ {
		if c := all.Claim(h, side, 200, qp); (c.Owner != 0) != (qp == 102) {
			t.Errorf("the claim of source QP %d is noted as the flow's: %v", qp, c.Owner != 0)
		}
	}
}

// TestOneClaim: a claim about only one of the two flows is no evidence.
func TestOneClaim(t *testing.T) {
	for side, qp := range []uint32{200, 100} {
		w := newWire(t)
		w.connect(100, 200)
		key := w.key(side, qp)
		g, _ := w.pairing.groupOf(&key)
		*w.pairing.cm.Claim(w.pairing.hashOf(&g), side, qp, 300-qp) = cm.Claim{}
		w.talk(100, 200, psnB, 30, 7)
		if w.usable(0) || w.usable(1) {
			t.Errorf("no claim about the flow to %d: %v", qp, w.view(0, 200))
		}
	}
}

// TestOldFlowLabel: a communication ID of a connection with a flow label is used again for one without.
func TestOldFlowLabel(t *testing.T) {
	w := newWire(t)
	w.cm(0, packet.CM{Attribute: packet.CMREQ, LocalComm: commA, QPN: 100, PSN: psnA, FlowLabel: 0x12345})
	w.cm(0, packet.CM{Attribute: packet.CMREQ, LocalComm: commA, QPN: 101, PSN: psnA + 5})
	w.cm(1, packet.CM{Attribute: packet.CMREP, LocalComm: commB, RemoteComm: commA, QPN: 201, PSN: psnB})
	key := w.key(0, 201)
	g, side := w.pairing.groupOf(&key)
	if c := w.pairing.cm.Claim(w.pairing.hashOf(&g), side, 201, 101); c == nil || c.Port != 0 {
		t.Errorf("%+v: want a claim without a port", c)
	}
}

// claimOf is RDMA-CM's claim about the flow from a side to a QP, which begins now with a PSN.
func (w *wire) claimOf(side int, qp, first uint32) (c cm.Claim, ok, busy bool) {
	k := w.key(side, qp)
	return w.pairing.claimOf(&k, w.workers[side].ref(w.find(side, qp)), first, milliseconds(w.now), w.now)
}
