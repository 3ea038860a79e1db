package congestion

import "math/bits"

// The Congestion Levels (draft-tian 6.1: 0 no congestion, 255 maximum severity; the node decides on the scale) at the thresholds of a
// queue. Between them the level grows in proportion to the depth. With these numbers the draft's example (section 7: K_min 62.5 MB, K_max
// 125 MB) has the draft's levels: 20 at 30 MB, and 180 at 130 MB.
const (
	levelAtKMin = 42
	levelAtKMax = 177
	levelMost   = 255 // from 2 * K_max on
)

// Severity is the Congestion Level of a queue of this many bytes.
func (t Thresholds) Severity(depth uint64) uint8 {
	switch {
	case depth <= t.KMin:
		return between(0, levelAtKMin, depth, t.KMin)
	case depth <= t.KMax:
		return between(levelAtKMin, levelAtKMax, depth-t.KMin, t.KMax-t.KMin)
	}
	return between(levelAtKMax, levelMost, depth-t.KMax, t.KMax)
}

// between interpolates between two levels, rounded to the nearest; at the end of the range or beyond it returns the second one.
func between(from, to uint8, part, whole uint64) uint8 {
	if part >= whole {
		if part == 0 {
			return from
		}
		return to
	}
	hi, lo := bits.Mul64(part, uint64(to-from))
	lo, carry := bits.Add64(lo, whole/2, 0)
	steps, _ := bits.Div64(hi+carry, lo, whole)
	return from + uint8(steps)
}
