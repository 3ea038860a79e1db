package pairing

import "github.com/cnpgate/cnpgate/flowtable"

const recheckBatch = 64 // flows that one Sweep compares with a new map, at most

// initial is a flow's answer when it begins. UD packets carry their source QP, which is part of the flow's key, so no map can say otherwise.
func (l *Learner) initial(k *flowtable.Key) Answer {
	if k.SourceQP != 0 {
		return makeAnswer(k.SourceQP, Confirmed, EvidenceDETH)
	}
	if qp, ok := l.static.Lookup(k.Src, k.Dst, k.DestQP); ok {
		return makeAnswer(qp, Confirmed, EvidenceStatic)
	}
	if qp, ok := l.hints.Lookup(k.Src, k.Dst, k.DestQP); ok {
		return makeAnswer(qp, Confirmed, EvidenceHint)
	}
	return 0
}

// count counts a flow that evidence confirms by itself.
func (l *Learner) count(why Evidence) {
	l.counts.Evidence[why]++
	l.counts.Confirmed[why]++
	l.dirty = true
}

// Sweep applies new maps of QP pairs, and publishes Stats. The worker calls it once a step. Each call compares up to 64 flows with the maps:
// they get the source QP that a new map says, or lose one that only the old map said. It goes round the table, so that every flow is
// compared with the latest map even if maps change all the time.
func (l *Learner) Sweep() {
	if static, hints := l.pairing.static.Load(), l.pairing.hints.Load(); static != l.static || hints != l.hints {
		l.static, l.hints = static, hints
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

// recheck gives a flow what the maps say of it now, or takes back what they said before. A closed record stays as it is.
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
