package congestion

import "math"

// LawFlow is the law's state of one flow: the rate at which it arrives, and what was asked of its sender. The zero LawFlow is that of a new flow. It has 28 bytes:
// times are ticks of 64 ns, which wrap after 274 s, and what was asked depends on the kind of request.
type LawFlow struct {
	began uint32  // of the window, ticks
	count uint32  // packets of the window, the kind of request, and bytes
	rate  float32 // of the last window, 0: none yet
	asked uint32  // when a notification was considered (CNP) or sent (a rate) last, or until when the flow is to pause, ticks

	// Rate: the sender's limit. CNP: how many were sent since `sent`.
	limit float32
	// Rate: the sender's rate before the last reduction. CNP: how many were sent in as long a time before `sent`.
	before float32
	sent   uint32 // CNP: ticks
}

// kind is what a sender is asked in: the meaning of limit and before.
type kind uint32

const (
	noKind kind = iota
	byCNP
	byRate
	byPause
)

// The parts of LawFlow.count.
const (
	countReduced = 1 << 25 // the last request for a rate was a reduction
	countBytes   = 26
	countKind    = 28
	mostBytes    = countReduced - 1
	mostPackets  = 1<<(32-countKind) - 1
	countWindow  = mostPackets<<countKind | mostBytes // what a window begins without
	tickShift    = 6

	lawOver      = 1.02
	lawWindow    = 20_000 // ns
	windowLeast  = 4      // packets in a window; in one of lawSpacing a single one, if a rate was asked for: a NIC paces packets at that, so that one gap shows it
	lawFirst     = 5_000  // ns, of a flow's first window
	firstLeast   = 8      // packets in it
	lawWindowGap = 10_000_000
	lawSlow      = windowLeast * 4096.0 / lawWindowGap // bytes/ns, about the highest rate that isn't measured
	lawSlowFlow  = 200_000                             // ns after which a window with few packets can only lower the rate
)

// tick is a time in units of 64 ns, modulo 2^32: 275 s. It is never 0, which stands for no time.
func tick(now int64) uint32 { return max(uint32(now>>tickShift), 1) }

func since(now int64, at uint32) int64 { return int64(tick(now)-at) << tickShift }

// Rate is the flow's rate in its last window, bytes/ns; 0 if it had none, or sends less than windowLeast packets in lawWindowGap.
func (f *LawFlow) Rate() float64 { return float64(f.rate) }

// Share is the part of the flow's bytes that would come if it obeyed F. A flow that is paused comes in bursts, and obeys F, unless a burst takes longer than pauses
// need to have an effect.
func (f *LawFlow) Share(now int64, fair float64) float64 {
	r := float64(f.rate)
	if r <= fair || f.Paused() && float64(f.ahead(now))*fair < lawBurstMost*r {
		return 1
	}
	return fair / r
}

// Over reports whether the flow is above F.
func (f *LawFlow) Over(fair float64) bool { return float64(f.rate) > lawOver*fair }

// Paused reports whether the flow's sender is paused rather than slowed down: then Pause must see each packet.
func (f *LawFlow) Paused() bool { return f.kind() == byPause }

// Add adds a packet that arrives at a time (ns). If a window has ended before it, it returns the time (ns) that the window took.
func (f *LawFlow) Add(now int64, bytes uint32) (window int64, ended bool) {
	return f.add(now, bytes, 0)
}

// add is Add for a packet at whose time so many bytes of one burst have arrived already: they are the next window's.
func (f *LawFlow) add(now int64, bytes, burst uint32) (window int64, ended bool) {
	packets, size := f.count>>countKind, f.count&mostBytes
	elapsed := since(now, f.began)
	switch {
	case packets == 0 && f.rate == 0, elapsed > lawWindowGap:
		f.began, f.rate = tick(now), 0
		f.count &^= countWindow
	case elapsed >= lawWindow && packets >= windowLeast || f.rate == 0 && elapsed >= lawFirst && packets >= firstLeast || elapsed >= lawSpacing && f.kind() == byRate:
		f.rate = float32(size-min(size, burst)) / float32(elapsed)
		f.began = tick(now)
		f.count = f.count&^countWindow | min(burst, mostBytes)
		window, ended = elapsed, true
	case elapsed >= lawSlowFlow:
		if rate := float32(size) / float32(elapsed); rate < f.rate {
			f.rate = rate
		}
	}
	if f.count>>countKind < mostPackets {
		f.count += 1 << countKind
	}
	f.count += min(bytes, mostBytes-f.count&mostBytes)
	return window, ended
}

func (f *LawFlow) kind() kind { return kind(f.count >> countBytes & 3) }

// as makes the flow's state that of a kind of request.
func (f *LawFlow) as(k kind) {
	if f.kind() != k {
		f.count = f.count&^(3<<countBytes) | uint32(k)<<countBytes
		f.asked, f.limit, f.before = 0, 0, 0
	}
}

// Limited reports whether the flow's sender has a limit below F that this gateway has set. If a flow is slower than its limit, its sender may
// have reduced its rate twice.
func (f *LawFlow) Limited(fair float64) bool {
	if f.kind() != byRate || f.limit == 0 {
		return false
	}
	return float64(f.limit)*lawOver < fair || f.count&countReduced != 0 && f.rate < lawFellBy*f.limit && float64(f.rate)*lawOver < fair
}

// Asked reports whether the flow's sender has a limit that this gateway has set.
func (f *LawFlow) Asked() bool { return kind(f.count>>countBytes&3) == byRate && f.limit > 0 }

// Released records that the sender's limit was lifted.
func (f *LawFlow) Released() { f.limit, f.before = 0, 0 }

// LawState is what a decision about a flow depends on besides the flow and its sender.
type LawState struct {
	Law     *Law
	Now     int64 // ns
	Fair    float64
	Depth   float64
	Space   float64 // bytes until a CNP too few is worse than one too many
	Drained float64 // of Law.Drained
	Surplus float64 // by how much more arrives than the line takes, once the CNPs in flight have had their effect
	Loop    int64   // delay of the control loop, ns; 0: not known
	Polled  int64   // time between two polls of the port, ns
	Rate    float64 // of the flow, or if it is too slow for that, of all such flows of its sender
	Slow    int64   // time for which the sender has had such flows, ns

	Promised float64 // by how much slower the CNP that is due will make the sender, after those in flight; set by CNP
}

// Lasting is F once the queue has drained. A sender below it may well have reacted: while the queue is long, F is below the senders' share, with a long loop for many ms.
func (c *LawState) Lasting() float64 { return c.Fair * c.Drained }

// polled is the time for which the gateway may not see what has come, ns.
func (c *LawState) polled() int64 {
	if c.Polled < lawWindowGap/10 {
		return 2 * max(c.Polled, 0)
	}
	return 0
}

const (
	lawWindowAll     = 30_000                   // ns between an effect and its measurement
	lawWindowPackets = 1.5 * windowLeast * 4096 // the same in bytes, if a window takes longer
	lawWindowMost    = 100_000                  // ns, the same at most: one that lasts is seen to be slower before it ends
	lawAhead         = 1.1                      // times F, a limit from which on it is lowered before it has had an effect
	lawFellBy        = 0.8                      // of a rate: below that it has fallen
	lawPacket        = 4096                     // bytes of a packet
	lawFar           = 2                        // times F: a rate that a CNP doesn't bring below F
	lawRoom          = 1.0 / 16                 // of the space in the queue, which may be used up so that CNPs come one at a time
	lawPatience      = 4                        // times the spacing of a sender's CNPs, the longest wait for the effect of one: a short spacing shows that it comes back sooner
)

// CNP decides whether a flow above F is due a CNP. An unneeded CNP costs throughput until the NIC has recovered; a missing CNP makes the queue longer. So while the queue has space, the
// next CNP waits for the effect of the last one. With less space, the spacing is shorter: the higher the expected rate of the sender, the shorter.
func (f *LawFlow) CNP(c *LawState, s *LawSender) bool {
	f.as(byCNP)
	spacing, expected := int64(lawSpacingLeast), c.expected(s, f.flying(c, s))
	c.Promised = expected * float64(s.Effect)
	if urgent := c.Space == 0 && c.Rate > lawFar*c.Fair; !urgent {
		over := min(c.Rate, expected) / s.bound(c, float32(c.Rate))
		if over <= 1 {
			return false
		}
		spacing = max(int64(float64(s.Spacing)/over), c.patience(s), spacing)
	}
	if spacing == lawSpacingLeast {
		spacing -= 1<<tickShift + int64(lawPacket/c.Rate) // the next packet may come too late
	}
	if f.asked != 0 && since(c.Now, f.asked) < spacing {
		return false
	}
	f.asked = tick(c.Now)
	return true
}

// patience is how long the next CNP to a flow waits for the effect of the last one, ns. It is shorter if the queue has little space: if all flows exceed F by the same factor, and CNPs
// have this spacing, the queue grows by spacing * (rate - line) / effect bytes until all are at F (a geometric series).
func (c *LawState) patience(s *LawSender) int64 {
	more := (max(c.Rate/c.Fair, lawOver) - 1) * c.Law.Line
	return int64(min(lawRoom*c.Space*float64(s.Effect)/more, float64(s.unseen(c, c.Rate)), lawPatience*float64(s.Spacing)))
}

// expected is the rate that the sender of a flow has once n CNPs in flight have had their effect. While the loop's delay isn't known, QPs may hide that they have a limit above
// their part of the line.
func (c *LawState) expected(s *LawSender, n float64) float64 {
	if n == 0 {
		return c.Rate
	}
	rate := float32(c.Rate)
	if s.delay(c) == 0 {
		rate = s.unlimited(rate, c.Fair)
	}
	return float64(rate) * math.Pow(1-float64(s.Effect), n)
}

// flying is how many CNPs were sent whose effect can't be seen yet, about: of those of the time before `sent` a part, as if they had been spread over it.
func (f *LawFlow) flying(c *LawState, s *LawSender) float64 {
	if f.limit == 0 {
		return 0
	}
	part := float64(since(c.Now, f.sent)) / float64(s.unseen(c, c.Rate))
	switch {
	case part >= 2:
		return 0
	case part >= 1:
		return float64(f.limit) * (2 - part)
	}
	return float64(f.limit) + float64(f.before)*(1-part)
}

// SentCNP records that a CNP was sent.
func (f *LawFlow) SentCNP(c *LawState, s *LawSender, flow uint32) {
	s.watchCNP(c, f, flow)
	unseen := s.unseen(c, c.Rate)
	switch elapsed := since(c.Now, f.sent); {
	case f.limit == 0, elapsed >= 2*unseen:
		f.sent, f.before, f.limit = tick(c.Now), 0, 0
	case elapsed >= unseen:
		f.sent, f.before, f.limit = f.sent+uint32(unseen>>tickShift), f.limit, 0
	}
	f.limit++
}

// Reduce returns the percentage by which the sender of a flow above F is to reduce its rate, 0 if it isn't to be asked now. It knows what
// was asked before: until that can have had an effect, the sender's rate is that limit.
func (f *LawFlow) Reduce(c *LawState, s *LawSender, random float64) (percent uint16) {
	f.as(byRate)
	elapsed := since(c.Now, f.asked)
	limit, other := f.believed(c, s)
	if f.rate == 0 {
		if c.Slow < lawSlowFlow || f.asked != 0 && elapsed < s.wait(c) {
			return 0
		}
		return uint16(100*min(max(1-c.Fair/c.Rate, 0), lawEffect) + random) // the same part of all of them; a sender's first ones may have a rate soon
	}
	if !other && (limit < lawAhead*c.Fair || float64(elapsed) < lawSpacing/c.Law.urgency(c.Depth)) {
		return 0
	}
	return uint16(min(max(100*(1-c.Fair/limit), 0)+random, 99))
}

// believed is the limit that the sender may have, and whether it is another one than after the last request.
func (f *LawFlow) believed(c *LawState, s *LawSender) (limit float64, other bool) {
	switch {
	case f.asked == 0:
		return float64(s.unlimited(float32(c.Rate), c.Fair)), true
	case since(c.Now, f.asked) >= s.wait(c):
		return max(float64(f.limit), c.Rate), true
	case int32(s.known-f.asked) > 0 && s.delay(c) == 0 && s.unlimited(f.before, c.Fair) > f.before:
		return float64(f.limit * s.together / f.before), true
	}
	return float64(f.limit), false
}

// Reduced records that the sender was asked to reduce its rate.
func (f *LawFlow) Reduced(c *LawState, s *LawSender, flow uint32, percent uint16) {
	s.Line = max(s.Line, s.unlimited(float32(c.Rate), c.Fair))
	limit, _ := f.believed(c, s)
	if f.rate == 0 {
		limit = lawSlow
	}
	if f.asked != 0 && since(c.Now, f.asked) >= s.wait(c) && s.delay(c) == 0 && s.flow == flow {
		s.blind = min(s.blind+1, mostBlind)
	}
	f.before = float32(limit)
	f.limit = f.before
	f.limit *= 1 - float32(percent)/100
	f.asked = tick(c.Now)
	f.count |= countReduced
	if percent >= 30 && s.canWatch(c, f) {
		s.watch(c, f, flow, (f.limit+float32(c.Rate))/2)
	}
}

// ResumeRate returns the percentage of its last reduction that the sender of a limited flow is to restore, which is 0 for an unconditional Resume: then it
// must be asked to reduce its rate again by `again` percent. ok is false if the sender isn't to be asked now.
func (f *LawFlow) ResumeRate(c *LawState, s *LawSender) (percent, again uint16, ok bool) {
	if since(c.Now, f.asked) < s.wait(c) {
		return 0, 0, false
	}
	if f.rate > 0 && f.rate < lawFellBy*f.limit && f.count&countReduced != 0 {
		f.limit, f.before = f.rate, f.rate
	}
	if reduced := f.before - f.limit; reduced > f.limit/100 {
		return uint16(min(max(100*(float32(c.Fair)-f.limit)/reduced, 1), 100)), 0, true
	}
	return 0, uint16(max(100*(1-c.Fair/s.afterResume(f)), 0)), true
}

// Resumed records that the sender was asked to resume, and to reduce its rate by `again` percent.
func (f *LawFlow) Resumed(c *LawState, s *LawSender, percent, again uint16) {
	switch {
	case f.rate == 0 && percent == 100:
		f.limit, f.before = 0, 0
	case percent > 0:
		f.limit += (f.before - f.limit) * float32(percent) / 100
	default:
		f.before = float32(s.afterResume(f))
		f.limit = f.before * (1 - float32(again)/100)
		if again == 0 && f.limit >= s.Line {
			f.limit, f.before = 0, 0 // no limit is left
		}
	}
	f.count &^= countReduced
	f.asked = tick(c.Now)
}

const (
	lawBurst     = 50_000 // ns by which a flow that can only be paused may be ahead of F
	lawBurstMost = 70_000 // ns that it may need at its rate to be ahead so far
)

// ahead is the time by which a flow that can only be paused is ahead of F, ns.
func (f *LawFlow) ahead(now int64) int64 { return int64(int32(f.asked-tick(now))) << tickShift }

// Pause returns the time in microseconds for which the sender of a flow above F is to pause, after a packet of this many bytes; 0 if it isn't.
// The flow's clock is when its packets would have come at F.
func (f *LawFlow) Pause(c *LawState, bytes uint32) uint16 {
	f.as(byPause)
	if f.asked == 0 || f.ahead(c.Now) < 0 {
		f.asked = tick(c.Now)
	}
	f.asked += uint32(float64(bytes)/c.Fair) >> tickShift
	left := f.ahead(c.Now)
	if left < lawBurst {
		return 0
	}
	return uint16(min(left/1000, math.MaxUint16))
}
