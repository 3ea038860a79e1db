package congestion

import "math"

// LawSender is what the law has learned of a sender, from notifications to it and the rates that follow. The zero LawSender has learned nothing.
type LawSender struct {
	Spacing float32 // of CNPs to a flow of it that is just above F, ns
	Delay   float32 // of the control loop: from a notification to the rate that follows, ns; 0: not known
	Effect  float32 // part by which a CNP lowers a flow's rate; 0: not known
	Line    float32 // the highest rate at which it may have sent a flow

	blind   uint8   // repeated requests for a rate while the loop's delay was not known, at most mostBlind
	checked bool    // the effect of what was sent was taken
	flow    uint32  // whose rate is watched, 0: none's
	at      int64   // since when, ns
	rate    float32 // that it had then
	below   float32 // a rate that shows that the request or the CNP at `at` has come to its sender, 0: none does
	cnps    float32 // whose effect is watched

	together float32 // rate of its flows above F, 0: not known
	bytes    float32 // of these since `since`
	since    int64   // ns
	known    uint32  // when `together` was first known, ticks; 0: never
	spaced   uint32  // when the spacing was adjusted, ticks
}

const (
	lawEffect       = 0.5 // of a CNP, at first and at most: DCQCN's first cut
	lawEffectLeast  = 0.005
	lawEffectShare  = 3         // a new effect of a CNP counts this part
	lawShows        = 0.95      // of a rate: it has fallen
	lawShowsBytes   = 8192      // a window has so many bytes less, too: packets don't come evenly
	lawSpacingFirst = 100_000   // ns
	lawSpacingLeast = 1_000     // ns: the alpha timer of a NIC may be so short, and one CNP in each is all that counts
	lawSpacingMost  = 1_000_000 // ns
	lawSpacingTime  = 1_000_000 // ns in which the spacing of a flow at x times its bound becomes an x-th, at most
	lawSpacingLoops = 8         // the same of a flow above it, in times until the effect of a CNP is seen
	lawUnknownDelay = 200_000   // ns in which a request is to have its effect while the loop's delay isn't known
	mostBlind       = 4
	lawWatchMost    = 20_000_000
	lawLoopMost     = 5_000_000 // ns, of the loop's delay: it is within a data centre, and a NIC's reaction is a part of it
	lawHides        = 2         // times a flow's rate: that of all the sender's flows, from which on QPs hide each other's limits
	lawDeeply       = 1.25      // times F, a flow's rate from which on that matters
)

// Begin is a sender of which nothing is known.
func (s *LawSender) Begin() { *s = LawSender{Effect: lawEffect, Spacing: lawSpacingFirst} }

// Arrives takes a packet of a flow above F.
func (s *LawSender) Arrives(now int64, bytes uint32) {
	switch elapsed := now - s.since; {
	case elapsed > lawSlowFlow:
		s.together, s.bytes, s.since = 0, 0, now
	case elapsed >= lawWindow || elapsed >= lawFirst && s.together == 0:
		s.together = s.bytes / float32(elapsed)
		s.bytes, s.since = 0, now
		if s.known == 0 {
			s.known = tick(now)
		}
	}
	s.bytes += float32(bytes)
}

// unlimited is the rate at which the sender may send a flow of a measured rate before the first notification. Its QPs share its line, and each
// begins at the line rate: they hide that from each other, and the effect of the first notifications, too. If little is asked of them, that doesn't matter.
func (s *LawSender) unlimited(rate float32, fair float64) float32 {
	if s.several(rate) && float64(rate) >= lawDeeply*fair {
		return s.together
	}
	return rate
}

// several reports whether not only a flow of this rate is above F.
func (s *LawSender) several(rate float32) bool { return s.together >= lawHides*rate }

// others reports whether several flows are above F, one of which had this rate, and packets of them have come in the last windows: if some begin, the others' rates fall.
func (s *LawSender) others(now int64, rate float32) bool {
	return s.several(rate) && now-s.since <= 2*lawWindow
}

// bound is the rate above which a flow of the sender gets CNPs. While a queue drains, F is as much as lawLeastTarget below the senders' share. A CNP halves the rate of a NIC, some of
// which need 100 ms to come back: so a sender that is no farther above F gets one only if the queue would grow without it. One that has several flows above F slows down in smaller steps.
func (s *LawSender) bound(c *LawState, rate float32) float64 {
	if c.Surplus > 0 || s.several(rate) {
		return c.Fair
	}
	return c.Fair / lawLeastTarget
}

// Closest reports whether CNPs to it come as close together as they can have an effect.
func (s *LawSender) Closest() bool { return s.Spacing <= lawSpacingLeast }

func (s *LawSender) delay(c *LawState) int64 {
	if s.Delay > 0 {
		return int64(s.Delay)
	}
	return c.Loop
}

// wait is the time after which a requested rate must have had its effect, ns.
func (s *LawSender) wait(c *LawState) int64 {
	if d := s.delay(c); d > 0 {
		return (d+lawWindow)*3/2 + c.polled()
	}
	return lawUnknownDelay<<s.blind + c.polled()
}

// unseen is the time for which the effect of a CNP can't be seen in a flow of a rate, ns: the loop's delay, and a window of the flow.
func (s *LawSender) unseen(c *LawState, rate float64) int64 {
	if d := s.delay(c); d > 0 {
		return d + min(max(lawWindowAll, int64(lawWindowPackets/rate)), lawWindowMost) + c.polled()
	}
	return lawUnknownDelay
}

// afterResume is the rate of a sender after an unconditional Resume, which adds at most half of its line rate (draft-tian 9).
func (s *LawSender) afterResume(f *LawFlow) float64 {
	line := max(s.Line, f.limit)
	return float64(min(line, f.limit+line/2))
}

// canWatch reports whether the effect of a notification about a flow can be watched: whether that of another one isn't.
func (s *LawSender) canWatch(c *LawState, f *LawFlow) bool {
	return f.rate > 0 && (s.flow == 0 || s.checked || c.Now-s.at > lawWatchMost)
}

// watch begins to watch the effect of a notification, after which a flow has a lower rate than `below`.
func (s *LawSender) watch(c *LawState, f *LawFlow, flow uint32, below float32) {
	s.flow, s.at, s.rate, s.below, s.checked = flow, c.Now, f.rate, below, false
}

// watchCNP watches the effect of a CNP, if that can be. Those in flight lower the rate, too: so it only shows the loop's delay if there are none, or too few to show
// in QPs that hide their limits. What is sent in the next lawWindow has its effect in the window that shows that of this CNP.
func (s *LawSender) watchCNP(c *LawState, f *LawFlow, flow uint32) {
	if s.canWatch(c, f) {
		n, below := f.flying(c, s), float32(0)
		if before := c.expected(s, n); before >= c.Rate && before*(1-float64(s.Effect)) < lawShows*c.Rate {
			below = min(lawShows*f.rate, f.rate-float32(lawShowsBytes)/lawWindow)
		}
		s.watch(c, f, flow, below)
		s.cnps = float32(n)
	}
	if s.flow == flow && c.Now-s.at <= lawWindow {
		s.cnps++
	}
}

// Ended takes the rate of a flow in a window that has ended, and took so many ns. It reports whether the loop's delay was measured.
func (s *LawSender) Ended(c *LawState, f *LawFlow, flow uint32, window int64) bool {
	if f.kind() == byCNP {
		s.space(c, f, window)
	}
	if s.flow != flow || f.kind() == byPause {
		return false
	}
	delay := s.delayShown(c, f, window)
	if d := s.delay(c); f.kind() == byCNP && d > 0 && !s.checked && c.Now-window >= s.at+d {
		s.checked = true
		effect := 1 - math.Pow(float64(min(f.rate/s.rate, 1)), 1/float64(s.cnps))
		s.Effect += (float32(effect) - s.Effect) / lawEffectShare
		s.Effect = min(max(s.Effect, lawEffectLeast), lawEffect)
	}
	switch {
	case delay == 0 || delay > lawLoopMost:
		return false
	case s.Delay == 0:
		s.Delay = float32(delay)
	default:
		s.Delay += (min(float32(delay), 2*s.Delay) - s.Delay) / 4
	}
	return true
}

// delayShown is the delay of the loop, ns, if the rate of the watched flow in a window that has ended, and took so many ns, shows it, else 0.
func (s *LawSender) delayShown(c *LawState, f *LawFlow, window int64) int64 {
	if f.rate >= s.below || f.kind() == byCNP && s.others(c.Now, s.rate) {
		return 0
	}
	s.below = 0
	s.checked = s.checked || f.kind() == byRate
	most := c.Now - s.at // the rate fell in the window: a known delay that ends in it is not contradicted, however long the window
	delay := s.delay(c)
	if delay == 0 {
		delay = most - window/2
	}
	return max(min(delay, most), most-window, 1000)
}

// space adjusts the spacing of CNPs after a window, which took so many ns: those to a flow that stays above its bound come closer together, those to one that has fallen below it
// further apart. So a spacing is found at which the flow's mean rate is its bound, whatever the NIC does with a CNP, and however fast it comes back: as fast as CNPs are seen to
// have an effect.
func (s *LawSender) space(c *LawState, f *LawFlow, window int64) {
	elapsed := min(since(c.Now, s.spaced), window) // the sender may have many flows
	s.spaced = tick(c.Now)
	excess, time := max(math.Log(float64(f.rate)/s.bound(c, f.rate)), -1), float64(lawSpacingTime) // one that has ended is far below
	if excess > 0 && s.delay(c) > 0 {
		time = min(time, lawSpacingLoops*float64(s.unseen(c, float64(f.rate))))
	}
	s.Spacing *= float32(math.Exp(-excess * float64(elapsed) / time))
	s.Spacing = min(max(s.Spacing, lawSpacingLeast), lawSpacingMost)
}
