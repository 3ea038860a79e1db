package nictest

import "encoding/json"

// Record is what a fit needs.
type Record struct {
	Line, Frame, Bytes float64
	Bin                int64
	Trials             []TrialResult
}

// SessionJSON runs a session without a fit.
func SessionJSON(c Config, sim Simulation) ([]byte, error) {
	w, err := newWorld(c, sim)
	if err != nil {
		return nil, err
	}
	for !w.session.Done() {
		if err := w.step(); err != nil {
			return nil, err
		}
	}
	s := w.session
	m := s.model(&Result{LineRate: s.best})
	return json.Marshal(Record{s.best, m.frame, m.bytes, s.c.Bin, m.trials})
}

func FitJSON(b []byte, true_ *Profile) (p Profile, e, te float64, evals int) {
	var r Record
	if err := json.Unmarshal(b, &r); err != nil {
		panic(err)
	}
	m := &model{line: r.Line, frame: r.Frame, bytes: r.Bytes, trials: r.Trials}
	m.trim()
	d, most := m.delays(r.Bin)
	p, e = m.fit(d, most)
	n := m.evals
	true_.Delay, true_.DelayMax = d, most
	return p, e, m.error(true_, 1e9), n
}
