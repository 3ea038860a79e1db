package pairing

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/pairing/store"
)

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
	behind, depth := (s.High()-psn)&psnMask, uint32(0)
	full := true
	for i := range store.AskedRing {
		e := f.Asked(i)
		if e == 0 {
			full = false
			break
		}
		if e&psnMask == psn {
			return yes
		}
		if d := (s.High() - e) & psnMask; d < psnHalf {
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
		if d := (s.High() - e) & psnMask; d < psnHalf {
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
