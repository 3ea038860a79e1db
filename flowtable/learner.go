package flowtable

import "github.com/cnpgate/cnpgate/internal/packet"

// learner is what the owner of a flow keeps about its pairing: half a cache line a flow.
type learner struct {
	slot  uint32 // the flow's place, 0 for none
	first uint32 // PSN of the first request seen, or 2^20 behind the highest
	exact uint32 // highest PSN that a request carried
	high  uint32 // highest PSN that requests may have used: a READ uses as many as its response has packets
	acked uint32 // PSN that a confirmed flow's responses have come to, and ackedBit
	took  uint32 // packets that it took to confirm the source QP: all until then
	port  uint16 // UDP source port
	wait  uint16 // packets until the next judgement
	flags uint8
	pace  uint8 // exponents of two: bits 0-3 of the pause between judgements, 4-7 of that between looks at responses
	skip  uint8 // responses to be left aside because they told nothing of late
	asks  uint8 // place in the ring of PSNs that are to be acknowledged
}

const ackedBit = 1 << 31

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

// soon has the flow judged with its next packet, sooner and later in half and twice the time of last.
func (l *learner) soon() { l.wait, l.pace = 1, l.pace&^15|1 }

func (l *learner) sooner() { l.wait, l.pace = 1, l.pace&^15|max(l.pace&15, 2)-1 }

func (l *learner) later() {
	l.pace = l.pace&^15 | min(l.pace&15+1, maxStep)
	l.wait = 1<<(l.pace&15) - 1
}

// attend has every response looked at; ignore leaves aside twice as many as of last, where flows in step can't be told apart.
func (l *learner) attend() { l.pace, l.skip = l.pace&15, 0 }

func (l *learner) ignore() {
	idle := min(l.pace>>4+1, maxIdle)
	l.pace, l.skip = l.pace&15|idle<<4, 1<<idle-1
}

// routine takes a packet that says nothing new of a confirmed flow, and tells whether it did: a request that goes on where the last one
// ended, a response about as good as the last one.
func (l *learner) routine(role packet.Role, psn uint32) bool {
	if l.flags&sure == 0 {
		return false
	}
	switch role {
	case packet.Request:
		ahead := (psn - l.exact) & psnMask
		if ahead == 0 {
			return true
		}
		if l.high != l.exact || ahead > nearGap || psn/coarse != l.exact/coarse || l.flags&sends == 0 {
			return false
		}
		l.exact, l.high = psn, psn
		return true
	case packet.Response:
		ahead := (psn - l.acked) & psnMask
		return l.acked&ackedBit != 0 && (ahead < coarse || ahead >= psnMask-backMargin)
	}
	return false
}

// again takes a request with the PSN of the last, which says nothing new of an unconfirmed flow, and tells whether it was one.
func (l *learner) again(psn uint32) bool {
	if psn != l.exact || l.wait <= 1 || l.slot == 0 || l.flags&sends == 0 || l.took == 1<<32-1 {
		return false
	}
	l.wait--
	l.took++
	return true
}

func (l *learner) identity(qp uint32) identity {
	return makeIdentity(qp, l.port, l.flags&varies != 0, l.flags&unreliable != 0)
}
