package pairing

import (
	"math/bits"
	"slices"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/store"
)

const (
	maxExact    = 40      // maximum evidence in bits of ACKs in the rhythm of a flow
	farApart    = 1 << 16 // PSNs; flows farther apart than this began with random PSNs
	minAgreeing = 4       // responses to PSNs that only one flow can have sent, before they count
)

// psnRule finds the peer flow by elimination: the only flow of the other side that can have sent the PSNs of this one's responses, if no
// other flow of this side can respond to it.
func psnRule(all answers, f *store.View) (peer store.View, ok bool) {
	t := f.Elimination()
	if t.Only() < 0 || t.Agreeing < minAgreeing {
		return peer, false
	}
	peer, ok = f.Other(t.Only())
	return peer, ok && peer.May(f.Number()) && columnIs(all, &peer, f.Number()) && bothWays(f, &peer)
}

// columnIs reports whether the flow at slot n of the other side is the only one there that may respond to the flow at f.
func columnIs(all answers, f *store.View, n int) bool {
	for m := range f.Others() {
		o, ok := f.Other(m)
		if m != n && ok && o.Ack().Valid() && o.May(f.Number()) && f.May(m) && !respondsToAnother(all, &o, f) {
			return false
		}
	}
	return true
}

// respondsToAnother reports whether a flow is confirmed as the peer flow of a flow other than f. The present peer flow of f may respond to
// it, also while f is suspended: otherwise anyone who sends responses for an invented QP could replace it.
func respondsToAnother(all answers, o, f *store.View) bool {
	peer, paired := o.Peer()
	if !paired || peer.Number() == f.Number() {
		return false
	}
	a, ok := all.of(o.Ref())
	return ok && a.Usable()
}

// bothWays reports whether the other direction agrees, too: if the flow at f has sent requests, the peer flow's responses must leave only
// this flow as their requester.
func bothWays(f, peer *store.View) bool {
	return !f.Sent().Valid() || peer.Ack().Valid() && peer.Elimination().Only() == f.Number()
}

// psnSure reports whether a responder and the only requester that is left for it are certainly a pair.
func psnSure(requester, responder *store.View) bool {
	requesters, _ := requesters(requester)
	responders, matched := responders(responder)
	evidence := agreement(requester, responder) + agreement(responder, requester)
	return enough(requester, responder, chance(evidence, requesters, responders, matched))
}

// agreement is the evidence in bits of the PSNs of one direction; 0 unless the requester is the only one left for the responder.
func agreement(requester, responder *store.View) int {
	t := responder.Elimination()
	if t.Only() != requester.Number() || t.Agreeing < minAgreeing {
		return 0
	}
	return startBits(requester, &t)
}

// startBits is the evidence in bits if responses agree with the requester. It assumes that flows begin with random PSNs: an unrelated flow
// agrees if the response falls by chance among the PSNs that it has sent, 2^width in 2^24. ACKs of exactly the PSNs with AckReq count more,
// the rarer such PSNs are. They count once if other flows ask at the same distances, since one coincidence then causes all others;
// otherwise they count each time. Flows that begin with PSNs near each other may always use the same PSNs at the same time. Then responses
// give no evidence.
func startBits(requester *store.View, t *store.Elimination) int {
	n, far := requesters(requester)
	if n > 1 && 4*far < 3*(n-1) || n == 1 && near0(requester.Sent().First()) {
		return 0
	}
	evidence := 24 - max(int(t.Width), bits.Len(firstSlack))
	if t.Exact < minAgreeing {
		return evidence
	}
	if ownRhythm(requester) {
		return evidence + min(sparseness(requester)*int(t.Exact), maxExact)
	}
	return evidence + sparseness(requester)
}

// near0 reports whether a PSN is near 0, so that the sender may have begun at 0 and not at random.
func near0(psn uint32) bool { return psn < farApart || psn >= packet.PSNMask-farApart }

// requesters counts the flows on f's side that have sent requests, and those of them whose PSNs are far from f's.
func requesters(f *store.View) (n, far int) {
	high := f.Sent().High()
	for m := range f.Own() {
		o, ok := f.Same(m)
		if !ok || !o.Sent().Valid() {
			continue
		}
		n++
		if d := (o.Sent().High() - high) & packet.PSNMask; d > farApart && d < packet.PSNMask-farApart {
			far++
		}
	}
	return n, far
}

// responders counts the flows on f's side that have sent responses, and those of them that have a peer flow or one requester left; f counts, too.
func responders(f *store.View) (n, matched int) {
	for m := range f.Own() {
		o, ok := f.Same(m)
		if !ok || !o.Ack().Valid() {
			continue
		}
		n++
		if o.Link() != 0 || o.Elimination().Only() >= 0 {
			matched++
		}
	}
	return n, matched
}

// certainty is yes, no, or not known.
type certainty uint8

const (
	unknown certainty = iota
	no
	yes
)

// noteAsked records that a request asks for an acknowledgement.
func (f *flow) noteAsked(psn uint32) {
	f.slot.SetAsked(int(f.asks)%store.AskedRing, psn|noteBit)
	if f.asks++; f.asks == 0 {
		f.asks = store.AskedRing // 0 is for an empty ring
	}
}

// forgetAsked clears the PSNs for which the flow asked: they are not recorded while the flow is paired, and a gap in the record is no
// rhythm.
func (f *flow) forgetAsked() {
	if f.asks == 0 {
		return
	}
	f.asks = 0
	f.slot.ForgetAsked()
}

// askedFor reports whether the flow has asked for an acknowledgement of a PSN (AckReq); unknown if the PSN is older than what the ring
// remembers. Responders mostly acknowledge such PSNs, so an ACK is evidence for a flow that has asked for it, and against one that has not.
func askedFor(f *store.View, psn uint32) certainty {
	s := f.Sent()
	behind, depth := (s.High()-psn)&packet.PSNMask, uint32(0)
	full := true
	for i := range store.AskedRing {
		e := f.Asked(i)
		if e == 0 {
			full = false
			break
		}
		if e&packet.PSNMask == psn {
			return yes
		}
		if d := (s.High() - e) & packet.PSNMask; d < packet.PSNHalf {
			depth = max(depth, d)
		}
	}
	if full && behind > depth {
		return unknown
	}
	return no
}

// gaps has the n distances between a flow's last PSNs with AckReq, the oldest first, and their sum.
func gaps(f *store.View) (g [store.AskedRing]uint32, n int, sum uint32) {
	s := f.Sent()
	for i := range store.AskedRing {
		e := f.Asked(i)
		if e == 0 {
			break
		}
		if d := (s.High() - e) & packet.PSNMask; d < packet.PSNHalf {
			g[n] = d
			n++
		}
	}
	sortDown(g[:n])
	if n == 0 {
		return g, 0, 0
	}
	sum = g[0] - g[n-1]
	for i := range n - 1 {
		g[i] -= g[i+1]
	}
	return g, n - 1, sum
}

func sortDown(v []uint32) {
	for i := 1; i < len(v); i++ {
		for j := i; j > 0 && v[j] > v[j-1]; j-- {
			v[j], v[j-1] = v[j-1], v[j]
		}
	}
}

const (
	gapsCompared = 5 // if two flows have this many gaps in a row in common, they ask at the same distances
	othersAsked  = 3 // this many other flows must have gaps before a rhythm counts as a flow's own
)

// ownRhythm reports whether a flow asks for acknowledgements at distances that no other flow of its side has.
func ownRhythm(f *store.View) bool {
	mine, n, _ := gaps(f)
	if n < gapsCompared {
		return false
	}
	others := 0
	for m := range f.Own() {
		o, ok := f.Same(m)
		if m == f.Number() || !ok || !o.Sent().Valid() {
			continue
		}
		theirs, k, _ := gaps(&o)
		if k < gapsCompared {
			continue
		}
		others++
		if shareRun(mine[n-gapsCompared:n], theirs[:k]) {
			return false
		}
	}
	return others >= othersAsked
}

// sparseness is the binary logarithm of the mean gap: one PSN in 2^sparseness asks for an acknowledgement.
func sparseness(f *store.View) int {
	_, n, sum := gaps(f)
	if n == 0 {
		return 0
	}
	return max(bits.Len32(sum/uint32(n))-1, 0)
}

// shareRun reports whether gaps contain run.
func shareRun(run, gaps []uint32) bool {
	for i := 0; i+len(run) <= len(gaps); i++ {
		if slices.Equal(run, gaps[i:i+len(run)]) {
			return true
		}
	}
	return false
}
