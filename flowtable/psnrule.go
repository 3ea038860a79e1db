package flowtable

import "math/bits"

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

// ackWord is what a flow's responses have come to: bits 0-23 the last PSN that they answered, 24 whether there were any, 25-33 the
// one place of the other side that is left (plus 1; 0 for none or several), 34-49 advancing responses since, 50-54 the logarithm of the
// width of what it had sent when it was left.
type ackWord uint64

func makeAck(last uint32, sole int, agreeing, width uint32) ackWord {
	return ackWord(last) | 1<<24 | ackWord(sole+1)<<25 | ackWord(min(agreeing, 1<<16-1))<<34 | ackWord(width)<<50
}

func (a ackWord) valid() bool      { return a>>24&1 != 0 }
func (a ackWord) last() uint32     { return uint32(a & psnMask) }
func (a ackWord) sole() int        { return int(a>>25&0x1ff) - 1 }
func (a ackWord) agreeing() uint32 { return uint32(a >> 34 & 0xffff) }
func (a ackWord) width() uint32    { return uint32(a >> 50 & 0x1f) }

// answers takes a response of the flow x: to a PSN that its peer must have sent.
func (t *Table) answers(l *learner, s state, psn uint32) {
	pl := t.pairing.placeOf(l.slot)
	a := pl.ack()
	if a.valid() && a.last() == psn {
		return
	}
	if s.qpState() == Confirmed {
		t.check(&pl, a, psn)
		return
	}
	t.eliminate(&pl, a, psn)
}

// check meets a response of a confirmed flow: if its mate has never sent that PSN, the pair is wrong.
func (t *Table) check(pl *place, a ackWord, psn uint32) {
	if m := pl.mate(); m >= 0 {
		mate, ok := t.pairing.at(pl.g, 1-pl.side, m)
		if ok && mate.owner() != 0 {
			sent := mate.sent()
			if beyond := (psn - sent.high()) & psnMask; sent.valid() && beyond > margin && beyond < psnHalf {
				t.contradict(pl)
				return
			}
		}
	}
	if ahead := (psn - a.last()) & psnMask; !a.valid() || ahead >= coarse && ahead < psnHalf {
		pl.p.ack[pl.k].Store(uint64(makeAck(psn, a.sole(), a.agreeing(), a.width())))
	}
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

// eliminate rules out, for the flow at pl that has just answered psn, every flow of the other side that has not sent it.
func (t *Table) eliminate(pl *place, a ackWord, psn uint32) {
	left, sole, width := 0, -1, uint32(0)
	used := int(pl.g.used[1-pl.side].Load())
	for w := range rowWords {
		row := pl.p.row[pl.k][w].Load()
		if row == 0 || w*64 >= used {
			continue
		}
		if t.work -= bits.OnesCount64(row); t.work < 0 {
			t.skipped++
			return
		}
		out := uint64(0)
		for rest := row; rest != 0; rest &= rest - 1 {
			n := w*64 + bits.TrailingZeros64(rest)
			o, ok := t.pairing.at(pl.g, 1-pl.side, n)
			if !ok || n >= used {
				break
			}
			if o.owner() == 0 {
				continue
			}
			if s := o.sent(); s.has(psn) {
				left, sole, width = left+1, n, s.width()
			} else {
				out |= 1 << (n % 64)
			}
		}
		if out != 0 {
			pl.p.row[pl.k][w].And(^out)
			t.dirty = true
			t.taken[EvidencePSN] += uint64(bits.OnesCount64(out))
		}
	}
	t.agree(pl, a, psn, left, sole, width)
}

// agree counts responses that one flow alone can have asked for, as far as it is seen.
func (t *Table) agree(pl *place, a ackWord, psn uint32, left, sole int, width uint32) {
	if left != 1 {
		pl.p.ack[pl.k].Store(uint64(makeAck(psn, -1, 0, 0)))
		return
	}
	if sole != a.sole() {
		pl.p.ack[pl.k].Store(uint64(makeAck(psn, sole, 1, uint32(bits.Len32(width)))))
		return
	}
	n := a.agreeing()
	if ahead := (psn - a.last()) & psnMask; ahead < psnHalf {
		n++
	}
	pl.p.ack[pl.k].Store(uint64(makeAck(psn, sole, n, a.width())))
}
