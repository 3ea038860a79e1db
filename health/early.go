package health

// early is an answer that passed before a request that it acknowledges: the capture has missed the request, or has recorded the two directions by different
// clocks or queues, and the request comes yet.
type early struct {
	acked uint32 // all PSNs before it
	at    int64  // 0: none
}

// longestLead is how much later than its answer a request may be recorded, ns.
const longestLead = 100 * ms

func (e *early) note(acked uint32, now int64) {
	if e.at == 0 || ahead(acked, e.acked) > 0 {
		e.acked, e.at = acked, now
	}
}

// overtaken looks at a new request, which begins after PSNs that are missing. If an answer to it has passed, the directions are recorded differently. What
// the answer acknowledges before it was not captured.
func (e *early) overtaken(h *Half, p *Packet) {
	if ahead(p.PSN, e.acked) >= 0 {
		h.NotCaptured += h.holes.acknowledged(e.acked)
		e.at = 0
		return
	}
	if lead := p.Time - e.at; lead <= longestLead {
		h.EarlyAnswers++
		h.Lead = max(h.Lead, lead)
	}
}
