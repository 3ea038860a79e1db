package pairing

import "math/bits"

const (
	askedRing = 8
	askedBit  = 1 << 31
)

// certainty is yes, no, or not known.
type certainty uint8

const (
	unknown certainty = iota
	no
	yes
)

// noteAsked records that the current packet asks for an acknowledgement.
func (s *subject) noteAsked() {
	s.pl.p.asked[s.pl.k][s.n.asks%askedRing].Store(s.p.PSN | askedBit)
	if s.n.asks++; s.n.asks == 0 {
		s.n.asks = askedRing // 0 is for an empty ring
	}
}

// forgetAsked clears the PSNs for which the flow asked: they are not recorded while the flow is paired, and a gap in the record is no
// rhythm.
func (s *subject) forgetAsked() {
	if s.n.asks == 0 {
		return
	}
	s.n.asks = 0
	for i := range s.pl.p.asked[s.pl.k] {
		s.pl.p.asked[s.pl.k][i].Store(0)
	}
}

// askedFor reports whether the flow has asked for an acknowledgement of a PSN (AckReq); unknown if the PSN is older than what the ring
// remembers. Responders mostly acknowledge such PSNs, so an ACK is evidence for a flow that has asked for it, and against one that has not.
func (pl *Slot) askedFor(s sentWord, psn uint32) certainty {
	behind, depth := (s.high()-psn)&psnMask, uint32(0)
	full := true
	for i := range pl.p.asked[pl.k] {
		e := pl.p.asked[pl.k][i].Load()
		if e == 0 {
			full = false
			break
		}
		if e&psnMask == psn {
			return yes
		}
		if d := (s.high() - e) & psnMask; d < psnHalf {
			depth = max(depth, d)
		}
	}
	if full && behind > depth {
		return unknown
	}
	return no
}

// gaps has the n distances between a flow's last PSNs with AckReq, the oldest first, and their sum.
func (pl *Slot) gaps() (g [askedRing]uint32, n int, sum uint32) {
	s := pl.sent()
	for i := range pl.p.asked[pl.k] {
		e := pl.p.asked[pl.k][i].Load()
		if e == 0 {
			break
		}
		if d := (s.high() - e) & psnMask; d < psnHalf {
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
func (p *Pairing) ownRhythm(pl *Slot) bool {
	mine, n, _ := pl.gaps()
	if n < gapsCompared {
		return false
	}
	others := 0
	for m := range pl.own() {
		o, ok := p.occupied(pl.g, pl.side, m)
		if m == pl.n || !ok || !o.sent().valid() {
			continue
		}
		theirs, k, _ := o.gaps()
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
func (pl *Slot) sparseness() int {
	_, n, sum := pl.gaps()
	if n == 0 {
		return 0
	}
	return max(bits.Len32(sum/uint32(n))-1, 0)
}

// shareRun reports whether gaps contain run.
func shareRun(run, gaps []uint32) bool {
	for i := 0; i+len(run) <= len(gaps); i++ {
		same := true
		for j, g := range run {
			same = same && g == gaps[i+j]
		}
		if same {
			return true
		}
	}
	return false
}
