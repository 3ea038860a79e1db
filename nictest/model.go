package nictest

import (
	"math"

	"github.com/cnpgate/cnpgate/endpoint"
)

// Profile is what a NIC does, as the simulator models it.
type Profile struct {
	StandardCNP bool // it obeys standard CNPs; what follows counts then
	// Delay to DelayMax is the time from a CNP to its effect.
	Delay, DelayMax int64
	DCQCN           endpoint.DCQCNConfig
	Floor           bool // DCQCN.MinRate was reached
}

// model predicts the rate of a sender with a profile.
type model struct {
	line   float64 // bit/s
	frame  float64 // mean length of a frame on the line, bits
	bytes  float64 // bytes of it that a byte counter counts
	trials []TrialResult
	spread bool // reactions have different delays: each trial is aligned by its own
	evals  int
}

const (
	bitsPerByte = 8
	// insignificant is the part of the rate before a trial by which a prediction may differ.
	insignificant = 0.003
)

// flow makes a reaction point with a profile.
func (m *model) flow(p *Profile) (*endpoint.Flow, error) {
	c := endpoint.ReactionConfig{LineRate: int64(m.line), Algorithm: endpoint.DCQCN, DCQCN: p.DCQCN}
	if !m.spread {
		c.ReactionDelay = p.Delay
	}
	r, err := endpoint.NewReactionPoint(c)
	if err != nil {
		return nil, err
	}
	return r.Open(endpoint.FlowID{QP: 1}), nil
}

// cnps are the times of the CNPs of a trial: of the first, and of the i-th one.
func (m *model) cnp(t *TrialResult, i int) int64 {
	if m.spread {
		return t.At + t.Response.First
	}
	if t.Sent < 2 {
		return t.At
	}
	return t.At + t.Last*int64(i)/int64(t.Sent-1)
}

// effective is how many CNPs of a trial have an effect.
func (m *model) effective(t *TrialResult) int {
	switch {
	case !m.spread:
		return t.Sent
	case t.Response.Reduced:
		return 1
	}
	return 0
}

// error is how much the prediction differs from the measured curves: the mean over the trials of the area between the two, in proportion to what the
// sender held back. Above limit it may be any value above it.
func (m *model) error(p *Profile, limit float64) float64 {
	m.evals++
	f, err := m.flow(p)
	if err != nil {
		return math.MaxFloat64
	}
	sum, n := 0.0, 0
	limit *= float64(len(m.trials))
	for i := range m.trials {
		t := &m.trials[i]
		differs, held, whole := 0.0, 0.0, 0.0
		m.play(f, p, t, func(at int, rate float64) {
			x := &t.Points[at]
			w := float64(x.Width)
			differs += max(0, math.Abs(rate-x.Rate)-insignificant*t.Response.Before) * w
			held += max(0, t.Response.Before-x.Rate) * w
			whole += t.Response.Before * w
		})
		if m.spread && int64(t.Spacing)*int64(t.Count) >= p.Delay {
			continue // there may be more than one reaction
		}
		const least = 0.01
		n++
		if sum += differs / (held + least*whole); sum > limit {
			return math.MaxFloat64
		}
	}
	return sum / float64(max(n, 1))
}

// play predicts a trial's rates, point by point.
func (m *model) play(f *endpoint.Flow, p *Profile, t *TrialResult, point func(at int, rate float64)) {
	now, next, count := t.At, 0, m.effective(t)
	step := float64(p.DCQCN.RateTimer) / 4
	halfCounter := math.MaxFloat64
	if b := p.DCQCN.ByteCounter; b > 0 {
		halfCounter = float64(b) / 2 * bitsPerByte * m.frame / (m.bytes * bitsPerByte)
	}
	carry, carried := 0.0, int64(0) // the rate until a time beyond the point
	for i := range t.Points {
		x := &t.Points[i]
		end, bits := t.At+x.At+x.Width, 0.0
		for now < end {
			if carried > now {
				to := min(carried, end)
				bits += carry * float64(to-now)
				now = to
				continue
			}
			for next < count && m.cnp(t, next) <= now {
				f.SlowDown(m.cnp(t, next))
				next++
			}
			rate := f.Rate(now)
			if next == count && rate >= m.line {
				bits += min(rate, t.Response.Before) * float64(end-now)
				now = end
				break
			}
			packet := m.frame / rate * second
			dt := min(step, halfCounter/rate*second, float64(end-now))
			if next < count {
				dt = min(dt, float64(m.cnp(t, next)-now))
			}
			dt = max(dt, packet, 1)
			f.Sent(now, int(rate*dt/second*m.bytes/m.frame))
			carry, carried = min(rate, t.Response.Before), now+int64(dt)
		}
		point(i, bits/float64(x.Width))
	}
}

// trim drops from each trial's curve what shows nothing: all that follows long after the rate has recovered, or after the last notification if the rate
// was never reduced.
func (m *model) trim() {
	const margin = 2 * millisecond
	for i := range m.trials {
		t := &m.trials[i]
		end := t.Last + margin
		if t.Response.Reduced {
			if t.Response.Recovered < 0 {
				continue
			}
			end = max(end, t.Response.Recovered+t.Response.Recovered/4+margin)
		}
		for n, p := range t.Points {
			if p.At > end {
				t.Points = t.Points[:n:n]
				break
			}
		}
	}
}
