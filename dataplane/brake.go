package dataplane

import (
	"github.com/cnpgate/cnpgate/flowtable"
)

// brakedTime is the time of a sender's braked frames that may be held, at their pace, ns.
const brakedTime = 5_000_000

// brake paces a flow whose sender doesn't react at a rate, bytes on the line per ns. It returns false if there is no slot for it.
func (p *pacer) brake(k *flowtable.Key, flow flowtable.Ref, rate float64, now int64) bool {
	at := p.add(k, now)
	if at == 0 {
		return false
	}
	h := &p.hosts.of[at]
	if !h.enforced.linked {
		p.link(at)
	}
	h.enforced.ref, h.enforced.braked = flow, true
	h.pace.Limit(p.policy, uint64(rate*8e9), whole, now)
	return true
}

// unbrake ends brake for a flow whose sender has reacted.
func (p *pacer) unbrake(k *flowtable.Key, now int64) {
	if p.known == 0 {
		return
	}
	if at := p.find(k); at != 0 && p.hosts.of[at].enforced.braked {
		p.hosts.of[at].enforced.braked = false
		p.hosts.of[at].restore(p.policy, 0, now)
		p.move(at)
	}
}

// late reports whether a sender has as many frames here as may be held for brakedTime.
func (p *pacer) late(h *pacedHost, now int64) bool {
	return float64(*p.heldOf(h)) > float64(h.pace.Rate(p.policyOr(), now))/8e9*brakedTime
}
