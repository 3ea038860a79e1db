package endpoint

// explicitLimit is the rate limit that Long-haul CNPs have set for a QP (draft-tian 5.6). It ends when it reaches the line rate.
type explicitLimit struct {
	rate    float64 // bit/s; 0: none
	before  float64 // the QP's rate before the last reduction
	reduced float64 // the amount of that reduction
	raiseAt int64   // when it rises next, ns
}

// reduce sets the rate to a percentage below current.
func (l *explicitLimit) reduce(c *ReactionConfig, percent uint16, current float64) {
	const whole = 100
	l.before = current
	l.rate = max(float64(c.DCQCN.MinRate), current*float64(whole-percent)/whole)
	l.reduced = l.before - l.rate
}

// resume restores a percentage of the last reduction, or with 0 percent all reductions, but at most MaxResume. It returns false if there is
// nothing to restore.
func (l *explicitLimit) resume(c *ReactionConfig, percent uint16) bool {
	const whole = 100
	if l.rate == 0 {
		return false
	}
	to := float64(c.LineRate)
	if percent > 0 {
		to = min(l.before, l.rate+l.reduced*float64(percent)/whole)
	}
	l.raise(min(to, l.rate+float64(c.MaxResume)), c)
	return true
}

// advance executes the recovery timer: additive increase once no notification has come for RecoveryInterval.
func (l *explicitLimit) advance(now int64, c *ReactionConfig) {
	if l.rate == 0 || l.raiseAt > now {
		return
	}
	times := (now-l.raiseAt)/c.RecoveryStep + 1
	l.raiseAt += times * c.RecoveryStep
	l.raise(l.rate+float64(times)*float64(c.RecoveryIncrease), c)
}

func (l *explicitLimit) raise(to float64, c *ReactionConfig) {
	if l.rate = to; to >= float64(c.LineRate) {
		*l = explicitLimit{}
	}
}
