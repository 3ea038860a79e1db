package fleet

import (
	"github.com/cnpgate/cnpgate/fleet/wire"
	"github.com/cnpgate/cnpgate/pairing"
)

// This file is about what a gateway that starts, or takes over, gets from the others: the pairs that were confirmed. Each gateway sends its
// own to all, who keep them. A gateway that starts asks one of them for all that it keeps. A pair is a hint: it counts only for a flow whose
// packets have the UDP source port of the two QPs (pairing.Peers.Adopt).

type heirKey struct {
	wire.Hosts
	qp uint32
}

type heir struct {
	until      int64
	sourceQP   uint32
	port       uint16
	evidence   uint8
	unreliable bool
}

// heirs are the pairs of other gateways, and this one's own from before a restart.
type heirs struct {
	*core
	of map[heirKey]heir
}

func pairOf(h *wire.Hosts, f *pairing.Seen) *wire.Pair {
	return &wire.Pair{
		Hosts: *h, QP: f.Key.DestQP, SourceQP: f.Answer.SourceQP(), Port: f.Port, Evidence: uint8(f.Answer.Evidence()), Unreliable: f.Unreliable,
	}
}

// take keeps a pair of another gateway.
func (h *heirs) take(p *wire.Pair) {
	k := heirKey{p.Hosts, p.QP}
	if p.SourceQP == 0 {
		delete(h.of, k)
		return
	}
	if _, ok := h.of[k]; !ok && len(h.of) >= h.Pairs {
		h.stats.Full++
		return
	}
	h.of[k] = heir{h.now + pairLifetime, p.SourceQP, p.Port, p.Evidence, p.Unreliable}
}

// expire forgets pairs that nobody confirms any more, a part of them at a time.
func (h *heirs) expire() {
	n := 0
	for k, v := range h.of {
		if n++; n > 1<<15 {
			return
		}
		if h.now > v.until {
			delete(h.of, k)
		}
	}
}

// inherit gives an own flow the source QP that it had before, and reports whether the flow has it now.
func (h *heirs) inherit(of *wire.Hosts, f *pairing.Seen) bool {
	v, ok := h.of[heirKey{*of, f.Key.DestQP}]
	if !ok || v.port != f.Port || v.unreliable != f.Unreliable || h.now > v.until {
		return false
	}
	r := pairing.Remote{Key: h.Pairing.Opposite(&f.Key, v.sourceQP), Port: v.port, Unreliable: v.unreliable}
	if !h.Peers.Adopt(&r, &f.Key, h.now) {
		return false
	}
	h.stats.Adopted++
	return true
}
