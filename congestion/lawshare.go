package congestion

// LawShare is the law's state of all flows of one sender in a class. F is the fair rate of a sender: a sender below it isn't asked, whatever it sends by one flow. Of one
// that is above it, those flows are asked that are above their level, the fair rate among them, which is found as F is: the level is divided again and again by what
// part of F would arrive if each flow obeyed it. The zero LawShare is that of a new sender.
type LawShare struct {
	LawFlow         // of all flows together
	obeyed  float32 // what would have come in this window if each flow had obeyed the level, divided by F, ns
	largest float32 // rate of the fastest flow in this window
	part    float32 // that the level is of F; 0: all of it
	Last    int64   // time of the last packet, ns
}

const lawLeastPart = 1e-6

// Arrives takes a packet of a flow, at a time (ns). It returns the level, and the bytes that would come if the sender obeyed F. `ended` reports whether a window has
// ended, so that the sender's rate is another one. wholeBursts: windows don't end within a burst, since the rates at several workers are added up, with their errors.
func (s *LawShare) Arrives(now int64, bytes uint32, f *LawFlow, fair float64, wholeBursts bool) (level, obeyed float64, ended bool) {
	gap := int64(lawWindowGap)
	if wholeBursts {
		gap = now - s.Last
	}
	s.Last = now
	window, ended := s.add(now, bytes, gap)
	if f.rate > s.largest { // the same as max, which heeds NaN and signs of 0, for a third of the instructions
		s.largest = f.rate
	}
	switch {
	case s.part == 0:
		s.part = 1
	case ended:
		s.divide(window, fair)
		s.obeyed, s.largest = 0, f.rate
	}
	level = s.Level(fair)
	obeyed = float64(bytes) * f.Share(now, level)
	s.obeyed += float32(obeyed / fair)
	if !f.Paused() {
		obeyed = float64(bytes) * s.Share(now, fair)
	}
	return level, obeyed, ended
}

// Level is the fair rate among the sender's flows.
func (s *LawShare) Level(fair float64) float64 { return fair * float64(s.part) }

// divide finds the next level, after a window (ns). The fastest flow may have at least what the others leave of F.
func (s *LawShare) divide(window int64, fair float64) {
	w := float32(window)
	part := s.part * min(w/max(s.obeyed, 1), 1+(lawUp-1)/lawPeriod*w)
	least := max(1-(s.rate-s.largest)/float32(fair), lawLeastPart)
	s.part = min(max(part, least), 1)
}
