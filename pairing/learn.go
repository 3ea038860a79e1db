package pairing

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// This file learns from the packets of flows that have no peer flow.

// learn learns from a packet of a flow that has no peer flow, and judges the flow if that is due.
func (f *flow) learn(p *arrival) {
	f.awaitPeer, f.awaitOwn, f.gap, f.peerAck, f.width = 0, 0, 0, 0, 0 // there is no peer flow to hear from
	if p.Opcode.Role() == packet.Response {
		f.learnResponse(p)
	} else {
		f.learnRequest(p)
	}
	// An unexpected packet causes no judgement: it may be the first one of another connection, but the evidence is about the old one.
	if f.lastUnexpected != 0 || f.left() > 0 {
		return
	}
	f.slower()
	f.judge(p)
}

func (f *flow) learnRequest(p *arrival) {
	begins := f.flags&sends == 0 && (p.SrcPort == f.port || f.portChanges == maxPortChanges)
	own := f.ofService(p) && (begins || f.flags&sends != 0 && f.within(p.PSN))
	switch f.classify(p, own, requestsApart) {
	case unexpected:
		return
	case another:
		if !f.startOver(p, own) {
			return
		}
	default:
		f.followPort(p)
	}
	f.noteRequest(p, true)
	if asksForACK(p) {
		f.noteAsked(p.PSN)
	}
}

// startOver clears what was learned about a flow, because another connection has its QP now. own: the new PSNs could also be the old
// connection's. It returns false without budget or lock; then the next packet tries again.
func (f *flow) startOver(p *arrival, own bool) bool {
	if !f.compare(f.slot.Others()) {
		return false
	}
	defer f.unlock()
	f.lastUnexpected, f.moved, f.began = 0, 0, milliseconds(p.now)
	f.asks, f.seenCM = 0, 0
	if f.portChanges = min(f.portChanges+1, maxPortChanges); !own {
		f.portChanges = 0
	}
	f.flags &^= sends
	f.noteService(p)
	f.last |= inexact
	f.port = p.SrcPort
	f.slot.Reset(f.identity(p.DestQP))
	f.restartPace()
	return true
}

// followPort records the new UDP source port of a flow whose PSNs continue as before. If the change is unusual it clears what was ruled
// out.
func (f *flow) followPort(p *arrival) {
	switch {
	case p.SrcPort == f.port:
	case f.portChanges == maxPortChanges:
		f.changePort(p)
	case f.compare((f.slot.Others() + 3) / 4): // the cost of a search for a slot; otherwise the next packet tries again
		f.notePort(p.SrcPort)
		f.slot.SetIdentity(f.identity(p.DestQP))
		f.slot.Forget()
		f.unlock()
	}
}

// learnResponse learns from a response. Its PSN was sent by the peer flow.
func (f *flow) learnResponse(p *arrival) {
	of := f.ofService(p)
	if fit := f.classify(p, of, responsesApart); fit == unexpected || fit == another && !f.startOver(p, of) {
		return
	}
	if p.SrcPort != f.port {
		f.followPort(p)
	}
	f.noteNext(p)
	ack := f.slot.AckBy(f.lease)
	if ack.Valid() && ack.Last() == p.PSN {
		return
	}
	if f.skip > 0 {
		f.skip--
		return
	}
	if !f.lock() {
		return
	}
	defer f.unlock()
	t := f.slot.EditElimination()
	before := t.Agreeing
	if f.eliminate(p, ack) || t.Only() >= 0 {
		f.readAll()
	} else {
		f.readFewer()
	}
	if t.Contradictions > 0 || t.Agreeing != before && t.Agreeing >= minAgreeing && t.Agreeing&(t.Agreeing-1) == 0 {
		f.faster()
	}
}

const (
	maxRetries = 8  // retries that increase the needed evidence
	maxWait    = 12 // log2 of the longest wait, responses
)

// exhausted is called when no flow is left. Either the peer flow doesn't pass through the gateway, or a forged packet or a loss has ruled
// it out. So it makes all flows possible again. Each time it first waits twice as long, so that there are few rounds, and each round needs
// one more bit of evidence.
func exhausted(slot *store.Slot) {
	t := slot.EditElimination()
	if t.Wait > 0 {
		t.Wait--
		return
	}
	t.Retries = min(t.Retries+1, maxWait)
	t.Restart()
	t.Wait = 1<<t.Retries - 1
	slot.Anyone()
}

// scan is the result of comparing one response with the flows of the other side.
type scan struct {
	psn   uint32
	fresh bool      // its PSN is higher than that of all responses before
	left  int       // flows that are not ruled out
	only  int       // slot of the last such flow
	width uint32    // of the PSNs that this flow has sent
	asked certainty // whether this flow has asked for this ACK
}

// eliminate rules out, as the peer flow of the flow that has just sent a response, every flow of the other side that has not used its PSN.
// It reports whether it ruled out any.
func (f *flow) eliminate(p *arrival, ack store.Ack) (any bool) {
	slot, l := &f.slot, f.l
	c := scan{psn: p.PSN, fresh: !ack.Valid() || (ack.Last()-p.PSN)&packet.PSNMask > backMargin, only: -1}
	used := slot.Others()
	for w := 0; w*64 < used; w++ {
		row := slot.Row(w)
		if !l.spend(bits.OnesCount64(row & (1<<min(used-w*64, 64) - 1))) {
			return any
		}
		if out := c.word(&slot.View, w, row, used); out != 0 {
			slot.RuleOut(w, out)
			l.counts.change().Evidence[EvidencePSN] += uint64(bits.OnesCount64(out))
			any = true
		}
	}
	if c.left == 0 && used > 0 { // without flows on the other side there was no round
		exhausted(slot)
	}
	if c.left == 1 && c.fresh && isACK(p) {
		if o, ok := slot.Opposite(c.only); ok {
			c.asked = askedFor(&o.View, c.psn)
		}
	}
	c.result(slot.EditElimination())
	if c.fresh {
		slot.PublishAck(f.lease, store.MakeAck(c.psn, f.lease))
	}
	return any
}

// word compares the response with the flows of one word of a flow's row, and returns a bit for each that is to be ruled out.
func (c *scan) word(f *store.View, w int, row uint64, used int) (out uint64) {
	for ; row != 0; row &= row - 1 {
		n := w*64 + bits.TrailingZeros64(row)
		if n >= used {
			break
		}
		o, ok := f.Other(n)
		if !ok {
			continue
		}
		if sent := o.Sent(); sent.May(c.psn) {
			c.left, c.only, c.width = c.left+1, n, sent.Width()
		} else {
			out |= row & -row
		}
	}
	return out
}

// result updates a round after one more response.
func (c *scan) result(t *store.Elimination) {
	if c.fresh {
		t.Plausible = min(t.Plausible, 254) + 1
		if c.left == 0 {
			t.Plausible = 0
		}
	}
	if c.left != 1 {
		t.OnlyIs, t.Agreeing, t.Exact, t.Width = 0, 0, 0, 0
		return
	}
	if c.only != t.Only() {
		t.OnlyIs, t.Agreeing, t.Exact, t.Width = uint16(c.only+1), 0, 0, uint8(bits.Len32(c.width))
	}
	if c.fresh {
		t.Agreeing = min(t.Agreeing, 254) + 1
	}
	switch c.asked {
	case yes:
		t.Exact = min(t.Exact, 254) + 1
	case no:
		t.Exact = 0
	}
}
