package pairing

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Routine scans packets, beginning at number from. It counts those without new evidence, which are most packets of confirmed flows, and
// stops at the first one that may have some. It returns that packet's number, or len(flows) if there is none. flows[i] is the flow of
// packet i, from Lookup; none for a CNP, at which Routine doesn't stop. The caller passes the packet to Observe, if it has a flow, before it calls Routine again.
//
// A request with the PSN of the last one gives no new evidence. For a confirmed flow, neither does a request a few PSNs ahead of the last
// one, or a response near the last one that was observed; for a flow that waits for a slot, no packet until its next attempt.
func (l *Learner) Routine(flows []flowtable.Ref, packets []packet.Record, from int) int {
	packets = packets[:len(flows)]
	for n := from; n < len(flows); n++ {
		if assembly {
			n = countRoutine(unsafe.SliceData(l.tracks), l.table.States(), packet.Roles(), flows, packets, n)
		}
		if n < len(flows) && !l.routine(flows[n].Index, &packets[n]) {
			return n
		}
	}
	return len(flows)
}

// routine counts a packet without new evidence. It reports whether the packet is one.
func (l *Learner) routine(x flowtable.Index, p *packet.Record) bool {
	if x == flowtable.None && p.Opcode == packet.CNP {
		return true
	}
	t, s := l.trackOf(x), uint32(l.table.State(x))
	if s != t.known || t.left() <= 1 || p.Len >= longFrame {
		return false
	}
	role, psn := p.Opcode.Role(), p.PSN
	if p.SrcPort != t.port && role != packet.NoRole {
		return false
	}
	waits := s == known(0) && t.slot == 0
	switch role {
	case packet.Request:
		if psn == t.last {
			break
		}
		if waits {
			t.last = psn
			break
		}
		// Both in the same block of coarse PSNs; with inexact in last they never are.
		if psn-t.last >= coarse || (psn^t.last) >= coarse || !Answer(s&^knownBit).Usable() {
			return false
		}
		t.last = psn
	case packet.Response:
		if !waits && (t.acked&ackedBit == 0 || (psn-t.acked+backMargin+1)&packet.PSNMask > backMargin+coarse) {
			return false
		}
	case packet.NoRole:
		if p.DestQP() == packet.GSIQP {
			return false
		}
	default:
		return false
	}
	t.count(p.Len)
	return true
}
