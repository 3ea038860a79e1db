package pairing

import "github.com/cnpgate/cnpgate/flowtable"

const recheckBatch = 64 // flows that one Sweep compares with a new map, at most

// initial returns a flow's answer when it begins. UD packets carry their source QP, which is part of the flow's key, so no map can
// contradict it.
func (l *Learner) initial(k *flowtable.Key) Answer {
	if k.SourceQP != 0 {
		return makeAnswer(k.SourceQP, Confirmed, EvidenceDETH)
	}
	if qp, ok := l.static.Lookup(k.Src, k.Dst, k.DestQP); ok {
		return makeAnswer(qp, Confirmed, EvidenceStatic)
	}
	if qp, ok := l.pairing.hints.Load().Lookup(k.Src, k.Dst, k.DestQP); ok {
		return makeAnswer(qp, Confirmed, EvidenceHint)
	}
	return 0
}

// SetStatic replaces the operator's map of QP pairs; nil is an empty map. The worker calls it before it shows the learner a burst. Existing flows get
// the new map with the next Sweeps, flows that begin after the call at once.
func (l *Learner) SetStatic(m *QPMap) { l.static = m }

// count counts a flow that evidence confirms by itself.
func (l *Learner) count(why Evidence) {
	l.counts.Evidence[why]++
	l.counts.Confirmed[why]++
	l.dirty = true
}

// Sweep applies new maps of QP pairs, and publishes Stats. The worker calls it once a step. Each call compares up to 64 flows with the
// maps: they get the source QP of the new map, or lose one that only the old map had. It scans the table in a circle, so that every flow is
// compared with the latest map even if maps change all the time.
func (l *Learner) Sweep() {
	if hints := l.pairing.hints.Load(); l.static != l.swept.static || hints != l.swept.hints {
		l.swept.static, l.swept.hints = l.static, hints
		l.recheckLeft = uint32(l.table.High())
	}
	n := min(recheckBatch, l.recheckLeft)
	l.recheckLeft -= n
	for range n {
		l.recheckAt = l.recheckAt%uint32(l.table.High()) + 1
		if x := flowtable.Index(l.recheckAt); l.table.State(x).Live() {
			l.recheck(x)
		}
	}
	l.publish()
}

// recheck applies the present maps to a flow, or withdraws a source QP that only the old ones had. It doesn't change a closed record.
func (l *Learner) recheck(x flowtable.Index) {
	says := l.initial(l.table.Key(x))
	if l.pairing.update(l.ref(x), func(a Answer) Answer {
		mapped := a.Evidence() == EvidenceStatic || a.Evidence() == EvidenceHint
		if a.Ended() != Open || says == 0 && !mapped {
			return a
		}
		return says
	}) && says != 0 {
		l.count(says.Evidence())
	}
}
