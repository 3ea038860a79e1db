package health

import "math"

// run are CNPs that keep coming to a sender. What waits in a queue when the first one comes still passes as fast as the queue empties. So the rate while the
// first CNPs come is compared with the one after all has passed that may have been on its way then. A sender that obeys is slower by then, or the CNPs are fewer.
//
// What was on its way may have been sent faster than the queue empties. So the rates after that are compared, too: a reaction point lowers its rate with
// each CNP, and raises it when a time has passed without one, or so many bytes (DCQCN, 802.1Qau). If the CNPs come sooner than either, the rate can only fall.
type run struct {
	at    int64 // when it began; 0: there is none
	CNPs  uint64
	marks [4]runMark // at the first CNP, the eighth, the first one after what was on its way, the latest
	parts [2]runMark // when a quarter to a half, and a half to all, of the CNPs from the third mark to the latest had come
}

// runMark is what had come and passed at the time of a CNP.
type runMark struct {
	at                   int64
	CNPs, packets, bytes uint64
}

const (
	runGap   = 5 * ms // CNPs farther apart belong to different runs
	runLasts = 40 * ms
	recovers = 3 * ms / 2   // in so long a reaction point makes up for a CNP: five steps of 300 us (DCQCN)
	runFirst = 8            // CNPs that show the rate before
	runMore  = 16           // those that show the rate after it, at least
	runQueue = 64           // packets of its sender that wait in a queue before this place, at least, if it isn't known better
	runRate  = 125_000_000. // bytes/s
	runLeast = 12_500_000.  // bytes/s: NICs do not go below a least rate of up to 100 Mbit/s
	runOften = 10_000.      // CNPs/s: sooner after one another than a reaction point's timer ends (300 us)
	runBytes = 65_536.      // bytes to a CNP: fewer than twice its byte counter counts: it makes up for half of what it fell
	runFalls = 0.9975       // it falls to this with each, at the least, at 10,000 a second
	runLong  = 64           // CNPs in which that is more than a tenth
)

// cnpOfRun notes a CNP of a run.
func (r *Reaction) cnpOfRun(now int64) {
	s := &r.run
	if s.at == 0 {
		*s = run{at: now}
	}
	s.CNPs++
	m := runMark{now, s.CNPs, r.Packets, r.bytes}
	switch {
	case s.CNPs == 1:
		s.marks[0] = m
	case s.CNPs == runFirst:
		s.marks[1] = m
	case s.CNPs > runFirst && s.marks[2].at == 0 && r.window > 0 && r.Packets-s.marks[0].packets > 2*uint64(max(r.window, runQueue)) && now-s.at >= r.loop:
		s.marks[2] = m
	}
	if r.Packets == s.marks[3].packets { // it has sent nothing since: perhaps it had nothing more to send
		return
	}
	s.marks[3] = m
	if free := s.marks[2].CNPs; free != 0 && m.CNPs-free >= 2*(s.parts[1].CNPs-min(free, s.parts[1].CNPs)) {
		s.parts = [2]runMark{s.parts[1], m}
	}
}

// rate is in bytes/s, and in CNPs/s.
func rate(from, to runMark) (bytes, cnps float64) {
	seconds := float64(max(to.at-from.at, 1)) / 1e9
	return float64(to.bytes-from.bytes) / seconds, float64(to.CNPs-from.CNPs) / seconds
}

// judgeRun ends a run of CNPs.
func (r *Reaction) judgeRun() {
	s := r.run
	r.run = run{}
	free, latest := s.marks[2], s.marks[3]
	if free.at == 0 || latest.CNPs-free.CNPs < runMore || r.lost || latest.at-s.at < 4*r.loop {
		return
	}
	before, often := rate(s.marks[0], s.marks[1])
	after, still := rate(free, latest)
	switch {
	case latest.CNPs-free.CNPs >= runLong && still >= runOften && after >= 2*runLeast && after < runBytes*still && s.lasts():
		r.Episodes++
		r.Ignored += s.CNPs
	case before < runRate:
	case after*10 < before*9:
		r.Episodes++
		r.Obeyed++
		r.Delay += latest.at - s.at
		r.Depth += 100 - uint64(after*100/before)
	case still*2 >= often && (r.Packets-latest.packets)*latest.CNPs < runMore*(latest.packets-s.marks[0].packets): // it didn't go on without CNPs
		r.Episodes++
		r.Ignored += s.CNPs
	}
}

// lasts reports whether the rate did not fall while the CNPs came.
func (s *run) lasts() bool {
	before, _ := rate(s.marks[2], s.parts[0])
	after, _ := rate(s.parts[0], s.marks[3])
	return after >= before*min(0.9, math.Pow(runFalls, float64(s.marks[3].CNPs-s.marks[2].CNPs)/2))
}
