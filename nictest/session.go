package nictest

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cnpgate/cnpgate/endpoint"
)

// Config describes a Session. Times are nanoseconds. A zero field takes the default that its comment gives.
type Config struct {
	Plan      []Trial
	Addresses Addresses
	Bin       int64 // width of a bin; 20 us
	Settle    int64 // steady rate before each trial; 100 bins, at least 20 ms
	Patience  int64 // how long after the last notification a reduction may begin; 100 ms, at least Settle
	Longest   int64 // how long a trial may last after the last notification; 3 s
	LineRate  int64 // of the sender's NIC, bit/s; 0: the highest rate that comes
}

// Check completes a configuration by the defaults, and says what of it can't be.
func (c *Config) Check() error {
	c.Bin = cmp.Or(c.Bin, 20*microsecond)
	c.Settle = cmp.Or(c.Settle, max(20*millisecond, 100*c.Bin))
	c.Patience = cmp.Or(c.Patience, max(100*millisecond, c.Settle))
	c.Longest = cmp.Or(c.Longest, 3*second)
	switch {
	case c.Bin < microsecond || c.Bin > millisecond:
		return fmt.Errorf("a resolution of %d us; expected 1 to 1000 us", c.Bin/microsecond)
	case c.Settle < 10*c.Bin:
		return fmt.Errorf("a steady rate for %d us; expected at least %d us, which is 10 times the resolution", c.Settle/microsecond, 10*c.Bin/microsecond)
	case c.Patience < c.Settle:
		return fmt.Errorf("a reaction within %d us; expected at least %d us", c.Patience/microsecond, c.Settle/microsecond)
	case c.Longest < c.Patience || c.Longest > 60*second || c.Longest/c.Bin > maxBins:
		return fmt.Errorf("experiments of at most %d ms; expected %d ms, the time for a reaction, to %d ms", c.Longest/millisecond, c.Patience/millisecond,
			min(60*second, maxBins*c.Bin)/millisecond)
	}
	for i := range c.Plan {
		if t := &c.Plan[i]; formOf(t.Form) == nil || t.Count < 1 || t.Spacing < 0 {
			return fmt.Errorf("trial %q has form %q, %d notifications each %d ns; expected a known form and at least one", t.Name, t.Form, t.Count, t.Spacing)
		}
	}
	return nil
}

// state is what a Session does.
type state uint8

const (
	settling state = iota // waits for a steady rate
	sending               // sends notifications, and watches
	watching              // watches until the rate is what it was
	finished
)

// Session measures one sender. It is for one goroutine.
type Session struct {
	c       Config
	sender  Sender
	builder *builder

	state   state
	trial   int
	results []TrialResult

	settle   curve   // while settling
	since    int64   // when settling began
	best     float64 // highest steady rate, bit/s
	before   float64 // the rate before the trial, bit/s
	calm     calm
	curve    curve // of the trial
	first    int64 // when the first notification was due
	sent     int
	late     int64 // how late a notification was sent, at most, ns
	again    int   // how often the trial has been repeated
	lastAt   int64
	checkAt  int64
	lastData int64

	frames, bytes uint64 // of data
}

// TrialResult is a trial and what it showed.
type TrialResult struct {
	Trial
	Sent     int      `json:"sent"`
	At       int64    `json:"at_ns"`   // of the first notification, since the session began
	Last     int64    `json:"last_ns"` // of the last one, since the first
	Response Response `json:"response"`
	Late     int64    `json:"late_ns,omitempty"` // how late notifications were sent: so late that a reduction that is missing says nothing
	Skipped  string   `json:"skipped,omitempty"` // why no notification was sent
	Points   []Point  `json:"points,omitempty"`
}

// NewSession begins a session with a sender at a time.
func NewSession(now int64, c Config, s Sender) (*Session, error) {
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("nictest: %w", err)
	}
	c.Plan = slices.Clone(c.Plan)
	x := &Session{c: c, sender: s, builder: newBuilder(s, c.Addresses), since: now, lastData: now}
	x.beginSettling(now)
	if len(c.Plan) == 0 {
		x.state = finished
	}
	return x, nil
}

func (s *Session) beginSettling(now int64) {
	s.state, s.since = settling, now
	s.settle = newCurve(now, s.c.Bin)
	s.checkAt = now + s.c.Settle
}

// Done reports whether the plan is complete.
func (s *Session) Done() bool { return s.state == finished }

// Progress is the number of complete trials, and of all.
func (s *Session) Progress() (done, all int) { return len(s.results), len(s.c.Plan) }

// Current names the trial under way.
func (s *Session) Current() string {
	if s.trial < len(s.c.Plan) {
		return s.c.Plan[s.trial].Name
	}
	return ""
}

// Sender is whom the session measures.
func (s *Session) Sender() Sender { return s.sender }

// Rate is the highest steady rate, bit/s.
func (s *Session) Rate() float64 { return s.best }

// LastData is when the last data packet came.
func (s *Session) LastData() int64 { return s.lastData }

// Data notes that a data packet of length bytes without FCS came.
func (s *Session) Data(now int64, length int) {
	const bits = 8
	s.frames++
	s.bytes += uint64(length)
	s.lastData = now
	b := float64((length + endpoint.EthernetOverhead) * bits)
	switch s.state {
	case settling:
		s.settle.add(now, b)
	case sending, watching:
		s.curve.add(now, b)
	}
}

// Due is when to call Next again if no packet comes. more is false at the end.
func (s *Session) Due() (at int64, more bool) {
	switch s.state {
	case finished:
		return 0, false
	case sending:
		return min(s.nextAt(), s.checkAt), true
	}
	return s.checkAt, true
}

func (s *Session) nextAt() int64 { return s.first + int64(s.sent)*s.c.Plan[s.trial].Spacing }

// Next writes the notification that is due to out, and returns its length; 0 if none is.
func (s *Session) Next(now int64, out []byte) int {
	if now >= s.checkAt {
		s.check(now)
	}
	if s.state != sending || now < s.nextAt() {
		return 0
	}
	s.late = max(s.late, now-s.nextAt())
	t := &s.c.Plan[s.trial]
	n := s.builder.build(formOf(t.Form), out)
	s.lastAt = now
	s.sent++
	if n == 0 {
		s.end(now, "it can't be built: the session has no address for it")
		return 0
	}
	if s.sent == t.Count {
		s.state = watching
	}
	return n
}

// check goes on with the plan.
func (s *Session) check(now int64) {
	switch s.state {
	case settling:
		s.checkSettled(now)
	case sending, watching:
		s.checkAt = now + max(s.c.Settle/4, (now-s.first)/16)
		if s.state == watching {
			s.checkResponse(now)
		}
	}
}

// firstSettle is how many times longer than others the first period of a steady rate is: it shows how steady the rate is without notifications.
const firstSettle = 25

// checkSettled begins the next trial if the rate is steady: both halves of the last period have it, and it is the best so far. Otherwise a rate counts as
// steady after Longest, and as the best.
func (s *Session) checkSettled(now int64) {
	s.checkAt = now + s.c.Settle/4
	periods := int64(2)
	if !s.calm.seen {
		periods = firstSettle
	}
	if now-s.since < periods*s.c.Settle {
		return
	}
	rate := s.settle.rate(now-s.c.Settle, now)
	half := s.settle.rate(now-s.c.Settle/2, now)
	agree := half > rate*recoveredPart && half < rate/recoveredPart
	switch {
	case rate == 0: // the caller knows how long to wait for a silent sender
		s.beginSettling(now)
		return
	case agree && rate >= s.best*s.calm.steady():
		s.best = max(s.best, rate)
	case now-s.since >= s.c.Longest:
		rate = s.settle.rate(now-8*s.c.Settle, now)
		s.best = rate
	default:
		if now-s.settle.start > firstSettle*s.c.Settle {
			s.restartSettle(now)
		}
		return
	}
	if s.calm.seen {
		s.restartSettle(now)
	}
	s.calm.learn(&s.settle, s.settle.rate(s.settle.start, now))
	s.begin(now, rate)
}

// restartSettle drops what is older than two periods of a steady rate.
func (s *Session) restartSettle(now int64) {
	old := s.settle
	s.settle = newCurve(old.start+max(0, now-2*s.c.Settle-old.start)/old.bin*old.bin, old.bin)
	s.settle.last = old.last
	s.settle.bits = append(s.settle.bits, old.bits[min(len(old.bits), int((s.settle.start-old.start)/old.bin)):]...)
}

// begin begins the next trial. If the rate varies by itself, a form is tried by a burst as long as a flood: a short one's effect would not be visible.
func (s *Session) begin(now int64, rate float64) {
	if t := &s.c.Plan[s.trial]; t.Group == FormOf && s.calm.noisy() {
		t.Count, t.Spacing = int(floodLength/noisySpacing), noisySpacing
	}
	s.before = rate
	s.curve = newCurve(now, s.c.Bin)
	s.curve.last = s.settle.last
	s.first, s.sent, s.late, s.lastAt, s.state = now, 0, 0, now, sending
	s.checkAt = now + s.c.Settle/4
}

// checkResponse ends the trial if the rate has recovered for a while, if there is no reduction, or if it lasts too long.
func (s *Session) checkResponse(now int64) {
	r := s.response()
	after := now - s.lastAt
	const tail = 2 // periods of a steady rate after the recovery
	switch {
	case after >= s.c.Longest:
	case !r.Reduced && after >= s.c.Patience:
	case r.Reduced && r.Recovered >= 0 && now-s.first-r.Recovered >= tail*s.c.Settle && after >= tail*s.c.Settle:
	default:
		return
	}
	s.end(now, "")
}

// repetitions is how often a trial with a reduction is repeated if the sender's rate falls by itself, too: the trial counts as one with a reduction only if
// all have one. One without is repeated if this program was kept off its core, and the notifications came late and all at once.
const repetitions = 2

// disturbed reports whether notifications of a trial were sent too late to say that the sender doesn't react to it.
func (s *Session) disturbed(t *Trial) bool {
	return s.late > max(millisecond, int64(t.Count)*t.Spacing/4)
}

// response analyses the trial so far. A reduction that begins too late isn't of the notifications.
func (s *Session) response() Response {
	r := respond(&s.curve, s.before, &s.calm)
	if r.Reduced && r.First > s.lastAt-s.first+s.c.Patience {
		return Response{Before: r.Before, Lowest: r.Before, Recovered: -1}
	}
	return r
}

// end ends the trial.
func (s *Session) end(now int64, skipped string) {
	t := TrialResult{Trial: s.c.Plan[s.trial], Sent: s.sent, At: s.first, Last: s.lastAt - s.first, Skipped: skipped}
	if skipped == "" {
		t.Response, t.Points = s.response(), s.curve.compact()
	} else {
		t.Sent = 0
	}
	s.curve = curve{}
	disturbed := skipped == "" && !t.Response.Reduced && s.disturbed(&t.Trial)
	if disturbed {
		t.Late = s.late
	}
	if (disturbed || t.Response.Reduced && s.calm.noisy()) && s.again < repetitions {
		s.again++
		s.beginSettling(now)
		return
	}
	s.results, s.again = append(s.results, t), 0
	s.trial++
	if s.trial == len(s.c.Plan) {
		s.state = finished
		return
	}
	s.beginSettling(now)
}
