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
func (l *listener) enforces(port int, sender packet.Addr) bool {
	p := l.pacers[port]
	if p == nil || p.policy == nil {
		return false
	}
	_, ours := l.policy.Ports[port].Enforce.Lookup(sender)
	return ours
}

func (l *listener) unenforced(port int, why Unenforced) {
	l.counters.add(port, UnenforcedFirst+Counter(why), 1)
}

// obey carries out a request for the flow of a port that it names. If that isn't slowed down, the request waits for the flow's next packet.
// It returns taken, noSlot, or 0 for a Resume of a flow that isn't slowed down here.
func (l *listener) obey(port int, r *paceRequest) (result uint64) {
	p := l.pacers[port]
	if p.policy == nil {
		return taken
	}
	at := p.requests.flows[p.bucket(r.host())]
	for range longestChain {
		if at == 0 {
			break
		}
		h := &p.hosts.of[at]
		if r.names(&h.key, l.sourceQPOf(h)) {
			l.carryOut(port, at, r)
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
func (l *listener) sourceQPOf(h *pacedHost) uint32 {
	e := &h.enforced
	if l.flows.Live(e.ref) {
		if qp, known := l.learner.SourceQP(e.ref.Index); known {
			e.sourceQP = qp
		}
	}
	return e.sourceQP
}

// takePaceRequests carries out the requests that have waited for a packet of this flow. It reads only lists of requests that may name the
// flow: whoever sends many about other flows of the same sender costs its packets nothing.
func (l *listener) takePaceRequests(port int, flow flowtable.Ref) {
	p, k := l.pacers[port], l.flows.Key(flow.Index)
	sender := p.hash(senderOf(k))
	sourceQP, known := l.learner.SourceQP(flow.Index)
	if !known {
		sourceQP = 0
	}
	l.takeNamed(port, flow, sourceQP, p.named(sender, k.Dst, k.DestQP, false))
	if sourceQP != 0 {
		l.takeNamed(port, flow, sourceQP, p.named(sender, k.Dst, sourceQP, true))
		l.takeNamed(port, flow, sourceQP, p.named(sender, packet.Addr{}, sourceQP, true))
	}
}

// takeNamed carries out the requests of a list that name a flow.
func (l *listener) takeNamed(port int, flow flowtable.Ref, sourceQP uint32, link *uint32) {
	p, k := l.pacers[port], l.flows.Key(flow.Index)
	for *link != 0 { // at most requestsABucket
		r := p.requests.waiting.of[*link]
		switch {
		case r.ends() <= l.now:
			p.requests.remove(link)
		case r.names(k, sourceQP):
			p.requests.remove(link)
			l.begin(port, flow, sourceQP, &r)
		default:
			link = &p.requests.waiting.next[*link]
		}
	}
}

// begin carries out a request for a flow that may not be slowed down yet.
func (l *listener) begin(port int, flow flowtable.Ref, sourceQP uint32, r *paceRequest) {
	p := l.pacers[port]
	at := p.add(l.flows.Key(flow.Index), l.now)
	if at == 0 {
		l.unenforced(port, unenforcedSpace)
		return
	}
	e := &p.hosts.of[at].enforced
	if !e.linked {
		p.link(at)
	}
	e.ref, e.sourceQP = flow, sourceQP
	l.carryOut(port, at, r)
}

// carryOut carries out a request for a flow with a slot, and counts it.
func (l *listener) carryOut(port int, at uint32, r *paceRequest) {
	if why := l.pacers[port].carryOut(at, r, l.now); why != Unenforceds {
		l.unenforced(port, why)
		return
	}
	l.counters.add(port, EnforcedFirst+Counter(r.action), 1)
}
