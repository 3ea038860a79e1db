package dataplane

import (
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/proxy"
)

// This file connects a worker with the gateway as a host, see package host.

// hostFrame is what the frames of a port have in common for the gateway as a host.
func (w *Worker) hostFrame(port int) host.Frame {
	return host.Frame{
		Port: port, WAN: w.ports[port].Role == WAN, Address: w.ports[port].Address, Now: w.now, Ahead: w.plane.wallClock.Load(),
		Gateway: &w.policy.Build, Session: &w.policy.Ports[port].STAMP, Reflects: w.policy.Reflects, Proxy: w.policy.Proxy, Out: w.replyBuffer(port),
	}
}

// replyBuffer is the last spare buffer, if a port has space for a reply.
func (w *Worker) replyBuffer(port int) []byte {
	if canQueue(w, &w.egress[port].Notifications) != allowed {
		return nil
	}
	return w.batch.Bytes(w.batch.Spare[len(w.batch.Spare)-1])
}

// toGateway passes a frame to the gateway as a host. It returns the counter of its end, or passed.
func (w *Worker) toGateway(f *host.Frame) Counter {
	r := w.plane.host.Receive(f)
	if r == (host.Result{}) {
		return passed
	}
	w.conclude(f, &r)
	switch r.Verdict {
	case host.Forward:
		return passed
	case host.Notification:
		return w.toProxy(f)
	case host.ParameterProblem:
		if k, ok := host.Refused(f); ok && w.plane.notifiedWithin(&k, w.now, host.RefusalTime) { // otherwise anybody could stop Fast CNPs to a host
			w.plane.host.Refusals.Refuse(packet.Host{Addr: k.Src, Scope: k.Scope()}, w.now)
			w.counters.add(f.Port, FastCNPRefused, 1)
		}
	}
	return ConsumedSTAMP + Counter(r.Verdict-host.STAMP)
}

// conclude sends a reply, counts an event, and records a round-trip time.
func (w *Worker) conclude(f *host.Frame, r *host.Result) {
	if r.Event != host.NoEvent {
		w.counters.add(f.Port, AnswersLimited+Counter(r.Event-host.AnswerLimited), 1)
	}
	if r.Size > 0 {
		w.push(&w.egress[f.Port].Notifications, r.Size, tagHost+flowtable.Index(r.Verdict))
		f.Out = w.replyBuffer(f.Port)
	}
	w.plane.paths[f.Port].probed(r.RTT)
}

// probe sends a port's next STAMP test packet if it is due. Nothing is sent before a data packet has shown the Ethernet header towards the
// peer, nor while the line is busy: the packet must leave at the time of its timestamp.
func (w *Worker) probe(port int, interval int64) {
	t := &w.trackers[port]
	if t.linkLen == 0 || w.batch.Drain || w.egress[port].Line.Busy(w.now) || !w.plane.host.Due(port, uint32(w.id), w.now, interval) {
		return
	}
	f := w.hostFrame(port)
	r := w.plane.host.Probe(&f, uint32(w.id), t.link[:t.linkLen])
	w.conclude(&f, &r)
}

// toProxy ends a notification to the gateway as a proxy. The domain filter applies to it, too.
func (w *Worker) toProxy(f *host.Frame) Counter {
	w.counters.add(f.Port, ReceivedFirst+Counter(packet.ProxyNotification-1), 1)
	border := w.policy.Border
	known := border != nil && border.from(f.Parsed)
	switch {
	case f.WAN && border != nil && !known && !border.onlyObserves(&w.counters, f.Port, DroppedBorderIn):
		return DroppedBorderIn
	case !f.Proxy.Listens(f.Parsed.Dst):
		return DroppedToGateway
	}
	request, reason := w.plane.host.Accept(f, known)
	if reason == proxy.Accepted {
		reason = w.passRequest(f, &request)
	}
	if reason == proxy.Accepted {
		w.counters.add(f.Port, ProxyAccepted, 1)
	} else {
		w.counters.add(f.Port, ProxyRefusedFirst+Counter(reason-1), 1)
	}
	return ConsumedProxyNotification
}

// notifiedWithin reports whether a flow exists whose sender was notified within this many ns before now. It searches all workers, since what
// asks may arrive at another one than the flow's packets.
func (d *Dataplane) notifiedWithin(k *flowtable.Key, now, ns int64) bool {
	for _, w := range d.workers {
		if x, state, found := w.flows.Find(k); found && w.accounts.NotifiedWithin(x, state.Generation(), now, ns) {
			return true
		}
	}
	return false
}
