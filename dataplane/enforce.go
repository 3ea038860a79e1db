package dataplane

import (
	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// A sender may obey no notification. Then the gateway near the sender can do what a notification asks: it holds the frames of the flow that
// the notification names, in front of its WAN port's queue, with the pacer of that port. It forwards the notification. At another gateway,
// which congests, the flow then arrives as slowly as if the sender had obeyed.

// Unenforced is why the gateway didn't carry out what a notification asks for.
type Unenforced uint8

const (
	unenforcedSource    Unenforced = iota // the source may not send notifications to the domain
	unenforcedMalformed                   // cnpdec refuses it, or its fields contradict each other
	unenforcedSpace                       // no slot for the request or its flow
	unenforcedSoon                        // the last change of the flow's pace was too recent
	unenforcedNothing                     // a resume of a flow that isn't slowed down
	unenforcedAmbiguous                   // it has no tags, and flows of several scopes have the addresses and QPs that it names
	// Unenforceds is the number of reasons.
	Unenforceds
)

var unenforcedNames = [Unenforceds]string{"untrusted-source", "malformed", "no-space", "too-soon", "nothing-to-resume", "ambiguous"}

// enforces reports whether the flows of a sender are paced at a WAN port as notifications ask.
func (w *Worker) enforces(port int, sender packet.Addr) bool {
	p := w.pacers[port]
	if p == nil || p.policy == nil {
		return false
	}
	_, ours := w.policy.Ports[port].Enforce.Lookup(sender)
	return ours
}

// enforce carries out a notification that passes from a WAN port to the fabric. Its flow leaves by the same port.
func (w *Worker) enforce(port int, kind packet.Notification, data []byte, p *packet.Parsed) {
	if pacer := w.pacers[port]; pacer == nil || pacer.policy == nil || kind != packet.ProxyNotification && !w.enforces(port, p.Dst) {
		return
	}
	if !w.permitted(kind, p) {
		w.unenforced(port, unenforcedSource)
		return
	}
	if w.hear(data, p) != cnpdec.Accepted {
		w.unenforced(port, unenforcedMalformed)
		return
	}
	w.enforceNotification(port, p, &w.heard)
}

// enforceNotification carries out a valid notification of a permitted source. p is the result of packet.Parse for it.
func (w *Worker) enforceNotification(port int, p *packet.Parsed, n *cnpdec.Notification) {
	r, ok := paceRequestOf(n)
	if !ok {
		w.unenforced(port, unenforcedMalformed)
		return
	}
	if !w.enforces(port, r.sender) {
		return
	}
	r.scope, r.at = packet.ScopeOf(uint16(w.ports[port].Peer), p), w.now
	switch n.Kind {
	case packet.StandardCNP: // its flow's source QP must be confirmed; that of the other direction may not have sent anything yet
		r.unverified = !w.confirmed(port, p)
	case packet.ProxyNotification: // it is for the proxy, and may come without tags
		k := flowtable.Key{Src: r.sender, Dst: r.receiver, DestQP: r.qp}
		k.SetScope(r.scope)
		if w.locate(&k) == ambiguousScope {
			w.unenforced(port, unenforcedAmbiguous)
			return
		}
		r.scope = k.Scope()
	}
	w.pass(port, &r)
}

// enforceForProxy carries out a notification about a flow to the gateway as a proxy, whose source is permitted.
func (w *Worker) enforceForProxy(k *flowtable.Key) {
	port := w.ports[k.Port].Peer
	if k.SourceQP != 0 || !w.enforces(port, k.Src) { // a flow of UD isn't named by the receiver's QP
		return
	}
	w.pass(port, &paceRequest{sender: k.Src, receiver: k.Dst, qp: k.DestQP, scope: k.Scope(), at: w.now})
}

// pass gives a request to all workers: any of them may have the flow. If too many requests wait for other workers, only this one tries it.
func (w *Worker) pass(port int, r *paceRequest) {
	w.trial = (w.trial + 1) % trialSlots
	t := &w.trials[w.trial]
	if t.Load()&trialMask != 0 {
		if w.obey(port, r) != taken {
			w.unenforced(port, unenforcedSpace)
		}
		return
	}
	t.Store(uint64(len(w.plane.workers)) * untried)
	for _, other := range w.plane.workers {
		if other != w && !other.paceMail[w.id].put(portPaceRequest{*r, port, w.trial}) {
			w.tried(t, port, noSlot)
		}
	}
	w.tried(t, port, w.obey(port, r))
}

// tried notes what a worker has made of a request: taken, noSlot, or 0 if there is nothing to do for it. The last worker counts why, if none has taken it.
func (w *Worker) tried(t *trial, port int, result uint64) {
	switch all := t.Add(result - untried); {
	case all&trialMask != 0 || all/taken&trialMask != 0:
	case all/noSlot != 0:
		w.unenforced(port, unenforcedSpace)
	default:
		w.unenforced(port, unenforcedNothing)
	}
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

func (w *Worker) unenforced(port int, why Unenforced) {
	w.counters.add(port, UnenforcedFirst+Counter(why), 1)
}

// paceRequestOf is what a notification asks for; false if its fields contradict each other, or it names no QP that carries data.
func paceRequestOf(n *cnpdec.Notification) (paceRequest, bool) {
	r := &n.Asks
	return paceRequest{sender: r.Sender, receiver: r.Receiver, qp: r.QP, sendersQP: r.SendersQP, action: r.Ask, parameter: r.Parameter}, r.Consistent() && r.QP >= managementQPs
}

// obey carries out a request for the flow of a port that it names. If that isn't slowed down, the request waits for the flow's next packet. It returns
// taken, noSlot, or 0 for a Resume of a flow that isn't slowed down here.
func (w *Worker) obey(port int, r *paceRequest) (result uint64) {
	p := w.pacers[port]
	if p.policy == nil {
		return taken
	}
	at := p.requests.flows[p.bucket(r.host())]
	for range longestChain {
		if at == 0 {
			break
		}
		h := &p.hosts.of[at]
		if r.names(&h.key, w.sourceQPOf(h)) {
			w.carryOut(port, at, r)
			return taken
		}
		at = h.enforced.next
	}
	switch resumes := r.action == cnpdec.Resume || r.action == cnpdec.EndPause; {
	case resumes && !p.cancel(r):
		return 0
	case !resumes && !p.expect(r):
		return noSlot
	}
	return taken
}

// sourceQPOf is the source QP of a slowed flow, 0 if it isn't known.
func (w *Worker) sourceQPOf(h *pacedHost) uint32 {
	e := &h.enforced
	if w.flows.Live(e.ref) {
		if qp, known := w.learner.SourceQP(e.ref.Index); known {
			e.sourceQP = qp
		}
	}
	return e.sourceQP
}

// takePaceRequests carries out the requests that have waited for a packet of this flow. It reads only lists of requests that may name the flow:
// whoever sends many about other flows of the same sender costs its packets nothing.
func (w *Worker) takePaceRequests(port int, flow flowtable.Ref) {
	p, k := w.pacers[port], w.flows.Key(flow.Index)
	sender := p.hash(senderOf(k))
	sourceQP, known := w.learner.SourceQP(flow.Index)
	if !known {
		sourceQP = 0
	}
	w.takeNamed(port, flow, sourceQP, p.named(sender, k.Dst, k.DestQP, false))
	if sourceQP != 0 {
		w.takeNamed(port, flow, sourceQP, p.named(sender, k.Dst, sourceQP, true))
		w.takeNamed(port, flow, sourceQP, p.named(sender, packet.Addr{}, sourceQP, true))
	}
}

// takeNamed carries out the requests of a list that name a flow.
func (w *Worker) takeNamed(port int, flow flowtable.Ref, sourceQP uint32, link *uint32) {
	p, k := w.pacers[port], w.flows.Key(flow.Index)
	for *link != 0 { // at most requestsABucket
		r := p.requests.waiting.of[*link]
		switch {
		case r.ends() <= w.now:
			p.requests.remove(link)
		case r.names(k, sourceQP):
			p.requests.remove(link)
			w.begin(port, flow, sourceQP, &r)
		default:
			link = &p.requests.waiting.next[*link]
		}
	}
}

// begin carries out a request for a flow that may not be slowed down yet.
func (w *Worker) begin(port int, flow flowtable.Ref, sourceQP uint32, r *paceRequest) {
	p := w.pacers[port]
	at := p.add(w.flows.Key(flow.Index), w.now)
	if at == 0 {
		w.unenforced(port, unenforcedSpace)
		return
	}
	e := &p.hosts.of[at].enforced
	if !e.linked {
		p.link(at)
	}
	e.ref, e.sourceQP = flow, sourceQP
	w.carryOut(port, at, r)
}

// carryOut carries out a request for a flow with a slot, and counts it.
func (w *Worker) carryOut(port int, at uint32, r *paceRequest) {
	if why := w.pacers[port].carryOut(at, r, w.now); why != Unenforceds {
		w.unenforced(port, why)
		return
	}
	w.counters.add(port, EnforcedFirst+Counter(r.action), 1)
}
