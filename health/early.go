package health

import "github.com/cnpgate/cnpgate/internal/packet"

// early is an answer that passed before a request that it acknowledges: the capture has missed the request, or has recorded the two directions by different
// clocks or queues, and the request comes yet.
type early struct {
	acked uint32  // all PSNs before it
	at    int64   // 0: none
	n     uint64  // requests that were recorded after it
	first passing // the first answer whose request has not been recorded since
	same  uint32  // how often it was acknowledged again, and no more
}

// longestLead is how much later than its answer a request may be recorded, ns.
const longestLead = 100 * ms

func (e *early) note(acked uint32, now int64) {
	switch d := ahead(acked, e.acked); {
	case e.at == 0 || d > 0:
		e.acked, e.at, e.same = acked, now, 0
	case d == 0:
		e.same++
	}
	if e.first.at == 0 {
		e.first = passing{acked, now}
	}
}

// foreign reports whether the responder acknowledges what the requester has never sent, again and again, while the requester sends again what it has: they don't
// agree on the PSNs. One packet that is sent again and again proves nothing: the capture may have begun after those behind it.
func (e *early) foreign(h *Half) bool {
	const enough, several = 3, 2
	return e.same >= enough && h.AgainRequests.Packets > 0 && h.Requests.Packets-h.AgainRequests.Packets >= several && ahead(e.acked, h.next) > int32(h.loose)
}

// disproved looks at an ACK. A responder acknowledges no less than before (IBTA 9.7.5.1.2): an answer that acknowledges more was none of the connection's, and
// the requester has dropped it (9.7.5.1).
func (e *early) disproved(h *Half, acked uint32) {
	if e.at != 0 && ahead(acked, e.acked) < 0 {
		h.EarlyAnswers, h.Lead = h.EarlyAnswers-min(e.n, h.EarlyAnswers), 0
		*e, h.answers = early{}, answers{acked: (acked - 1) & packet.PSNMask, known: true}
	}
}

// overtaken looks at a new request, which begins after PSNs that are missing. If an answer to it has passed, the directions are recorded differently. What
// the answer acknowledges before it was not captured.
func (e *early) overtaken(h *Half, p *Packet) {
	if ahead(p.PSN, e.acked) >= 0 {
		h.NotCaptured += h.holes.acknowledged(e.acked)
		*e = early{}
		return
	}
	if p.Time-e.at > longestLead {
		return
	}
	h.EarlyAnswers++
	e.n++
	if ahead(p.PSN, e.first.psn) < 0 && p.Time-e.first.at <= longestLead {
		h.Lead = max(h.Lead, p.Time-e.first.at)
	}
	if ahead(p.PSN+1, e.first.psn) >= 0 {
		e.first = passing{}
	}
}
