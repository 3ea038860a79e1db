package pairing

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// flow is a flow with a slot, at one packet of it: what its worker knows of it, and what the others see. Without a slot it has no note.
type flow struct {
	l     *Learner
	index flowtable.Index
	*track
	*note
	slot store.Slot
}

// flowOf returns a flow, as a packet of it comes; ok is false if it has no slot, or no longer has it.
func (l *Learner) flowOf(x flowtable.Index) (f flow, ok bool) {
	f = flow{l: l, index: x, track: &l.tracks[x]}
	if f.slot, ok = l.slotOf(x); ok {
		f.note = l.notes.of(&f.slot)
	}
	return f, ok
}

func (f *flow) answer() Answer { return f.l.answer(f.index) }

// change replaces the flow's answer by the function's result.
func (f *flow) change(to func(Answer) Answer) { f.l.pairing.answers.change(f.l.ref(f.index), to) }

// lock tries to take the lock of the flow's group. If it returns true, the flow still has its slot, and the caller must call unlock.
// Another worker may have given the slot to another flow, or to another group, since this worker read them.
func (f *flow) lock() bool {
	if !f.slot.Group().Lock().Try() {
		f.l.counts.skipped()
		return false
	}
	if !f.slot.Has(f.l.ref(f.index)) {
		f.unlock()
		return false
	}
	return true
}

func (f *flow) unlock() { f.slot.Group().Lock().Release() }

// compare spends this many comparisons, then tries to take the lock of the flow's group, like lock.
func (f *flow) compare(comparisons int) bool { return f.l.spend(comparisons) && f.lock() }

// enter gives the flow a slot in its group. If there is none, the flow's packets are only counted, and the flow tries again later.
func (f *flow) enter(p *arrival) bool {
	f.port, f.last, f.track.slot, f.slot = p.SrcPort, p.PSN, 0, store.Slot{}
	s := f.l.pairing.store
	if f.pace > 0 && f.left() > 0 || !f.l.spend(store.SlotsASide/4) { // it is not yet time for another attempt
		return false
	}
	if !s.Lock.Try() {
		f.l.counts.skipped()
		return false
	}
	ok, full := f.assign(p)
	s.Lock.Release()
	if full {
		f.l.counts.change().NoSlot++
		f.slower()
		f.due++
	}
	return ok
}

// assign finds a slot and begins the flow's note, under Store.Lock; full reports that there is no free slot.
func (f *flow) assign(p *arrival) (ok, full bool) {
	all, s := f.l.pairing, f.l.pairing.store
	key, side := all.groupOf(f.l.table.Key(f.index))
	source := all.sourceHash(&key, side)
	if s.Full(source, false, p.now) {
		return false, true
	}
	w := way{f, p}
	g, busy := w.group(&key, side)
	if g == nil && !busy && !s.Full(source, true, p.now) && f.evict(source, true, p.now) {
		g, busy = w.group(&key, side)
	}
	if g == nil {
		return false, !busy
	}
	if !g.Lock().Try() {
		f.l.counts.skipped()
		return false, false
	}
	if side == 1 && !f.takeSide(g, key.Scope) {
		g.Lock().Release()
		return false, true
	}
	if g.Divided() || g.Full(side) {
		g.Lock().Release()
		if g = w.place(g, side, source); !g.Lock().Try() {
			s.Tidy(g) // it may be a new branch
			f.l.counts.skipped()
			return false, false
		}
	}
	defer g.Lock().Release()
	defer s.Tidy(g)
	slot, ok := s.Empty(g, side, p.now, all.answers.ended)
	if !ok && !g.Full(side) && f.evict(source, false, p.now) { // a slot of another group is no help to a full one
		slot, ok = s.Empty(g, side, p.now, all.answers.ended)
	}
	if ok {
		all.release(&slot) // of a flow that has ended
	}
	ref := f.l.ref(f.index)
	if !ok || !all.connect(&key, 1-side, p.DestQP, ref) {
		return false, true
	}
	f.slot, f.track.slot, f.note = slot, slot.InStore(), f.l.notes.of(&slot)
	*f.note = note{began: milliseconds(p.now)}
	f.flags &^= sends | sure
	f.portChanges, f.asks = 0, 0
	f.last |= inexact
	f.acked = 0
	f.noteService(p)
	f.lease = f.slot.Occupy(ref, f.identity(p.DestQP), source, p.now)
	f.restartPace()
	return true, false
}

// evict takes back slots when there is none for a flow of a source, or no group, under Store.Lock, and evicts a flow if necessary. It reports whether
// the caller should try again.
func (f *flow) evict(source uint64, group bool, now int64) bool {
	all := f.l.pairing
	victim, found, again := all.store.Reclaim(source, group, now, all.answers.ended)
	if found {
		f.l.counts.change().Displaced++
		all.answers.withdraw(victim.Ref())
		all.release(&victim)
		all.store.Evicted(&victim)
	}
	return again
}

// release takes a slot from its flow, under the group's lock, and withdraws the answer of the flow's peer flow, if it has any.
func (p *Pairing) release(slot *store.Slot) {
	if slot.Ref() == 0 {
		return
	}
	if peer, ok := slot.Unpair(); ok {
		p.answers.withdraw(peer.Ref())
	}
	vacate(slot)
}

// countPackets records the number of packets until the source QP was confirmed. While it is confirmed the flow is not judged.
func (f *flow) countPackets() {
	confirmed := f.answer().State() == Confirmed
	switch {
	case f.flags&sure != 0:
	case confirmed:
		f.took = max(f.took, max(f.packets, 1)-1)
		f.flags |= sure
	default:
		f.took = f.packets
	}
	if confirmed {
		f.wait(noHurry)
	}
}

// peerGone handles a flow whose peer flow no longer has its slot: then the flow's packets can't be compared with anything.
func (f *flow) peerGone(l store.Link) {
	f.slot.ChangeLink(l, 0)
	f.awaitPeer, f.awaitOwn, f.lastUnexpected = 0, 0, 0
	f.acked = 0
	f.l.pairing.answers.withdraw(f.l.ref(f.index))
	f.restartPace()
}

// suspend makes the source QP a candidate, so that no notification names it. The pair stays.
func (f *flow) suspend() {
	if f.answer().State() != Confirmed {
		return
	}
	f.change(func(a Answer) Answer {
		if a.State() == Confirmed && a.Ended() == Open && !a.fixed() {
			return makeAnswer(a.SourceQP(), Candidate, a.Evidence())
		}
		return a
	})
}

// fit classifies how a packet fits its flow.
type fit uint8

const (
	fits       fit = iota // the connection can have sent it
	unexpected            // the packet before it was not, or does not go with it
	another               // the second one in a row unexpected, and it goes with the first: both are another connection's
)

const (
	// Two packets unexpected go together if they are at most this many PSNs apart.
	requestsApart  = 1 << 10
	responsesApart = 1 << 12
)

// classify compares the current packet with its flow. own: the flow may use the packet's PSN.
func (f *flow) classify(p *arrival, own bool, apart uint32) fit {
	if p.SrcPort != f.port && f.slot.Link().OwnPort() {
		own = false // the port results from the connection's QPs, so it never changes
	}
	if own && (p.SrcPort == f.port || !f.steady()) {
		f.lastUnexpected = 0
		return fits
	}
	again := f.lastUnexpected != 0
	together := (p.PSN-f.lastUnexpected+apart)&packet.PSNMask <= 2*apart && f.lastUnexpectedPort == p.SrcPort
	f.lastUnexpected, f.lastUnexpectedPort = p.PSN|noteBit, p.SrcPort
	switch {
	case again && together:
		return another
	case again && own: // a third UDP source port in a row: this sender changes its port all the time
		f.lastUnexpected = 0
		return fits
	}
	return unexpected
}

const (
	steadyPackets  = 64 // packets in a row with one UDP source port, after which the port is steady
	maxPortChanges = 3  // changes of the port that count; each one quadruples steadyPackets
)

// steady reports whether the flow has had its UDP source port long enough for another port to mean another connection.
func (f *flow) steady() bool {
	since := f.packets
	if f.moved != 0 {
		since = (f.packets - f.moved) &^ noteBit
	}
	return since >= steadyPackets<<(2*f.portChanges)
}

// changePort records that the flow's UDP source port has changed. From then on the port doesn't distinguish the flow's connection from
// others. It reports whether the change is unusual: it is until the port has changed maxPortChanges times.
func (f *flow) changePort(p *arrival) (unusual bool) {
	unusual = f.portChanges < maxPortChanges
	f.notePort(p.SrcPort)
	if f.lock() {
		f.slot.SetIdentity(f.identity(p.DestQP))
		f.unlock()
	}
	return unusual
}

// notePort records a packet's port as the flow's. If another flow has the slot by now, that flow is only checked more strictly.
func (f *flow) notePort(port uint16) {
	f.moved = f.packets | noteBit
	f.port = port
	f.portChanges = min(f.portChanges+1, maxPortChanges)
	if l := f.slot.Link(); l.OwnPort() {
		f.slot.ChangeLink(l, l.SharedPort())
	}
}

// identity is the flow's identity with its present UDP source port.
func (f *flow) identity(qp uint32) store.Identity {
	id := store.MakeIdentity(qp, f.port, f.moved != 0 && !f.steady(), f.flags&unreliable != 0)
	if f.flags&remote != 0 {
		return id.Remote()
	}
	return id
}

// within reports whether the flow's requests may use a PSN. A sender may go back to any PSN that it has used (maxSpan at most), but not
// skip more than maxGap. UC never retransmits, so its PSNs go back only by reordering.
func (f *flow) within(psn uint32) bool {
	const reordering = 1 << 10
	if f.flags&unreliable != 0 && !packet.PSNAtMost((f.high-reordering)&packet.PSNMask, psn) {
		return false
	}
	return (psn-f.first+firstSlack)&packet.PSNMask <= (f.high-f.first)&packet.PSNMask+firstSlack+maxGap
}

// noteService records whether the packet's transport service, and so the flow's, is UC.
func (t *track) noteService(p *arrival) {
	t.flags &^= unreliable
	if isUC(p.Opcode) {
		t.flags |= unreliable
	}
}

// ofService reports whether the packet's transport service is the flow's (UC or not): a QP has only one service.
func (t *track) ofService(p *arrival) bool { return isUC(p.Opcode) == (t.flags&unreliable != 0) }

func isUC(o packet.Opcode) bool { return o>>5 == packet.UC>>5 }
