package pairing

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// flow is a flow with a slot, at one packet of it: what its worker knows of it, and what the others see.
type flow struct {
	l     *Learner
	index flowtable.Index
	*track
	*note
	slot store.Slot
}

func (f *flow) answer() Answer { return f.l.answer(f.index) }

// change replaces the flow's answer by the function's result.
func (f *flow) change(to func(Answer) Answer) { f.l.pairing.answers.change(f.l.ref(f.index), to) }

// lock tries to take the lock of the flow's group. If it returns true, the flow still has its slot, and the caller must call unlock. Another
// worker may have given the slot to another flow, and its page to another group, since this worker read them.
func (f *flow) lock() bool {
	if !f.slot.Group().Lock().Try() {
		f.l.skipped()
		return false
	}
	if f.slot.Ref() != f.l.ref(f.index) {
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
	f.port, f.last, f.track.slot = p.SrcPort, p.PSN, 0
	s := f.l.pairing.store
	if f.pace > 0 && f.left() > 0 || !f.l.spend(store.SlotsASide/4) { // it is not yet time for another attempt
		return false
	}
	if !s.Lock.Try() {
		f.l.skipped()
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
	all, s, ref := f.l.pairing, f.l.pairing.store, f.l.ref(f.index)
	key, side := all.groupOf(f.l.table.Key(f.index))
	g := s.Make(&key, all.hashOf(&key), p.now)
	if g == nil {
		return false, true
	}
	if !g.Lock().Try() {
		f.l.skipped()
		return false, false
	}
	defer g.Lock().Release()
	slot, ok := s.Empty(g, side, p.now, func(r store.Ref) bool {
		a, live := all.answers.of(r)
		return !live || a.Ended() != Open
	})
	if ok && slot.Ref() != 0 { // of a flow that has ended
		if peer, ok := slot.Unpair(); ok {
			all.answers.withdraw(peer.Ref())
		}
		slot.Vacate(slot.Ref())
	}
	if !ok || !all.connect(&key, 1-side, p.DestQP, ref) {
		return false, true
	}
	*f.note = note{began: milliseconds(p.now)}
	f.slot, f.track.slot = slot, slot.InStore()
	f.flags &^= sends | sure
	f.last |= inexact
	f.acked = 0
	f.noteService(p)
	f.lease = f.slot.Occupy(ref, f.identity(p.DestQP))
	f.restartPace()
	return true, false
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
	f.awaitPeer, f.awaitOwn, f.unexpected = 0, 0, 0
	f.acked = 0
	f.change(func(a Answer) Answer {
		if a.Ended() == Open && !a.fixed() {
			return 0
		}
		return a
	})
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
