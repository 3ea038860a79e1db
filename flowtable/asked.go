package flowtable

import "math/bits"

const (
	askedRing = 16
	askedBit  = 1 << 31
)

// answer is an answer that may be missing.
type answer uint8

const (
	unknown answer = iota
	no
	yes
)

// askedFor tells whether the flow has asked for the acknowledgement of a PSN, as far as it is remembered. Responders acknowledge
// such PSNs, by and large, so an ACK speaks for a flow that has asked for it and against one that has not.
func (pl *place) askedFor(s sentWord, psn uint32) answer {
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

// gaps are the distances between the PSNs that a flow asked to have acknowledged, those of the smallest PSNs first, and their sum.
func (pl *place) gaps() (g [askedRing]uint32, n int, sum uint32) {
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
	gapsCompared = 5 // gaps in a row that two flows have in common only if they do the same
	othersAsked  = 3 // flows that must be there to tell whether flows do the same
)

// ownRhythm tells whether a flow asks for acknowledgements at distances that are not those of the other flows between its hosts.
func (p *Pairing) ownRhythm(pl *place) bool {
	mine, n, _ := pl.gaps()
	if n < gapsCompared {
		return false
	}
	others := 0
	for m := range int(pl.g.used[pl.side].Load()) {
		o, ok := p.at(pl.g, pl.side, m)
		if m == pl.n || !ok || o.owner() == 0 || !o.sent().valid() {
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

// sparseness is how many PSNs go by for each that asks for an acknowledgement, as a logarithm.
func (pl *place) sparseness() int {
	_, n, sum := pl.gaps()
	if n == 0 {
		return 0
	}
	return max(bits.Len32(sum/uint32(n))-1, 0)
}

// shareRun tells whether run stands somewhere in gaps.
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
