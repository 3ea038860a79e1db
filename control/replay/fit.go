package replay

import (
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// fit is how the responses of one direction fit the requests of another.
type fit struct {
	responder, requester *directed
	before               uint32 // responses before the two were compared
	hits, ends           uint32 // responses to requests that had passed; those that asked for one like it
	rest                 uint32 // of hits, those behind the first response to a READ: its request says nothing of them
	early                uint32 // those to requests that may have passed soon
	firstEarly           uint32 // the PSN of the first of these
	delay                int64  // ns, their sum
	since                int64  // ns from the first request that was answered to its answer
	obeyed, ignored      int    // NAKs
	nak                  uint32 // plus 1
	nakAt                int64
	stuck                stuck
	points               int
}

// stuck is where a requester goes back again and again, of a candidate that answers it.
type stuck struct {
	psn     uint32 // plus 1
	high    uint32 // what was acknowledged when the first response came after that
	repeats bool   // one since acknowledged nothing new
}

func (f *fit) response(p *health.Packet, before uint32, again bool) {
	f.settle()
	if f.stuck.psn != f.requester.stuck {
		f.stuck = stuck{f.requester.stuck, before, false}
	}
	f.stuck.repeats = f.stuck.repeats || ahead(p.PSN, before) <= 0
	a, ok := f.requester.sent(p.PSN)
	if !ok && again {
		a, ok = f.requester.wentBack(), true
	}
	if !ok {
		if f.requester.soon(p.PSN) {
			if f.early++; f.early == 1 {
				f.firstEarly = p.PSN
			}
		}
		return
	}
	f.hits++
	switch data := p.Opcode == packet.RCReadRespFirst || p.Opcode == packet.RCReadRespOnly; {
	case p.Opcode == packet.RCReadRespMiddle || p.Opcode == packet.RCReadRespLast:
		f.rest++
	case a != nil && a.read == data:
		f.ends++
		f.delay += p.Time - a.at
		if f.since == 0 {
			f.since = p.Time - a.at
		}
	}
	if p.HasAETH && p.Syndrome>>5 == 3 && p.Syndrome&31 == 0 {
		f.nak, f.nakAt = p.PSN+1, p.Time
	}
}

// settle decides whether the latest NAK was obeyed: the requester went back to the packet that it asks for. The NAK may also be lost, so a long wait says
// nothing: it is asked before the next response.
func (f *fit) settle() {
	if f.nak == 0 {
		return
	}
	psn := f.nak - 1
	if b := &f.requester.back[psn%uint32(len(f.requester.back))]; b.psn == f.nak && b.at >= f.nakAt {
		f.obeyed++
	} else {
		f.ignored++
	}
	f.nak = 0
}

// judge counts what speaks for a pair. It reports false if the responses don't fit: most of a stranger's have PSNs that were not sent yet.
func (f *fit) judge(least int64) bool {
	f.settle()
	responses := f.responder.responses - f.before
	if (f.hits+f.early)*10 < responses*9 || f.before > 0 && f.ends < 2 { // what was answered before the requester began may be another one's
		return false
	}
	const nak, missing, end, near, scope = 8, 4, 4, 3, 1
	f.points = nak*(f.obeyed-2*f.ignored) - missing*int(responses-f.hits-f.early) - int(f.early)
	if f.ends*10 >= (f.hits-f.rest)*9 { // they answer the packets that ask for it
		f.points += end
	}
	if ahead(f.requester.next, f.responder.high) == 1 { // and the last one
		f.points += end
	}
	if f.ends > 0 && f.mean() <= 2*least {
		f.points += near
	}
	if f.requester.key.scope == f.responder.key.scope {
		f.points += scope
	}
	if f.inVain() {
		f.points -= 2 * nak
	}
	return true
}

// inVain reports whether the requester sends again and again, to the end, what the responder had acknowledged before, and the responder goes on with what is new as if
// nothing came again: it answers another one.
func (f *fit) inVain() bool {
	const enough = 3
	r, s := f.requester, &f.stuck
	return r.waits && r.tries >= enough && s.psn == r.stuck && !s.repeats && ahead(s.high, s.psn-1) >= 0
}

// answersNothing reports whether what the responses answer never came.
func (f *fit) answersNothing() bool { return f.hits == 0 && ahead(f.requester.next, f.firstEarly) <= 0 }

func (f *fit) mean() int64 { return f.delay / int64(max(f.ends, 1)) }
