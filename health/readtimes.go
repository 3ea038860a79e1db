package health

// readTimes are those of episodes in which READs were asked for again that don't count as time-outs.
type readTimes struct {
	age, spacing span // ns: how long after the same request they began, and after one another
	latest       int64
}

// add notes when an episode began, and the same request before.
func (d *readTimes) add(now int64, before *sent) {
	if before != nil {
		d.age.add(now - before.time)
	}
	if d.latest != 0 {
		d.spacing.add(now - d.latest)
	}
	d.latest = now
}
