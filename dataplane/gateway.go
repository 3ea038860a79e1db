package dataplane

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// forGateway consumes a frame for the gateway itself: a STAMP packet, or the ICMPv6 Parameter Problem of a host that doesn't know the Fast
// CNP option. Other frames to its address are forwarded.
func (w *Worker) forGateway(b *batch, i int) bool {
	data, p := w.frame(b, i)
	if p.Proto == packet.ProtoUDP {
		taken := w.takesSTAMP(b.port, data, p)
		if taken {
			w.drop(b.port, ConsumedSTAMP, b.frames[i])
		}
		return taken
	}
	g := &w.policy.Build
	if !g.HasIPv6 || p.Dst != g.IPv6 || !packet.ParameterProblem(data, p) {
		return false
	}
	if r, ok := packet.DecodeFastCNPRefusal(data, p, &g.Code); ok && w.notifiedLately(b.port, p, &r) {
		w.plane.refusals.refuse(p.Src, w.now)
		w.counters.add(b.port, FastCNPRefused, 1)
	}
	w.drop(b.port, ConsumedParameterProblem, b.frames[i])
	return true
}

// notifiedLately reports whether the flow of a refused Fast CNP exists, and its sender was notified within refusalTime: otherwise anybody
// could stop Fast CNPs to a host. It searches all workers, since the refusal may arrive at another one than the flow's packets.
func (w *Worker) notifiedLately(port int, p *packet.Parsed, r *packet.FastCNPRefusal) bool {
	k := flowtable.Key{Src: p.Src, Dst: r.Dst, DestQP: r.DestQP, Port: uint16(port), OuterTag: p.OuterTag, InnerTag: p.InnerTag}
	for _, other := range w.plane.workers {
		if x, state, found := other.flows.Find(&k); found && other.accounts.notifiedWithin(x, state.Generation(), w.now, refusalTime*1e9) {
			return true
		}
	}
	return false
}
