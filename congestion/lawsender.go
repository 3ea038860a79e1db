package congestion

import "math"

// LawSender is what the law has learned of a sender, from notifications to it and the rates that follow. The zero LawSender has learned nothing.
type LawSender struct {
	Delay   float32 // of the control loop: from a notification to the rate that follows, ns; 0: not known
	Effect  float32 // part by which a CNP lowers a flow's rate; 0: not known
	Line    float32 // the highest rate of a flow
	Patient bool    // a rate jumped up after CNPs: they came too fast to lower the rate to which the sender returns
	Ignored uint8   // notifications since a rate of the sender fell last, at most IgnoredMost

	blind   uint8  // repeated requests for a rate while the loop's delay was not known, at most mostBlind
	flow    uint32 // whose effect is watched, 0: none's
	at      int64  // when it was notified, ns
	rate    float32
	below   float32
	unseen  float32
	latest  int64 // when it was notified last, ns
	checked bool  // the effect of the latest one was taken
}

// IgnoredMost is the number of notifications after which a sender whose rates haven't fallen counts as not reacting.
const IgnoredMost = 200

const (
	lawEffect       = 0.5     // of a CNP, at first and at most: DCQCN's first cut
	lawWeak         = 0.15    // a CNP with less effect needs others soon
	lawUnknownWait  = 200_000 // ns until a rate may be asked for again while the loop's delay isn't known
	lawUnknownDelay = 500_000 // ns
	lawEffectShare  = 8       // a new effect of a CNP counts this part
	mostBlind       = 4
	lawWatchMost    = 20_000_000
	lawRebound      = 3 // times the lowest rate
)

// Begin is a sender of which nothing is known but what others of its prefix have taught.
func (s *LawSender) Begin(prefix *LawSender) {
	*s = LawSender{Delay: prefix.Delay, Effect: prefix.Effect, Patient: prefix.Patient}
	if s.Effect == 0 {
		s.Effect = lawEffect
	}
}

func (s *LawSender) delay(c *LawState) int64 {
	if s.Delay > 0 {
		return int64(s.Delay)
	}
	return c.Loop
}

// reckonedDelay is delay for notifications whose effect can't be seen yet. While it isn't known, it is taken as long: a CNP too many can't be taken back.
func (s *LawSender) reckonedDelay(c *LawState) int64 {
	if d := s.delay(c); d > 0 {
		return d
	}
	return lawUnknownDelay
}

// wait is the time after which a requested rate must have had its effect, ns.
func (s *LawSender) wait(c *LawState) int64 {
	if d := s.delay(c); d > 0 {
		return (d+lawWindow)*3/2 + c.polled()
	}
	return lawUnknownWait<<s.blind + c.polled()
}

// effect is the effect of a CNP to reckon with: the longer no rate has fallen, the less.
func (s *LawSender) effect() float64 {
	const some = 8 // notifications
	return float64(s.Effect) * some / (some + float64(s.Ignored))
}

// spacing is the least time between two CNPs to a flow of the sender, ns.
func (s *LawSender) spacing(c *LawState, urgency float64) int64 {
	if s.Patient && s.effect() >= lawWeak {
		return lawSpacing
	}
	return max(min(c.Spacing, int64(lawSpacing/urgency)), lawSpacingLeast)
}

// afterResume is the rate of a sender after an unconditional Resume, which adds at most half of its line rate (draft-tian 9).
func (s *LawSender) afterResume(f *LawFlow) float64 {
	line := max(s.Line, f.limit)
	return float64(min(line, f.limit+line/2))
}

// watch begins to watch the effect of a notification of a flow, unless that of another one is watched.
func (s *LawSender) watch(c *LawState, f *LawFlow, flow uint32, below float64, unseen float32) {
	if s.Ignored < IgnoredMost {
		s.Ignored++
	}
	if s.flow != 0 && s.flow != flow && c.Now-s.at < lawWatchMost {
		return
	}
	if s.flow != flow || c.Now-s.at > lawWatchMost {
		s.flow, s.at, s.below = flow, c.Now, float32(below)
	}
	s.latest, s.rate, s.unseen, s.checked = c.Now, f.rate, unseen, false
}

// Ended takes the rate of a flow in a window that has ended, and took so many ns. It returns the loop's delay in ns if it was measured, else 0.
func (s *LawSender) Ended(c *LawState, f *LawFlow, flow uint32, window int64) (delay int64) {
	if kind(f.count>>countBytes&3) == byCNP && f.before > 0 {
		if f.rate > lawRebound*f.before && float64(f.rate) > 1.5*c.Fair {
			s.Patient = true
		}
		f.before = min(f.before, f.rate)
	}
	if s.flow != flow {
		return 0
	}
	if f.rate < s.rate {
		s.Ignored = 0
	}
	if kind(f.count>>countBytes&3) == byCNP && !s.checked && c.Now-window >= s.latest+s.delay(c)+2000 {
		s.checked = true
		kept := min(float64(f.rate)/max(float64(s.rate), 1e-9), 1)
		effect := float32(1 - math.Pow(kept, 1/float64(max(s.unseen, 1))))
		s.Effect += (min(effect, lawEffect) - s.Effect) / lawEffectShare
	}
	if s.below == 0 || f.rate >= s.below {
		return 0
	}
	delay = max(c.Now-s.at-lawWindow/2, 1000)
	s.flow, s.below = 0, 0
	if s.Delay == 0 {
		s.Delay = float32(delay)
	} else {
		s.Delay += (float32(delay) - s.Delay) / 4
	}
	return delay
}
