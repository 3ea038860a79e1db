package pacing

import (
	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
)

// enforcedFlow is what a pacer knows of a flow that it slows down as notifications ask.
type enforcedFlow struct {
	linked      bool          // in the list of its sender: so for every flow at a WAN port
	next, prev  uint32        // neighbors in that list, 0 for none
	ref         flowtable.Ref // of the flow's last known packet
	sourceQP    uint32        // 0: not known
	braked      bool          // its sender doesn't react to notifications
	measuring   bool          // its rate, so that it can be reduced
	since       int64         // when that began, ns
	keep        uint64        // percent of that rate which will remain
	measurement congestion.Measurement
}

// measureLimit is the time in which a flow's rate must be known, ns: a flow that sends less than a packet in that time isn't slowed down.
const measureLimit = 20_000_000

// measures reports whether the flow's rate is being measured.
func (e *enforcedFlow) measures(now int64) bool {
	if now-e.since >= measureLimit {
		e.measuring = false
	}
	return e.measuring
}

// measure adds a packet to the measurement of a flow's rate. Once that is known, it is reduced.
func (h *pacedHost) measure(c *congestion.Pacing, bytes uint32, now int64) {
	e := &h.enforced
	if rate, complete := e.measurement.Add(bytes, now); complete {
		e.measuring = false
		h.pace.Limit(c, rate, e.keep, now)
	}
}

// change changes the pace of a flow as a request asks, at the time now. It returns Unenforceds, or why it can't.
func (h *pacedHost) change(c *congestion.Pacing, r *Request, now int64) Unenforced {
	switch r.Action {
	case cnpdec.SlowDown:
		return h.reduce(c, c.Keep, now)
	case cnpdec.Reduce:
		return h.reduce(c, whole-min(uint64(r.parameter), whole), now)
	case cnpdec.Pause:
		h.pausedTo = max(h.pausedTo, r.At+int64(r.parameter)*microsecond)
	default:
		ended := h.pausedTo > now
		if ended {
			h.pausedTo = now
		}
		if r.Action == cnpdec.Resume {
			ended = h.restore(c, uint64(r.parameter), now) || ended
		}
		if !ended {
			return NothingToResume
		}
	}
	return Unenforceds
}

const whole = 100 // percent

// reduce reduces a flow's rate to a percentage: of its pace if it has one, otherwise of the rate at which its packets arrive, which must be
// measured first.
func (h *pacedHost) reduce(c *congestion.Pacing, keep uint64, now int64) Unenforced {
	if h.pace.Slow(c, now) || h.flows != 0 { // the rate of a flow whose frames are held is its pace
		if !h.pace.ReduceTo(c, keep, now) {
			return TooSoon
		}
		return Unenforceds
	}
	e := &h.enforced
	if e.measures(now) {
		e.keep = min(e.keep, keep)
		return Unenforceds
	}
	e.measuring, e.since, e.keep, e.measurement = true, now, keep, congestion.Measurement{}
	return Unenforceds
}

// restore gives a flow back a percentage of the last reduction, and with 0 its whole rate. The next frame need not wait as long as the
// lower pace asked for. It returns false if there was nothing to give back.
func (h *pacedHost) restore(c *congestion.Pacing, percent uint64, now int64) bool {
	measuring := h.enforced.measures(now)
	h.enforced.measuring = false
	if !h.pace.Restore(c, percent, now) {
		return measuring
	}
	h.ready = min(h.ready, now)
	return true
}
