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

// Routine goes over packets that say nothing new, which most do once source QPs are known, and returns the number of the first that may
// say something, from a number on; all of them if there is none. flows[k] is the flow of the packet parsed[of[k]], as Lookup has found
// it; what Routine stops at is for Observe, or ObserveCM, before it goes on.
func (t *Table) Routine(flows []Index, of []uint8, parsed *[maxBurst]packet.Parsed, from int) int {
	if t.pairing == nil {
		return len(flows)
	}
	of = of[:len(flows)]
	for k := from; k < len(flows); k++ {
		p, x := &parsed[of[k]%maxBurst], flows[k]
		role := p.Opcode.Role()
		if role == packet.NoRole && p.DestQP != packet.GSIQP {
			continue
		}
		l := &t.learners[x]
		if role == packet.NoRole || x == None || p.SrcPort != l.port && l.flags&varies == 0 {
			return k
		}
		if s := state(t.entries[x].state.Load()); s.usable() {
			if !l.routine(role, p.PSN) {
				return k
			}
		} else if role != packet.Request || s.ending() != Open || !l.again(p.PSN) {
			return k
		}
	}
	return len(flows)
}

// Observe learns from a packet of a connection, the flow of which Lookup has found: b is the frame that p was parsed from. It is
// for the owner, once a packet that Routine stops at, between a Lookup and the next.
func (t *Table) Observe(x Index, p *packet.Parsed, b []byte, now int64) {
	if x == None || p.Opcode.Role() == packet.NoRole || t.pairing == nil {
		return
	}
	t.observe(x, &t.learners[x], state(t.entries[x].state.Load()), p, b, now)
}

func (t *Table) observe(x Index, l *learner, s state, p *packet.Parsed, b []byte, now int64) {
	role := p.Opcode.Role()
	if s.qpState() != Confirmed && l.took < 1<<32-1 {
		l.took++
	}
	if l.slot != 0 && s.qpState() != Confirmed && !t.holds(x, l) {
		l.slot, l.wait = 0, 0 // another flow has the place
	}
	if l.slot == 0 && !t.enter(x, l, p, now) {
		if role != packet.Response && s.ending() == Open {
			t.requests(x, l, s, p, b)
		}
		return
	}
	if p.SrcPort != l.port {
		t.portChanged(x, l)
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
	if l.wait > 1 {
		l.wait--
		return
	}
	l.later()
	t.judge(x, l, now)
}
