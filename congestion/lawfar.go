package congestion

// Far is what the law knows of a flow that loses packets. A sender that goes back to a lost packet repeats all that it has sent since. If little of what it sends between
// two such returns is new, and this gateway has dropped nothing, a queue overflows beyond the WAN. This gateway doesn't see it, and switches may mark nothing there. So
// the flow gets a limit, which is lowered with each such return, and grows steadily in between. A packet that is lost now and then sets none. The zero Far is that of no
// flow.
type Far struct {
	flow    uint32  // 0: none
	psn     uint32  // to which the sender has returned
	packets uint32  // since then
	bytes   float32 // since then
	at      int64   // when it has returned, ns
	round   int64   // time between the two returns that have set the limit, ns
	limit   float64 // bytes per ns; 0: none
	limited int64   // when that was set, ns
}

const (
	lawFarLeast  = 64            // packets between two returns, at least
	lawFarUseful = 0.5           // part of them that is new where no queue overflows
	lawFarCut    = 0.5           // of the rate between two returns: the limit
	lawFarGrowth = 32            // a limit grows by this part of F in a round
	lawFarRound  = 1_000_000_000 // ns, the longest time between two returns
)

// The parts of LawFlow.psn.
const (
	psnMask = 1<<24 - 1
	psnSeen = 1 << 24
	psnFar  = 1 << 25 // the sender has returned to a packet that it had sent before
	psnHeld = 1 << 26 // since then, this gateway has dropped or delayed a packet
)

// Return is what the PSN of a packet shows.
type Return uint8

const (
	NeverReturned   Return = iota // the sender has sent nothing twice
	ReturnedBefore                // to a packet that it had sent before
	ReturnsHere                   // with this packet, and the reason may be what this gateway has dropped
	ReturnsFromAfar               // with this packet, and this gateway has dropped nothing
)

// Returns takes the PSN of a packet that its receiver acknowledges. held reports whether this gateway drops or delays it.
func (f *LawFlow) Returns(psn uint32, held bool) (r Return) {
	switch back := f.psn&psnSeen != 0 && (psn-f.psn-1)&psnMask > psnMask/2; {
	case back && f.psn&psnHeld != 0:
		r = ReturnsHere
	case back:
		r = ReturnsFromAfar
	case f.psn&psnFar != 0:
		r = ReturnedBefore
	}
	if r >= ReturnsHere {
		f.psn = f.psn&^psnHeld | psnFar
	}
	if held {
		f.psn |= psnHeld
	}
	f.psn = f.psn&^psnMask | psnSeen | psn&psnMask
	return r
}

// Limit takes a packet of a flow whose sender has returned to a packet, with this one or before. It returns the flow's limit, 0 if it has none.
func (r *Far) Limit(c *LawState, b Return, flow, psn, bytes uint32) float64 {
	if r.flow != flow {
		if b < ReturnsHere {
			return 0
		}
		*r = Far{flow: flow, psn: psn, at: c.Now}
	}
	limit := r.grown(c)
	if elapsed := c.Now - r.at; b >= ReturnsHere && (r.packets >= lawFarLeast || elapsed > lawFarRound) {
		fresh := (psn - r.psn) & psnMask
		if b == ReturnsFromAfar && elapsed <= lawFarRound && float64(fresh) < lawFarUseful*float64(r.packets) {
			rate := float64(r.bytes) / float64(elapsed)
			if limit > 0 {
				rate = min(rate, limit)
			}
			limit = lawFarCut * rate
			r.limit, r.limited, r.round = limit, c.Now, elapsed
		}
		r.psn, r.packets, r.bytes, r.at = psn, 0, 0, c.Now
	}
	r.packets++
	r.bytes += float32(bytes)
	return limit
}

// grown is the limit by now.
func (r *Far) grown(c *LawState) float64 {
	if r.limit == 0 {
		return 0
	}
	limit := r.limit + c.Fair/lawFarGrowth*float64(c.Now-r.limited)/float64(r.round)
	if limit > c.Law.Line {
		r.limit, limit = 0, 0
	}
	return limit
}
