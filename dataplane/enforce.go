package dataplane

import (
	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/proxy"
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
	// Unenforceds is the number of reasons.
	Unenforceds
)

var unenforcedNames = [Unenforceds]string{"untrusted-source", "malformed", "no-space", "too-soon", "nothing-to-resume"}

// enforces reports whether the flows of a sender are paced at a WAN port as notifications ask.
func (w *Worker) enforces(port int, sender packet.Addr) bool {
	p := w.egress[port].pacer
	if p == nil || p.policy == nil {
		return false
	}
	_, ours := w.policy.Ports[port].Enforce.Lookup(sender)
	return ours
}

// enforce carries out a notification that passes from a WAN port to the fabric. Its flow leaves by the same port.
func (w *Worker) enforce(port int, kind packet.Notification, data []byte, p *packet.Parsed) {
	if pacer := w.egress[port].pacer; pacer == nil || pacer.policy == nil || kind != packet.ProxyNotification && !w.enforces(port, p.Dst) {
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
	r.outerTag, r.innerTag, r.at = p.OuterTag, p.InnerTag, w.now
	r.unverified = n.Kind == cnpdec.StandardCNP && !w.connected(port, p)
	w.pass(port, &r)
}

// enforceForProxy carries out a notification to the gateway as a proxy, whose source is permitted, at each port by which the flow may leave.
func (w *Worker) enforceForProxy(n *proxy.Request) {
	if n.SourceQP != 0 { // of UD, whose flows the receiver's QP doesn't name
		return
	}
	r := paceRequest{sender: n.Sender, receiver: n.Receiver, qp: n.DestQP, anyTags: true, at: w.now}
	for port := range w.ports {
		if w.ports[port].Role == WAN && w.enforces(port, n.Sender) {
			w.pass(port, &r)
		}
	}
}

// pass gives a request to all workers: any of them may have the flow.
func (w *Worker) pass(port int, r *paceRequest) {
	for _, other := range w.plane.workers {
		if other != w {
			other.paceMail[w.id].put(portPaceRequest{*r, port})
		}
	}
	w.obey(port, r)
}

// permitted reports whether a notification's source may slow a sender down. A standard CNP comes from a receiver, and names its flow with the
// receiver's address and the sender's QP. Any other notification comes from a gateway, which the operator must have listed
// (draft-xiao-fast-cnp 5, draft-tian 9, draft-xiao-proxy 6).
func (w *Worker) permitted(kind packet.Notification, p *packet.Parsed) bool {
	return kind == packet.StandardCNP || w.policy.Border != nil && w.policy.Border.from(p)
}

// extensionOf is what the extension bit of a CNP to a sender means: PPFC if the operator says so of the sender, otherwise Long-haul CNP.
func (w *Worker) extensionOf(sender packet.Addr) cnpdec.Extension {
	if accepted, ok := w.policy.Who.Endpoints.Lookup(sender); ok && accepted.Accepts(congestion.PPFC) {
		return cnpdec.PPFCExtension
	}
	return cnpdec.LongHaulExtension
}

func (w *Worker) unenforced(port int, why Unenforced) {
	w.counters.add(port, UnenforcedFirst+Counter(why), 1)
}

// paceRequestOf is what a notification asks for; false if its fields contradict each other, or it names no QP that carries data.
func paceRequestOf(n *cnpdec.Notification) (r paceRequest, ok bool) {
	r.sender = n.Dst
	switch n.Kind {
	case cnpdec.StandardCNP:
		r.receiver, r.qp, r.sendersQP = n.Src, n.BTH.DestQP, true
	case cnpdec.FastCNP:
		r.receiver, r.qp = n.Fast.Option.Dst, n.BTH.DestQP
	case cnpdec.PPFC:
		r.receiver, r.qp, r.action, r.parameter = n.PPFC.Dst, n.BTH.DestQP, pauseFlow, n.PPFC.Duration
		if n.PPFC.PT == packet.PTResume {
			r.action = endPause
		}
	case cnpdec.LongHaulCNP, cnpdec.LongHaulCNPICMPv6:
		l := &n.LongHaul
		r.qp, r.sendersQP, r.action, r.parameter = l.SourceQP, true, longHaulActions[l.Action], l.Parameter
	case cnpdec.ProxyNotification:
		r.sender, r.receiver, r.anyTags = n.Proxy.Src, n.Proxy.Dst, true
		if n.Proxy.Inner.Kind == packet.RoCEv2 {
			r.qp = n.Proxy.Inner.DestQP
		}
	default:
		return r, false
	}
	if r.parameter == 0 && (r.action == pauseFlow || r.action == reduceFlow) {
		return r, false
	}
	return r, r.qp >= managementQPs
}

var longHaulActions = [...]paceAction{
	packet.ActionNotify: slowDownFlow, packet.ActionPause: pauseFlow, packet.ActionRateReduce: reduceFlow, packet.ActionResume: resumeFlow,
}

// obey carries out a request for the flow of a port that it names. If that isn't slowed down, the request waits for the flow's next packet.
func (w *Worker) obey(port int, r *paceRequest) {
	p := w.egress[port].pacer
	if p.policy == nil {
		return
	}
	at := p.requests.flows[p.bucket(r.sender)]
	for range longestChain {
		if at == 0 {
			break
		}
		h := &p.hosts.of[at]
		if r.names(&h.key, w.sourceQPOf(h)) {
			w.carryOut(port, at, r)
			return
		}
		at = h.enforced.next
	}
	switch {
	case r.action == resumeFlow || r.action == endPause:
		if !p.cancel(r) {
			w.unenforced(port, unenforcedNothing)
		}
	case !p.expect(r):
		w.unenforced(port, unenforcedSpace)
	}
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

// takePaceRequests carries out the requests that have waited for a packet of this flow.
func (w *Worker) takePaceRequests(port int, flow flowtable.Ref) {
	p, k := w.egress[port].pacer, w.flows.Key(flow.Index)
	link := &p.requests.byHash[p.bucket(k.Src)]
	if *link == 0 {
		return
	}
	sourceQP, _ := w.learner.SourceQP(flow.Index)
	for *link != 0 {
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
	p := w.egress[port].pacer
	at := p.add(w.flows.Key(flow.Index), w.now)
	if at == 0 {
		w.unenforced(port, unenforcedSpace)
		return
	}
	e := &p.hosts.of[at].enforced
	if !e.linked {
		head := &p.requests.flows[p.bucket(r.sender)]
		e.linked, e.next, *head = true, *head, at
	}
	e.ref, e.sourceQP = flow, sourceQP
	w.carryOut(port, at, r)
}

// carryOut carries out a request for a flow with a slot, and counts it.
func (w *Worker) carryOut(port int, at uint32, r *paceRequest) {
	if why := w.egress[port].pacer.carryOut(at, r, w.now); why != Unenforceds {
		w.unenforced(port, why)
		return
	}
	w.counters.add(port, EnforcedFirst+Counter(r.action), 1)
}
