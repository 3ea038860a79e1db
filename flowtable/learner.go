package flowtable

// learner is what the owner of a flow keeps about its pairing besides its track.
type learner struct {
	slot      uint32 // the flow's place, 0 for none
	first     uint32 // PSN of the first request seen, or 2^20 behind the highest
	span      uint32 // PSNs behind exact that requests may have used: a READ uses as many as its response has packets
	took      uint32 // packets that it took to confirm the source QP: all until then
	rest      uint16 // packets that were left until the next judgement when the source QP was confirmed
	flags     uint8
	pace      uint8 // exponents of two: bits 0-3 of the pause between judgements, 4-7 of that between looks at responses
	skip      uint8 // responses to be left aside because they told nothing of late
	asks      uint8 // place in the ring of PSNs that are to be acknowledged
	transport uint8 // opcode >> 5 of the last packet that was observed
}

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
func (l *learner) soon(k *track) {
	l.pace, l.rest = l.pace&^15|1, 1
	k.wait(0)
}

func (l *learner) sooner(k *track) {
	l.pace = l.pace&^15 | max(l.pace&15, 2) - 1
	k.wait(0)
}

func (l *learner) later(k *track) {
	l.pace = l.pace&^15 | min(l.pace&15+1, maxStep)
	k.wait(1<<(l.pace&15) - 1)
}

// attend has every response looked at; ignore leaves aside twice as many as of last, where flows in step can't be told apart.
func (l *learner) attend() { l.pace, l.skip = l.pace&15, 0 }

func (l *learner) ignore() {
	idle := min(l.pace>>4+1, maxIdle)
	l.pace, l.skip = l.pace&15|idle<<4, 1<<idle-1
}

// high is the highest PSN that requests may have used.
func (l *learner) high(k *track) uint32 { return (k.exact + l.span) & psnMask }

// note notes the last request's PSN, and how many behind it it takes.
func (l *learner) note(k *track, psn, span uint32) {
	k.exact, l.span = psn, span
	if span != 0 {
		k.exact |= unsettled
	}
}

func (l *learner) identity(qp uint32, port uint16) identity {
	return makeIdentity(qp, port, l.flags&varies != 0, l.flags&unreliable != 0)
}
