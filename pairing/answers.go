package pairing

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// answers gives access to the answers of all workers' flows, in the workers' flow tables by the number of their learners.
type answers []*flowtable.Table

// find returns the table, index and state of a flow; ok is false if the flow has ended.
func (all answers) find(r store.Ref) (t *flowtable.Table, x flowtable.Index, s flowtable.State, ok bool) {
	if r == 0 {
		return nil, 0, 0, false
	}
	t, x = all[r.Worker()], flowtable.Index(r.Index())
	s = t.State(x)
	return t, x, s, s.Live() && r.Is(s.Generation())
}

// of returns the flow's answer.
func (all answers) of(r store.Ref) (Answer, bool) {
	_, _, s, ok := all.find(r)
	return Answer(s.Answer()), ok
}

// change replaces a flow's answer by the result of a function, and reports whether the answer has changed. The flow may be another worker's,
// and that worker may change the answer at the same time. Then the function is called again, with the new answer.
func (all answers) change(r store.Ref, to func(Answer) Answer) bool {
	for {
		t, x, s, ok := all.find(r)
		if !ok {
			return false
		}
		now := to(Answer(s.Answer()))
		if now == Answer(s.Answer()) {
			return false
		}
		if t.SetAnswer(x, s, flowtable.Answer(now)) {
			return true
		}
	}
}

// withdraw removes a flow's source QP, if it was learned and the flow record is open.
func (all answers) withdraw(r store.Ref) {
	all.change(r, func(a Answer) Answer {
		if a.fixed() || a.Ended() != Open {
			return a
		}
		return 0
	})
}

// retract removes a flow's source QP, if this evidence has confirmed it.
func (all answers) retract(r store.Ref, why Evidence) {
	all.change(r, func(a Answer) Answer {
		if a.State() == Confirmed && a.Evidence() == why && a.Ended() == Open {
			return 0
		}
		return a
	})
}

// confirm gives a flow a source QP, unless equal or better evidence has confirmed one. has: the flow has that QP now; changed: it had not
// before.
func (all answers) confirm(r store.Ref, qp uint32, why Evidence) (has, changed bool) {
	changed = all.change(r, func(a Answer) Answer {
		has = a.SourceQP() == qp && a.State() == Confirmed && a.Ended() == Open
		if a.Ended() != Open || a.State() == Confirmed && (a.Evidence() <= why || a.fixed()) {
			return a
		}
		has = true
		return makeAnswer(qp, Confirmed, why)
	})
	return has, changed
}

// suggest makes a source QP the candidate of the flow in a slot, unless the flow has a peer flow or is confirmed.
func (all answers) suggest(v *store.View, qp uint32, why Evidence) {
	if _, ok := v.Peer(); ok {
		return
	}
	all.change(v.Ref(), func(a Answer) Answer {
		if a.State() == Confirmed || a.Ended() != Open {
			return a
		}
		return makeAnswer(qp, Candidate, why)
	})
}
