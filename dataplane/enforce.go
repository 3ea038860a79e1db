package dataplane

import (
	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/dataplane/pacing"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// enforces reports whether the flows of a sender are paced at a WAN port as notifications ask.
func (w *Worker) enforces(port int, sender packet.Addr) bool {
	if !w.pacers[port].Active() {
		return false
	}
	_, ours := w.policy.Ports[port].Enforce.Lookup(sender)
	return ours
}

// enforce carries out a notification that passes from a WAN port to the fabric. Its flow leaves by the same port.
func (w *Worker) enforce(port int, kind packet.Notification, data []byte, p *packet.Parsed) {
	if !w.pacers[port].Active() || kind != packet.ProxyNotification && !w.enforces(port, p.Dst) {
		return
	}
	if !w.permitted(kind, p) {
		w.unenforced(port, pacing.UntrustedSource)
		return
	}
	if w.hear(data, p) != cnpdec.Accepted {
		w.unenforced(port, pacing.Malformed)
		return
	}
	w.enforceNotification(port, p, &w.heard)
}

// enforceNotification carries out a valid notification of a permitted source. p is the result of packet.Parse for it.
func (w *Worker) enforceNotification(port int, p *packet.Parsed, n *cnpdec.Notification) {
	r, ok := pacing.RequestOf(n)
	if !ok {
		w.unenforced(port, pacing.Malformed)
		return
	}
	if !w.enforces(port, r.Sender) {
		return
	}
	r.Scope, r.At = packet.ScopeOf(uint16(w.ports[port].Peer), p), w.now
	switch n.Kind {
	case packet.StandardCNP: // its flow's source QP must be confirmed; that of the other direction may not have sent anything yet
		r.Unverified = !w.confirmed(port, p)
	case packet.ProxyNotification: // it is for the proxy, and may come without tags
		k := flowtable.Key{Src: r.Sender, Dst: r.Receiver, DestQP: r.Qp}
		k.SetScope(r.Scope)
		if w.locate(&k) == ambiguousScope {
			w.unenforced(port, pacing.Ambiguous)
			return
		}
		r.Scope = k.Scope()
	}
	w.pass(port, &r)
}

// enforceForProxy carries out a notification about a flow to the gateway as a proxy, whose source is permitted.
func (w *Worker) enforceForProxy(k *flowtable.Key) {
	port := w.ports[k.Port].Peer
	if k.SourceQP != 0 || !w.enforces(port, k.Src) { // a flow of UD isn't named by the receiver's QP
		return
	}
	w.pass(port, &pacing.Request{Sender: k.Src, Receiver: k.Dst, Qp: k.DestQP, Scope: k.Scope(), At: w.now})
}

// pass gives a request to all workers: any of them may have the flow. If too many requests wait for other workers, only this one tries it.
func (w *Worker) pass(port int, r *pacing.Request) {
	w.trial = (w.trial + 1) % trialSlots
	t, p := &w.trials[w.trial], w.pacers[port]
	if !t.Begin(len(w.plane.workers)) {
		if p.Obey(r, w.now) != pacing.Taken {
			w.unenforced(port, pacing.NoSpaceForRequest)
		}
		return
	}
	for _, other := range w.plane.workers {
		if other != w && !other.paceMail[w.id].put(portPaceRequest{*r, port, w.trial}) {
			w.unenforced(port, t.Tried(pacing.NoSlot))
		}
	}
	w.unenforced(port, t.Tried(p.Obey(r, w.now)))
}

// permitted reports whether a notification's source may slow a sender down. A standard CNP comes from a receiver, and names its flow with the
// receiver's address and the sender's QP. Any other notification comes from a gateway, which the operator must have listed
// (draft-xiao-fast-cnp 5, draft-tian 9, draft-xiao-proxy 6). One in the gateway's own name is forged.
func (w *Worker) permitted(kind packet.Notification, p *packet.Parsed) bool {
	return kind == packet.StandardCNP || w.policy.Border != nil && w.policy.Border.from(p) && !w.isOwn(p.Src)
}

// extensionOf is what the extension bit of a CNP to a sender means: PPFC if the operator says so of the sender, otherwise Long-haul CNP.
func (w *Worker) extensionOf(sender packet.Addr) packet.Notification {
	if accepted, ok := w.policy.Who.Endpoints.Lookup(sender); ok && accepted.Accepts(packet.PPFC) {
		return packet.PPFC
	}
	return packet.LongHaulCNP
}

// unenforced counts a request that was not carried out, unless why is unenforceds.
func (w *Worker) unenforced(port int, why pacing.Unenforced) {
	if why != pacing.Unenforceds {
		w.counters.add(port, UnenforcedFirst+Counter(why), 1)
	}
}
