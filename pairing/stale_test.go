package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// A worker looks up its flow's slot, and another worker gives the slot to another flow before the first worker has written there.

// flow is the flow from a side to a QP, at a packet of its worker.
func (w *wire) flow(side int, qp uint32) *flow {
	w.t.Helper()
	f, ok := w.workers[side].flowOf(w.find(side, qp))
	if !ok {
		w.t.Fatalf("the flow to QP %d has no slot", qp)
	}
	return &f
}

// paired processes a packet of a side's worker up to the point where observe has found the flow's slot, its peer flow and its answer.
func (w *wire) paired(side int, p *packet.Parsed) *check {
	w.t.Helper()
	f := w.flow(side, p.DestQP)
	f.l.StartBurst()
	link := f.slot.Link()
	peer, ok := f.slot.LinkedPeer(link)
	if !ok {
		w.t.Fatal("no peer flow")
	}
	return &check{f, &arrival{p, make([]byte, 64), w.now}, link, peer, f.answer()}
}

// contents returns the data of a slot.
type contents struct {
	sent           store.Sent
	ack            store.Ack
	owner          store.Ref
	link           store.Link
	id             store.Identity
	elimination    store.Elimination
	claim          store.Claim
	row            [4]uint64
	contradictions uint16
}

func contentsOf(s *store.Slot) contents {
	return contents{s.Sent(), s.Ack(), s.Ref(), s.Link(), s.Identity(), s.Elimination(), s.Claim(),
		[4]uint64{s.Row(0), s.Row(1), s.Row(2), s.Row(3)}, s.Contradictions()}
}

// TestSlotOfAnother: whatever a worker is about to do with a flow, it writes nothing into a slot that another flow has by then.
func TestSlotOfAnother(t *testing.T) {
	request := packet.Parsed{Kind: packet.RoCEv2, Opcode: packet.RCSendOnly, DestQP: 200, PSN: psnB + 10, SrcPort: 7}
	response := packet.Parsed{Kind: packet.RoCEv2, Opcode: packet.RCAcknowledge, DestQP: 200, PSN: psnA, SrcPort: 7}
	moved := request
	moved.SrcPort = 8
	for name, c := range map[string]struct {
		packet packet.Parsed
		do     func(c *check)
	}{
		"judges":              {request, func(c *check) { c.judge(c.arrival) }},
		"contradicts":         {response, func(c *check) { c.contradictPair() }},
		"starts over":         {request, func(c *check) { c.startOver(c.arrival, false) }},
		"another connection":  {request, func(c *check) { c.anotherConnection() }},
		"port moves":          {moved, func(c *check) { c.changePort(c.arrival) }},
		"follows the port":    {moved, func(c *check) { c.followPort(c.arrival) }},
		"learns a response":   {response, func(c *check) { c.learnResponse(c.arrival) }},
		"reads a claim":       {request, func(c *check) { c.seenCM = 0; c.findClaim(c.now) }},
		"notes a request":     {request, func(c *check) { c.noteRequest(c.arrival, true) }},
		"protects a response": {response, func(c *check) { c.response() }},
		"ends":                {request, func(c *check) { c.l.End(c.index) }},
	} {
		w := newWire(t)
		w.connect(100, 200)
		w.talk(100, 200, psnB, 10, 7)
		w.send(1, 100, packet.RCSendOnly, psnA, 7)
		w.send(0, 300, packet.RCSendOnly, 5, 9)
		s := w.paired(0, &c.packet)
		other := w.at(0, 300)
		r := other.Ref()
		if name == "ends" { // End looks at the owner first: what it goes on to write is checked by the lease
			r = s.slot.Ref()
		}
		other.Vacate(other.Ref())
		slot := w.pairing.store.At(s.track.slot)
		slot.Occupy(r, store.MakeIdentity(300, 9, false, false), 0, 0)
		before := contentsOf(&s.slot)
		c.do(s)
		after := contentsOf(&s.slot)
		if name == "ends" {
			after.owner = before.owner
		}
		if after != before {
			t.Errorf("%s: the slot of another flow has\n%+v, and had\n%+v", name, after, before)
		}
		if !s.slot.Group().Lock().Try() {
			t.Errorf("%s: the group is locked", name)
		}
	}
}

// TestStaleSlot: the result of such a write: two flows of different connections were paired.
func TestStaleSlot(t *testing.T) {
	const flows, start, asks = 20, 0x51000, 0xd00000
	w := newWire(t)
	third := newWorker(t, w.pairing, 1024, 2)
	w.connect(100, 200)
	w.talk(100, 200, psnB, 20, 7)
	w.is(1, 100, 200, EvidenceCM)
	for k := range uint32(1000) { // other connections, in which bob asks, and which PSNs confirm
		for i := range uint32(flows) {
			w.send(1, 5000+i, packet.RCSendOnly, 0x300000+i*start+k, 50000)
			w.send(0, 1000+i, packet.RCAcknowledge, 0x300000+i*start+k, 50000)
		}
	}
	w.is(0, 1000, 5000, EvidencePSN)
	// Worker 1 has come to check the second response unexpected of the flow to 100 ...
	w.send(1, 100, packet.RCAcknowledge, 0x700000, 7)
	s := w.paired(1, &packet.Parsed{Kind: packet.RoCEv2, Opcode: packet.RCAcknowledge, DestQP: 100, PSN: 0x700001, SrcPort: 7})
	// ... when worker 0 sees another connection's requests to 200, which takes away the slot of the flow to 100 ...
	w.send(0, 200, packet.RCSendOnly, 0x100000, 9)
	w.send(0, 200, packet.RCSendOnly, 0x100001, 9)
	// ... and a third worker gives it to the flow to 300, of connection 400 and 300, in which bob asks.
	ask := func(psn uint32) {
		w.now += 1000
		k := [1]flowtable.Key{w.key(1, 300)}
		var out [1]flowtable.Ref
		third.StartBurst()
		third.lookup(k[:], w.now, out[:])
		p := packet.Parsed{Kind: packet.RoCEv2, Opcode: packet.RCSendOnly, DestQP: 300, PSN: psn, SrcPort: 50000}
		third.observe(out[0].Index, &k[0], &p, make([]byte, 64), w.now)
	}
	for i := range uint32(4) {
		ask(asks + i)
	}
	k := w.key(1, 300)
	x, _, _ := third.Find(&k)
	if pl, ok := third.slotOf(x); !ok || pl != s.slot {
		t.Fatalf("the flow to 300 has another slot: %v", ok)
	}
	s.packet()
	for i := range uint32(200) {
		w.send(0, 400, packet.RCAcknowledge, asks+i, 50000)
		ask(asks + 4 + i)
		if v := w.view(0, 400); v.Usable() && v.SourceQP() != 300 {
			t.Fatalf("packet %d comes from 300: %v", i, v)
		}
	}
}

// TestReconfirmAfterThePeerIsGone: while a worker is about to end a flow's suspension, another one withdraws the pair, and the flow becomes a
// candidate by other evidence.
func TestReconfirmAfterThePeerIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(w *wire)
		want      uint32 // source QP, 0 for unconfirmed
	}{
		"nothing":       {func(*wire) {}, 100},
		"a forged CNP":  {func(w *wire) { w.unpair(); w.cnp(1, 0x666) }, 0},
		"one of its QP": {func(w *wire) { w.unpair(); w.cnp(1, 100) }, 0},
		"a rule": {func(w *wire) {
			w.unpair()
			pl := w.at(0, 200)
			w.pairing.answers.suggest(&pl.View, 0x666, EvidencePort)
		}, 0},
		"the same rule": {func(w *wire) { w.unpair(); pl := w.at(0, 200); w.pairing.answers.suggest(&pl.View, 100, EvidencePort) }, 0},
		"another peer flow, another rule": {func(w *wire) {
			w.candidate(makeAnswer(100, Candidate, EvidencePSN))
		}, 0},
		"another peer flow, another QP": {func(w *wire) {
			w.candidate(makeAnswer(0x666, Candidate, EvidencePort))
		}, 0},
		"a CNP before, the peer flow found since": {func(w *wire) { w.candidate(makeAnswer(100, Candidate, EvidenceCNP)) }, 0},
		"its port is shared": {func(w *wire) {
			pl := w.at(0, 200)
			pl.ChangeLink(pl.Link(), pl.Link().SharedPort())
		}, 100},
	} {
		w := newWire(t)
		w.talk(100, 200, 1000, 50, 52769)
		w.candidate(makeAnswer(100, Candidate, EvidencePort))
		s := w.paired(0, &packet.Parsed{Kind: packet.RoCEv2, Opcode: packet.RCSendOnly, DestQP: 200, PSN: 1050, SrcPort: 52769})
		if name == "a CNP before, the peer flow found since" {
			s.was = makeAnswer(100, Candidate, EvidenceCNP)
		}
		c.meanwhile(w)
		s.packet()
		if v := w.view(0, 200); v.Usable() != (c.want != 0) || v.Usable() && v.SourceQP() != c.want {
			t.Errorf("%s: %v, want QP %d", name, v, c.want)
		}
	}
}

// part ends the pair of the flows to 200 and 100.
func (w *wire) unpair() {
	w.send(1, 100, packet.RCAcknowledge, 0x700000, 52769)
	w.send(1, 100, packet.RCAcknowledge, 0x700001, 52769)
	if w.view(0, 200).State() != Unknown {
		w.t.Helper()
		w.t.Fatal("the pair is still there")
	}
}

// candidate gives the flow to 200 an answer.
func (w *wire) candidate(a Answer) {
	pl := w.at(0, 200)
	w.pairing.answers.change(pl.Ref(), func(Answer) Answer { return a })
}

// TestNoteOfAnotherFlow: a flow whose slot another flow of its worker has by now neither shows nor changes the note of that one.
func TestNoteOfAnotherFlow(t *testing.T) {
	w := newWire(t)
	w.connect(100, 200)
	w.talk(100, 200, psnB, 4, 7)
	l, x, slot := w.workers[0].Learner, w.find(0, 200), w.at(0, 200)
	if l.Describe(x).Took == 0 {
		t.Fatal("the flow is not confirmed")
	}
	slot.Vacate(slot.Ref())
	w.send(0, 300, packet.RCSendOnly, 5, 7)
	other := w.flow(0, 300)
	if other.slot.InStore() != slot.InStore() {
		t.Fatalf("the other flow has slot %d, expected %d", other.slot.InStore(), slot.InStore())
	}
	if took := l.Describe(x).Took; took != 0 {
		t.Errorf("without a slot, the flow was confirmed by packet %d", took)
	}
	want := *other.note
	w.send(0, 200, packet.RCSendOnly, 77, 7)
	if *other.note != want {
		t.Errorf("a packet of the flow that had the slot has changed the note to %+v, want %+v", *other.note, want)
	}
}
