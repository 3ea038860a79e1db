package flowtable

// learner is what the owner of a flow keeps about its pairing besides its track, while the flow has a place. That of a flow that never had
// one is never touched.
type learner struct {
	first uint32 // PSN of the first request seen, or 2^20 behind the highest
	span  uint32 // PSNs behind exact that requests may have used: a READ uses as many as its response has packets
	took  uint32 // packets that it took to confirm the source QP: all until then, but from 2^31 on no more are counted
	rest  uint16 // packets that were left until the next judgement when the source QP was confirmed
	skip  uint8  // responses to be left aside because they told nothing of late
	asks  uint8  // place in the ring of PSNs that are to be acknowledged
}

// subject is the flow that is being learned about.
type subject struct {
	*track
	*learner
}

// subject is a flow's, for one packet: of a flow without a place only what its track says is remembered.
func (t *Table) subject(x Index) subject {
	k := &t.tracks[x]
	if k.slot != 0 {
		return subject{k, &t.learners[x]}
	}
	t.placeless = learner{first: k.psn()}
	if k.exact&unsettled != 0 {
		t.placeless.span = maxSpan
	}
	return subject{k, &t.placeless}
}

// What a flow's flags say.
const (
	sends      = 1 << iota // has sent a request
	varies                 // its source port has changed
	unreliable             // UC: nothing is acknowledged
	refreshed              // what its first responses ruled out has been taken back once
	sure                   // its source QP has been confirmed
)

const (
	maxStep = 10 // 2^10 packets between two judgements of a flow
	maxIdle = 6  // one in 2^6 responses is looked at where they tell nothing
)

// soon has the flow judged with the packet at hand or its next one, sooner too, and from then on twice as often as of late; later half
// as often.
func (l subject) soon() {
	l.pace, l.rest = l.pace&^15|1, 1
	l.wait(0)
}

func (l subject) sooner() {
	l.pace = l.pace&^15 | max(l.pace&15, 2) - 1
	l.wait(0)
}

func (l subject) later() {
	l.pace = l.pace&^15 | min(l.pace&15+1, maxStep)
	l.wait(1<<(l.pace&15) - 1)
}

// attend has every response looked at; ignore leaves aside twice as many as of last, where flows in step can't be told apart.
func (l subject) attend() { l.pace, l.skip = l.pace&15, 0 }

func (l subject) ignore() {
	idle := min(l.pace>>4+1, maxIdle)
	l.pace, l.skip = l.pace&15|idle<<4, 1<<idle-1
}

// high is the highest PSN that requests may have used.
func (l subject) high() uint32 { return (l.exact + l.span) & psnMask }

// note notes the last request's PSN, and how many behind it it takes.
func (l subject) note(psn, span uint32) {
	l.exact, l.span = psn, span
	if span != 0 {
		l.exact |= unsettled
	}
}

// pause counts the packets that it takes to confirm the source QP, and has judgement rest while it is. A flow without a place has nothing
// to be judged by: enter says when it tries for one again.
func (l subject) pause(was, s state) {
	before := uint16(l.packets) - 1
	switch {
	case s.qpState() != Confirmed:
		l.took = max(l.took, l.packets)
		if was.qpState() == Confirmed {
			l.due = before + l.rest
		}
		return
	case was.qpState() != Confirmed:
		l.took = max(l.took, max(l.packets, 1)-1)
		l.rest = l.due - before
	}
	if l.slot != 0 {
		l.wait(noHurry)
	}
}

func (l subject) identity(qp uint32, port uint16) identity {
	return makeIdentity(qp, port, l.flags&varies != 0, l.flags&unreliable != 0)
}
