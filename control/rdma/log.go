package rdma

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/health"
)

const (
	lookEvery = 10 * time.Second
	// overAfter is how long a verdict must not have grown before its episode is over.
	overAfter = time.Minute
	// openMost bounds the verdicts in memory and in the log: the ones with the largest weight.
	openMost = 64
)

// Watch makes a report every ten seconds until the context ends, and logs each verdict when it begins to hold and when it no longer grows. each may be nil; it
// gets every report.
func (c *Collector) Watch(ctx context.Context, log zerolog.Logger, each func(*health.Report)) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	e := episodes{log: log, open: map[[2]string]*episode{}}
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			r, err := c.Report(ctx)
			if err != nil {
				continue // the watchdog of the workers says more
			}
			e.look(now, r.Verdicts)
			if each != nil {
				each(r)
			}
		}
	}
}

// episodes are the verdicts of the last report.
type episodes struct {
	log  zerolog.Logger
	open map[[2]string]*episode // by verdict and subject
}

type episode struct {
	began, grown time.Time
	weight       uint64
	over         bool
	held         bool // in the present report
}

// look compares the verdicts with those before.
func (e *episodes) look(now time.Time, all []health.Verdict) {
	for _, o := range e.open {
		o.held = false
	}
	for i := range all {
		for _, v := range each(&all[i]) {
			e.note(now, &v)
		}
	}
	for key, o := range e.open {
		if !o.over && (!o.held || now.Sub(o.grown) > overAfter) {
			o.over = true
			e.log.Info().Str("verdict", key[0]).Str("subject", key[1]).Stringer("lasted", o.grown.Sub(o.began)).Msg("This no longer happens to RDMA on this link.")
		}
		if !o.held {
			delete(e.open, key)
		}
	}
}

// each are the verdicts about one pair of hosts; one about too many to list is noted as one, whoever they are.
func each(v *health.Verdict) (all []health.Verdict) {
	one := *v
	if v.Others > 0 {
		one.Subject = "many"
	}
	if len(v.Pairs) == 0 || v.Others > 0 {
		return []health.Verdict{one}
	}
	for _, p := range v.Pairs {
		one.Subject, one.Evidence, one.Connections, one.Weight = p.Subject, p.Evidence, p.Connections, p.Weight
		all = append(all, one)
	}
	return all
}

// note compares a verdict with what was known of it. Its weight grows as long as what it says happens; it shrinks when connections are no longer followed.
func (e *episodes) note(now time.Time, v *health.Verdict) {
	key := [2]string{v.Name, v.Subject}
	o := e.open[key]
	if o == nil {
		if len(e.open) == openMost {
			return
		}
		o = &episode{over: true}
		e.open[key] = o
	}
	o.held = true
	if v.Weight > o.weight {
		o.grown = now
		if o.over {
			o.over, o.began = false, now
			e.log.Warn().Str("verdict", v.Name).Str("subject", v.Subject).Int("connections", v.Connections).Str("evidence", v.Evidence).Str("advice", v.Advice).
				Msg("RDMA on this link is not healthy.")
		}
	}
	o.weight = v.Weight
}
