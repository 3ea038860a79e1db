package health

// timing is what is known of the times that a requester and its path take, ns.
type timing struct {
	// Interval is the time between two transmissions of the same packet when no answer came: the sender's time-out.
	Interval span
	clean    span  // round trips of packets that were sent once, ns
	turn     span  // how long the requester takes to react, as seen here, ns: from a NAK or the last ACK to its next request
	naks     span  // the same from a NAK only
	slowly   span  // from a NAK to when the requester goes back to just what it asks for, if that is long: a time-out, or a long path to it
	implied  span  // and from a READ response beyond one that was missing
	back     int64 // the shortest round trip from here to the requester, ns; 0: not known
	idle     span  // how long the requester was silent before time-outs, ns: since the packet, or the last ACK
	soon     span  // how long after the packet or the last ACK the requester timed out although no ACK was due yet, ns
	spacing  span  // between time-outs, ns
}

// silence is how long the requester must have been silent for a time-out.
func (t *timing) silence() int64 {
	switch {
	case t.Interval.n == 0:
		return quiet
	case t.idle.n > 0:
		return min(t.Interval.least, t.idle.least) / 2
	}
	return t.Interval.least / 2
}

// mayTimeOut reports whether a requester may have timed out that was silent for so long.
func (t *timing) mayTimeOut(silent int64) bool {
	return silent >= t.silence() && (t.idle.n == 0 || silent >= t.idle.least/2)
}

// slow reports whether so long after a response the requester no longer reacts to it.
func (t *timing) slow(after int64) bool {
	switch {
	case t.naks.n+t.implied.n > 1:
		return after > 8*max(t.naks.least, t.implied.least)+120*ms
	case t.turn.n > 0:
		return after > 2*t.turn.least+60*ms
	}
	return after > 100*ms
}

// obeys reports whether a requester that goes back this long after a response does so because of it: it takes about as long as to react to an ACK or to other
// NAKs, apart from what its line and its path are busy with. Later, the response may have been lost, and a time-out came.
func (t *timing) obeys(after int64) bool {
	const times, busy = 4, ms * 5 / 4
	if after < t.fastest() {
		return false
	}
	limit := 100 * ms
	if least, known := t.quickest(); known {
		limit = times*max(least, t.naks.mean) + busy
	}
	return after < limit && t.beforeTimeOut(after)
}

// farAway reports whether the requester obeys NAKs late, as it is far: always after the same time, which isn't its time-out, as far as that and how far it is are known.
func (t *timing) farAway() bool {
	return t.slowly.n > 1 && (t.back == 0 || t.slowly.least < 4*t.back) && t.slowly.most-t.slowly.least < t.slowly.least/32 && (t.Interval.n == 0 || t.slowly.most < t.Interval.least*3/4)
}

// fastest is the least time in which the requester can go back because of what passes here, ns; 0: not known. What asks it to comes to it on one path: if one
// kind of reason seems to be obeyed much sooner than the other, that one is mistaken.
func (t *timing) fastest() int64 {
	if t.naks.n == 0 || t.implied.n == 0 {
		return 0
	}
	return max(t.naks.least, t.implied.least)*3/4 - atOnce // its line may be busy
}

// beforeTimeOut reports whether a requester that goes back this long after a response can't have waited for a whole time-out since.
func (t *timing) beforeTimeOut(after int64) bool {
	limit := 400 * ms
	if t.Interval.n > 1 || t.Interval.least > quiet { // a single short one may have been misjudged
		limit = min(limit, t.Interval.least*3/4)
	}
	if t.idle.n > 1 && t.idle.least > shortest {
		limit = min(limit, t.idle.least*3/4)
	}
	return after < limit
}

// quickest is the least time that the requester takes to react to what passes here, ns.
func (t *timing) quickest() (least int64, known bool) {
	const enough = 3
	switch {
	case t.naks.n > 1:
		return t.naks.least, true
	case t.implied.n > 1:
		return t.implied.least, true
	case t.back > 0:
		return t.back, true
	case t.turn.n >= enough && t.naks.n > 0:
		return min(t.turn.least, t.naks.least), true
	case t.turn.n >= enough:
		return t.turn.least, true
	}
	return 0, false
}

// obeysRNR is the same of an RNR NAK, which asks to wait.
func (t *timing) obeysRNR(after, timer int64) bool {
	if after < timer*4/5 {
		return false
	}
	return t.Interval.n == 0 && after < 4*timer+100*ms || after-timer < max(t.Interval.least/2, timer/2) || t.beforeTimeOut(after-timer)
}
