package health

// run are CNPs that keep coming to a sender. One that obeys gets slower with each, down to its least rate (DCQCN), so its rate while the first ones come is
// compared with the one while the last ones do.
type run struct {
	at    int64 // when it began; 0: there is none
	CNPs  uint64
	marks [6]rateMark // at the first CNP, the eighth, the 64th, ...
}

// rateMark is how much the sender had sent at a time.
type rateMark struct {
	at    int64
	bytes uint64
}

const (
	runGap   = 5 * ms // CNPs farther apart belong to different runs
	runLasts = 40 * ms
	runLess  = 50           // CNPs that have no effect for another reason
	runRate  = 125_000_000. // bytes/s: NICs do not go below a least rate of up to 100 Mbit/s
)

// cnp notes a CNP.
func (r *run) cnp(now int64, bytes uint64) {
	if r.at == 0 {
		*r = run{at: now}
	}
	r.CNPs++
	for i, n := 0, uint64(1); i < len(r.marks); i, n = i+1, n*8 {
		if r.CNPs == n {
			r.marks[i] = rateMark{now, bytes}
		}
	}
}

// rate is in bytes/s.
func rate(from, to rateMark) float64 {
	return float64(to.bytes-from.bytes) * 1e9 / float64(max(to.at-from.at, 1))
}

// judgeRun ends a run of CNPs.
func (r *Reaction) judgeRun(now int64) {
	s := r.run
	r.run = run{}
	last := len(s.marks) - 1
	for last > 0 && (s.marks[last].at == 0 || s.CNPs < 3<<(3*last)) {
		last--
	}
	end := rateMark{now, r.bytes}
	if s.CNPs < runLess || last == 0 || r.lost || s.marks[last].at-s.at < r.loop || now-s.at < 4*r.loop {
		return
	}
	before, after := rate(s.marks[0], s.marks[1]), rate(s.marks[last], end)
	switch {
	case before < runRate:
	case after*10 >= before*9:
		r.Episodes++
		r.Ignored += s.CNPs
	default:
		r.Episodes++
		r.Obeyed++
		r.Delay += now - s.at
		r.Depth += 100 - uint64(after*100/before)
	}
}
