package pairing

// note is what the worker keeps about a flow that has a place. The memory of flows that never had one stays untouched.
type note struct {
	first uint32 // first PSN of the requests, but at most maxSpan behind the highest
	high  uint32 // highest PSN that requests may have used: a READ uses as many as its response has packets
	began uint32 // packets of the record before the flow's present connection began
	took  uint32 // packets up to the one that confirmed the source QP; while it isn't confirmed, all

	odd     uint32 // PSN of the last packet that was out of character, with noteBit
	oddPort uint16 // and its UDP source port
	lease   uint16 // of the flow's place
	// While the flow waits for an answer: the PSN beyond which its mate must answer its requests, and that beyond which it must answer its
	// mate's, with noteBit. Either one will do. 0 where there are no such requests.
	mark, back uint32

	heard  uint32 // how far the mate's responses had come when silent last looked, with noteBit
	width  uint32 // most PSNs that were ever unanswered
	moved  uint32 // number of the packet that last changed the UDP source port, with noteBit; 0: none has
	seenCM uint32 // Pairing.cm.number when a claim about the flow was last looked for

	wanders uint8 // how often the UDP source port has changed of late
	skip    uint8 // responses to be left aside because they told nothing of late
	idle    uint8 // exponent of two of the pause between looks at responses
	asks    uint8 // place in the ring of PSNs that are to be acknowledged
	answers uint8 // place in the ring of PSNs that the last responses wait for
}

const (
	noteBit = 1 << 31
	maxSpan = 1 << 20 // PSNs behind the highest that a flow may go back to, or be answered for
	maxGap  = 64      // PSNs beyond the highest that a request may be: the ones between were lost before the gateway
	// firstSlack is how many PSNs a flow may have used before the first one seen: those packets were lost, or overtaken.
	firstSlack = 63
)

const (
	maxPace = 10 // at most 2^10 packets are between two judgements of a flow
	maxIdle = 6  // at least one in 2^6 responses is looked at
)

// soon has the flow judged with the packet at hand or the next one, and from then on as often as a new flow.
func (s *subject) soon() {
	s.t.pace = 1
	s.t.wait(0)
}

// sooner has the flow judged with the packet at hand or the next one, and from then on twice as often as before.
func (s *subject) sooner() {
	s.t.pace = max(s.t.pace, 2) - 1
	s.t.wait(0)
}

// later has the flow judged half as often as before.
func (s *subject) later() {
	s.t.pace = min(s.t.pace+1, maxPace)
	s.t.wait(1<<s.t.pace - 1)
}

// attend has every response looked at.
func (s *subject) attend() { s.n.idle, s.n.skip = 0, 0 }

// ignore leaves out twice as many responses as before. It is for flows in step, which responses don't tell apart.
func (s *subject) ignore() {
	s.n.idle = min(s.n.idle+1, maxIdle)
	s.n.skip = 1<<s.n.idle - 1
}

// pause notes how many packets it takes to confirm the source QP. While it is confirmed the flow is not judged.
func (s *subject) pause() {
	confirmed := s.answer().State() == Confirmed
	switch {
	case s.t.flags&sure != 0:
	case confirmed:
		s.n.took = max(s.n.took, max(s.t.packets, 1)-1)
		s.t.flags |= sure
	default:
		s.n.took = s.t.packets
	}
	if confirmed {
		s.t.wait(noHurry)
	}
}
