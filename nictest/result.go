package nictest

import "math"

// Result is what a session has measured so far.
type Result struct {
	Complete bool          `json:"complete"`
	LineRate float64       `json:"line_rate_bps"`
	Trials   []TrialResult `json:"trials"`
	Unsteady bool          `json:"unsteady,omitempty"` // the sender's rate varies so much by itself, or notifications were so late, that no effect would show
	Profile  Profile       `json:"-"`
	FitError float64       `json:"fit_error"` // mean difference between the profile's rates and the measured ones, in proportion to what was held back
}

// Result analyses what was measured.
func (s *Session) Result() *Result {
	r := &Result{Complete: s.Done(), LineRate: s.best, Trials: s.results}
	if s.c.LineRate > 0 {
		r.LineRate = float64(s.c.LineRate)
	}
	m := s.model(r)
	reduced, enough, late := 0, 1, false
	if s.calm.noisy() {
		enough = 2
	}
	for i := range s.results {
		if t := &s.results[i]; t.Form == baseForm {
			late = late || t.Late > 0
			if r.reacted(t) {
				reduced++
			}
		}
	}
	r.Profile.StandardCNP, r.Unsteady = reduced >= enough, !s.calm.sees() || reduced < enough && (reduced > 0 || late)
	if !r.Profile.StandardCNP {
		return r
	}
	delay, most := m.delays(s.c.Bin)
	r.Profile, r.FitError = m.fit(delay, most)
	r.Profile.Floor = m.floorReached(r.Profile.DCQCN.MinRate)
	return r
}

// reacted reports whether a sender reacted to what notifications say. A host that ignores them may send less, too, if it is busy with receiving them: as much
// less as on notifications about a QP that it doesn't have.
func (r *Result) reacted(t *TrialResult) bool {
	const more = 2
	for i := range r.Trials {
		if control := &r.Trials[i]; control.Form == foreignForm && control.Response.Reduced && t.Response.Lost < more*control.Response.Lost {
			return false
		}
	}
	return t.Response.Reduced
}

// model has the trials that a fit can use.
func (s *Session) model(r *Result) *model {
	m := &model{line: r.LineRate}
	if s.frames > 0 {
		m.bytes = float64(s.bytes) / float64(s.frames)
		m.frame = (m.bytes + overhead) * bitsPerByte
	}
	for _, t := range s.results {
		if t.Form == baseForm && t.Skipped == "" && t.Group != FormOf {
			m.trials = append(m.trials, t)
		}
	}
	m.trim()
	return m
}

// delays are the least and the greatest delay of a reaction. A delay that is shorter than a few bins is 0: it is part of the path's.
func (m *model) delays(bin int64) (least, most int64) {
	least, most = math.MaxInt64, 0
	n := int64(0)
	for i := range m.trials {
		if t := &m.trials[i]; t.Response.Reduced && t.Group == Single {
			least, most = min(least, t.Response.First), max(most, t.Response.First)
			n++
		}
	}
	few := 3 * bin
	switch {
	case n == 0 || most < few:
		return 0, 0
	case most-least < few || n < 3:
		return least, least
	}
	m.spread = true
	margin := (most - least) / (2 * n) // the extremes of n evenly spread samples lie within the range
	return max(0, least-margin), most + margin
}

// floorReached reports whether the rate was as low as the least rate.
func (m *model) floorReached(least int64) bool {
	for i := range m.trials {
		for _, p := range m.trials[i].Points {
			if p.Rate < float64(least)*1.2 {
				return true
			}
		}
	}
	return false
}
