package dataplane

import (
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// forGateway ends a frame for the gateway itself: a STAMP packet, the ICMPv6 Parameter Problem of a host that doesn't know the Fast CNP
// option, and for a proxy any frame to one of its addresses but plain RoCEv2 data, which never gets here: a check of each data packet would
// cost the fast path. All other frames to its addresses are forwarded, and so is what is in a tunnel.
func (w *Worker) forGateway(b *batch, i int) bool {
	if b.tunnel>>i&1 != 0 {
		return false
	}
	data, p := w.frame(b, i)
	switch {
	case p.Proto == packet.ProtoUDP && w.takesSTAMP(b.port, data, p):
		w.drop(b.port, ConsumedSTAMP, b.frames[i])
		return true
	case p.Proto == packet.ProtoICMPv6 && w.takesRefusal(b.port, data, p):
		w.drop(b.port, ConsumedParameterProblem, b.frames[i])
		return true
	}
	node := w.policy.Proxy
	return node != nil && w.reached(b, i, node)
}

// takesRefusal reports whether a packet is an ICMPv6 Parameter Problem for the gateway, and processes it.
func (w *Worker) takesRefusal(port int, data []byte, p *packet.Parsed) bool {
	g := &w.policy.Build
	if !g.HasIPv6 || p.Dst != g.IPv6 || !packet.ParameterProblem(data, p) {
		return false
	}
	if r, ok := packet.DecodeFastCNPRefusal(data, p, &g.Code); ok && w.notifiedLately(port, p, &r) {
		w.plane.refusals.Refuse(packet.Host{Addr: p.Src, Scope: packet.ScopeOf(uint16(port), p)}, w.now)
		w.counters.add(port, FastCNPRefused, 1)
	}
	return true
}

// notifiedLately reports whether the flow of a refused Fast CNP exists, and its sender was notified within host.RefusalTime: otherwise anybody
// could stop Fast CNPs to a host. It searches all workers, since the refusal may arrive at another one than the flow's packets.
func (w *Worker) notifiedLately(port int, p *packet.Parsed, r *packet.FastCNPRefusal) bool {
	k := flowtable.Key{Src: p.Src, Dst: r.Dst, DestQP: r.DestQP}
	k.SetScope(packet.ScopeOf(uint16(port), p))
	for _, other := range w.plane.workers {
		if x, state, found := other.flows.Find(&k); found && other.accounts.notifiedWithin(x, state.Generation(), w.now, host.RefusalTime) {
			return true
		}
	}
	return false
}
