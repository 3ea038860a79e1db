package flowtable

import (
	"github.com/cnpgate/cnpgate/internal/packet"
)

const (
	psnMask    = 1<<24 - 1
	psnHalf    = 1 << 23
	maxSpan    = 1 << 20 // PSNs behind the highest that an acknowledgement may be for
	maxGap     = 1 << 16 // PSNs a flow may skip or go back without being another connection
	nearGap    = 64      // the same where a pair was learned from PSNs or ports
	coarse     = 16      // PSNs between two stores of a confirmed flow
	margin     = 2 * coarse
	backMargin = 3 * coarse // PSNs behind an acknowledged one that a sender may go back to: acknowledgements get lost
	firstSlack = 63         // PSNs before the first seen one that may have been sent: lost, or overtaken
	burstWork  = 2048       // comparisons a table does for pairing in one burst
	dreqLinger = 1e9        // ns that packets after a DREQ still belong to its connection
)

// Routine counts packets that say nothing new, which most do once source QPs are known, and returns the number of the first that may
// say something, from a number on; all of them if there is none. flows[k] is the flow of the packet parsed[of[k]], as Lookup has found
// it; what Routine stops at is for Observe before it goes on.
//
// A request with the PSN of the last one says nothing new, nor, of a confirmed flow, does one that goes on where the last one ended, or a
// response about as good as the last one.
func (t *Table) Routine(flows []Index, of []uint8, parsed *[maxBurst]packet.Parsed, from int) int {
	of = of[:len(flows)]
	for n := from; n < len(flows); n++ {
		x, p := flows[n], &parsed[of[n]%maxBurst]
		k, s := t.trackOf(x), state(t.entryOf(x).state.Load())
		if uint32(s) != k.known || k.left() <= 1 || p.Len >= longFrame {
			return n
		}
		role, psn := p.Opcode.Role(), p.PSN
		if p.SrcPort != k.port && role != packet.NoRole {
			return n
		}
		switch role {
		case packet.Request:
			if psn == k.exact {
				break
			}
			// Within one block of coarse PSNs, which no PSN with unsettled is.
			if psn-k.exact >= coarse || (psn^k.exact) >= coarse || !s.usable() {
				return n
			}
			k.exact = psn
		case packet.Response:
			if k.acked&ackedBit == 0 || (psn-k.acked+backMargin+1)&psnMask > backMargin+coarse {
				return n
			}
		case packet.NoRole:
			if p.DestQP == packet.GSIQP {
				return n
			}
		default:
			return n
		}
		k.take(p.Len)
	}
	return len(flows)
}

// Observe counts a packet of a connection, the flow of which Lookup has found, and learns from it: b is the frame that p was parsed
// from. It is for the owner, once a packet that Routine stops at, between a Lookup and the next.
func (t *Table) Observe(x Index, p *packet.Parsed, b []byte, now int64) {
	if x == None {
		return
	}
	t.tally(x, p.Len)
	k, role := &t.tracks[x], p.Opcode.Role()
	if role == packet.NoRole && p.SourceQP == 0 && p.DestQP > packet.GSIQP {
		return // RD, or forged: not of the connection that the key looks like
	}
	k.transport = uint8(p.Opcode) >> 5
	was, s := state(k.known), state(t.entries[x].state.Load())
	k.known = uint32(s)
	if role == packet.NoRole || p.DestQP <= packet.GSIQP || t.pairing == nil {
		k.port = p.SrcPort
		k.wait(noHurry)
		return
	}
	l := t.subject(x)
	l.pause(was, s)
	t.observe(x, l, s, p, b, now)
}

func (t *Table) observe(x Index, l subject, s state, p *packet.Parsed, b []byte, now int64) {
	role := p.Opcode.Role()
	if l.slot != 0 && !t.holds(x, l.slot) {
		l.slot = 0 // another flow has the place
		l.wait(0)
	}
	if l.slot == 0 {
		if !t.enter(x, l, p, now) {
			l.port = p.SrcPort
			if role != packet.Response && s.ending() == Open {
				t.requests(x, l, s, p, b)
			}
			return
		}
		l = t.subject(x)
	}
	if p.SrcPort != l.port {
		t.portChanged(x, l)
		l.port = p.SrcPort
		s = state(t.entries[x].state.Load())
	}
	if s.ending() != Open {
		return
	}
	if s.qpState() != Confirmed {
		l.acked = 0
	}
	if role == packet.Response {
		if t.answers(x, l, s, p, b) {
			l.sooner()
		}
	} else {
		t.requests(x, l, s, p, b)
	}
	if s.qpState() == Confirmed {
		l.flags |= sure
		return
	}
	if l.left() > 0 {
		return
	}
	l.later()
	t.judge(x, l, now)
}
