package congestion

// LawShare is the law's state of all flows of one sender in a class. F is the fair rate of a sender: a sender below it isn't asked, whatever it sends by one flow. Of one
// that is above it, those flows are asked that are above their level, the fair rate among them, which is found as F is: the level is divided again and again by what
// part of F would arrive if each flow obeyed it. The zero LawShare is that of a new sender.
//
// A sender's packets come in bursts: those of one poll count as one. Its windows begin and end with the first packet of a burst. In n bursts a sender has sent what it may send from
// the first one to the last one, or to the next one: so a rate is known to within one burst, whatever the time, and the longer that is, the better. A sender is above F for sure if it
// is without one burst of a window, or if a bucket that takes one burst, and drains at F, is full.
type LawShare struct {
	LawFlow         // of all flows together
	obeyed  float32 // what would have come in this window if each flow had obeyed the level, divided by F, ns
	largest float32 // rate of the fastest flow in this window
	part    float32 // that the level is of F; 0: all of it
	burst   uint32  // bytes that have arrived at the time of the last packet
	most    uint32  // bytes of the largest burst of the last windows, before it
	bucket  float32 // bytes in the bucket, divided by F, ns
	least   float32 // rate that the sender has for sure
	Last    int64   // time of the last packet, ns
}

const (
	lawLeastPart = 1e-6
	lawBurstAges = 8 // a burst counts this part less in each window after it
)

// Arrives takes a packet of a flow, at a time (ns). It returns the level, and the bytes that would come if the sender obeyed F. If a window has ended, it returns how long that took (ns),
// and the sender's rate is another one: Judge is to be called.
func (s *LawShare) Arrives(now int64, bytes uint32, f *LawFlow, fair float64) (level, obeyed float64, window int64, ended bool) {
	if now != s.Last {
		s.most = max(s.most, s.burst)
		s.Last, s.burst = now, 0
	}
	window, ended = s.add(now, bytes, s.burst)
	s.burst += bytes
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
	return level, obeyed, window, ended
}

// Judge finds the least rate of the sender after a window (ns).
func (s *LawShare) Judge(window int64, fair float64) {
	s.most = max(s.most, s.burst)
	w, f, burst := float32(window), float32(fair), float32(s.most)
	s.most -= s.most / lawBurstAges
	s.bucket = max(s.bucket+(s.rate/f-1)*w, 0)
	if s.least = s.rate; s.bucket*f >= burst {
		s.bucket = burst / f
	} else {
		s.least -= burst / w
	}
}

// Over reports whether the sender is above F for sure.
func (s *LawShare) Over(fair float64) bool { return float64(min(s.least, s.rate)) > lawOver*fair }

// Level is the fair rate among the sender's flows.
func (s *LawShare) Level(fair float64) float64 { return fair * float64(s.part) }

// divide finds the next level, after a window (ns). The fastest flow may have at least what the others leave of F.
func (s *LawShare) divide(window int64, fair float64) {
	w := float32(window)
	part := s.part * min(w/max(s.obeyed, 1), 1+(lawUp-1)/lawPeriod*w)
	least := max(1-(s.rate-s.largest)/float32(fair), lawLeastPart)
	s.part = min(max(part, least), 1)
}
