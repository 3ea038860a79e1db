package flowtable

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// sentWord is what a flow's requests have used of the PSNs: bits 0-23 the first, 24-47 the highest, 48 whether there were any.
type sentWord uint64

func makeSent(first, high uint32) sentWord { return sentWord(first) | sentWord(high)<<24 | 1<<48 }

func (s sentWord) valid() bool   { return s>>48&1 != 0 }
func (s sentWord) first() uint32 { return uint32(s & psnMask) }
func (s sentWord) high() uint32  { return uint32(s>>24) & psnMask }

// width is how many PSNs of the 2^24 the flow's requests have used since they are seen, less one.
func (s sentWord) width() uint32 { return (s.high() - s.first()) & psnMask }

// has tells whether a response to psn may be one to this flow: it was sent, and not before the flow was seen first.
func (s sentWord) has(psn uint32) bool { return s.valid() && (s.high()-psn)&psnMask <= s.width() }

// may is has with room for what was sent before the flow was seen first.
func (s sentWord) may(psn uint32) bool {
	return s.valid() && (s.high()-psn)&psnMask <= s.width()+firstSlack
}

// ackWord is what a flow's responses have come to: bits 0-23 the last PSN that they answered, 24 whether there were any, 25-33 the
// one place of the other side that is left (plus 1; 0 for none or several), 34-41 advancing responses since, 42-49 those among them
// that are ACKs to a PSN for which one was asked, 50-54 the logarithm of the width of what it had sent when it was left.
type ackWord uint64

func makeAck(last uint32, sole int, agreeing, exact, width uint32) ackWord {
	return ackWord(last) | 1<<24 | ackWord(sole+1)<<25 | ackWord(min(agreeing, 255))<<34 | ackWord(min(exact, 255))<<42 | ackWord(width)<<50
}

func (a ackWord) valid() bool      { return a>>24&1 != 0 }
func (a ackWord) last() uint32     { return uint32(a & psnMask) }
func (a ackWord) sole() int        { return int(a>>25&0x1ff) - 1 }
func (a ackWord) agreeing() uint32 { return uint32(a >> 34 & 0xff) }
func (a ackWord) exact() uint32    { return uint32(a >> 42 & 0xff) }
func (a ackWord) width() uint32    { return uint32(a >> 50 & 0x1f) }

// answers takes a response of the flow: to a PSN that its peer must have sent. It tells whether it is time to judge.
func (t *Table) answers(x Index, l subject, s state, p *packet.Parsed, b []byte) bool {
	psn := p.PSN
	pl := t.pairing.placeOf(l.slot)
	a := pl.ack()
	if a.valid() && a.last() == psn {
		return false
	}
	if s.qpState() == Confirmed {
		t.check(x, l, &pl, a, p)
		return false
	}
	if l.skip > 0 {
		l.skip--
		return false
	}
	if t.eliminate(&pl, a, psn, isACK(p, b)) || pl.ack().sole() >= 0 {
		l.attend()
	} else {
		l.ignore()
	}
	now := pl.ack().agreeing()
	return now != a.agreeing() && now >= minAgreeing && now&(now-1) == 0
}

// check meets a response of a confirmed flow: if its mate has never sent that PSN, the pair is wrong; and if it goes back behind what
// was acknowledged, it belongs to another connection. READ and atomic responses may be sent again, acknowledgements never go back.
func (t *Table) check(x Index, l subject, pl *place, a ackWord, p *packet.Parsed) {
	ahead := (p.PSN - a.last()) & psnMask
	if a.valid() && (ahead < coarse || ahead >= psnMask-backMargin) {
		return // as good as the last one
	}
	learned := state(t.entries[x].state.Load()).evidence() >= EvidenceCM
	if a.valid() && ahead >= psnHalf {
		if learned && p.Opcode.Headers()&packet.HasAETH != 0 && !p.Opcode.HasPayload() && p.Opcode.Headers()&packet.HasAtomicAckETH == 0 {
			t.reused(x)
		}
		return
	}
	if mate, ok := t.pairing.mateOf(pl); ok {
		sent := mate.sent()
		if !sent.valid() && learned {
			t.reused(x)
			return
		}
		if beyond := (p.PSN - sent.high()) & psnMask; sent.valid() && beyond > margin && beyond < psnHalf {
			t.contradict(pl)
			return
		}
	}
	l.acked = p.PSN | ackedBit
	pl.p.ack[pl.k].Store(uint64(makeAck(p.PSN, a.sole(), a.agreeing(), a.exact(), a.width())))
}

// contradict demotes a pair at once, and rules out for both flows every partner that there is at this moment: what has misled once
// is not asked again. RDMA-CM, a human, or a flow that begins later may say more. What a human said stands.
func (t *Table) contradict(pl *place) {
	t.contradictions++
	t.dirty = true
	pl.p.lost[pl.k].Add(1)
	if _, s := t.pairing.entryOf(pl.owner()); s.settled() && s.evidence() != EvidenceCM {
		return
	}
	mate, ok := t.pairing.part(pl)
	t.pairing.withdraw(pl)
	t.pairing.bar(pl)
	if ok {
		mate.p.lost[mate.k].Add(1)
		t.pairing.withdraw(&mate)
		t.pairing.bar(&mate)
	}
}

// bar rules everything out for a place.
func (p *Pairing) bar(pl *place) {
	for i := range pl.p.row[pl.k] {
		pl.p.row[pl.k][i].Store(0)
	}
}

// scan is one response compared with the flows that it might answer.
type scan struct {
	psn   uint32
	fresh bool // it answers more than all before
	left  int  // flows that are left
	sole  int  // the last of them
	width uint32
	asked answer
}

// eliminate rules out, for the flow at pl that has just answered psn, every flow of the other side that has not sent it. It tells
// whether there were any.
func (t *Table) eliminate(pl *place, a ackWord, psn uint32, positive bool) (any bool) {
	ahead := (psn - a.last()) & psnMask
	s := scan{psn: psn, fresh: !a.valid() || ahead < psnHalf, sole: -1}
	used := int(pl.g.used[1-pl.side].Load())
	for w := 0; w*64 < used; w++ {
		row := pl.p.row[pl.k][w].Load()
		if t.work -= bits.OnesCount64(row); t.work < 0 {
			t.skipped++
			t.dirty = true
			return any
		}
		if out := t.scanWord(pl, w, row, used, &s); out != 0 {
			pl.p.row[pl.k][w].And(^out)
			t.taken[EvidencePSN] += uint64(bits.OnesCount64(out))
			t.dirty, any = true, true
		}
	}
	if s.left == 1 && s.fresh && positive {
		if o, ok := t.pairing.at(pl.g, 1-pl.side, s.sole); ok {
			s.asked = o.askedFor(o.sent(), psn)
		}
	}
	pl.p.ack[pl.k].Store(uint64(s.result(a)))
	return any
}

// scanWord compares a response with the flows of one word of a row, and returns those to be ruled out.
func (t *Table) scanWord(pl *place, w int, row uint64, used int, s *scan) (out uint64) {
	for ; row != 0; row &= row - 1 {
		n := w*64 + bits.TrailingZeros64(row)
		o, ok := t.pairing.at(pl.g, 1-pl.side, n)
		if !ok || n >= used {
			break
		}
		if o.owner() == 0 {
			continue
		}
		if sent := o.sent(); sent.may(s.psn) {
			s.left, s.sole, s.width = s.left+1, n, sent.width()
		} else {
			out |= row & -row
		}
	}
	return out
}

// result is what a flow's responses have come to after one more.
func (s *scan) result(a ackWord) ackWord {
	last := s.psn
	if !s.fresh {
		last = a.last()
	}
	if s.left != 1 {
		return makeAck(last, -1, 0, 0, 0)
	}
	agreeing, exact, width := uint32(0), uint32(0), uint32(bits.Len32(s.width))
	if s.sole == a.sole() {
		agreeing, exact, width = a.agreeing(), a.exact(), a.width()
	}
	if s.fresh {
		agreeing++
	}
	switch s.asked {
	case yes:
		exact++
	case no:
		exact = 0
	}
	return makeAck(last, s.sole, agreeing, exact, width)
}

// isACK tells whether a response is a positive acknowledgement and nothing else.
func isACK(p *packet.Parsed, b []byte) bool {
	at := int(p.Ext)
	return p.Opcode.Headers() == packet.HasAETH && !p.Opcode.HasPayload() && at < len(b) && b[at]>>5 == 0
}
