package dataplane

import (
	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/proxy"
)

// gateway connects a worker with the gateway as a host, see package host.
type gateway struct {
	*common
	requests *requests
	paths    []path       // by port
	links    []linkHeader // by port
}

// linkHeader is the Ethernet header of a data packet, for frames that the gateway sends by the same port. It stays for a time, so that a reply can come.
type linkHeader struct {
	octets [cnpgen.LinkLen]byte
	len    int
	until  int64 // ns
}

// hostFrame is what the frames of a port have in common for the gateway as a host.
func (g *gateway) hostFrame(port int) host.Frame {
	return host.Frame{
		Port: port, WAN: g.ports[port].Role == WAN, Address: g.ports[port].Address, Now: g.now, Ahead: g.clock.Load(),
		Gateway: &g.policy.Build, Session: &g.policy.Ports[port].STAMP, Reflects: g.policy.Reflects, Proxy: g.policy.Proxy, Out: g.replyBuffer(port),
	}
}

// replyBuffer is the last spare buffer, if a port has space for a reply.
func (g *gateway) replyBuffer(port int) []byte {
	if g.canQueue(&g.egress[port].Notifications) != allowed {
		return nil
	}
	return g.batch.Bytes(g.batch.Spare[len(g.batch.Spare)-1])
}

// receive passes a frame to the gateway as a host. It returns the counter of its end, or passed.
func (g *gateway) receive(f *host.Frame) Counter {
	r := g.host.Receive(f)
	if r == (host.Result{}) {
		return passed
	}
	g.conclude(f, &r)
	switch r.Verdict {
	case host.Forward:
		return passed
	case host.Notification:
		return g.notified(f)
	case host.ParameterProblem:
		if k, ok := host.Refused(f); ok && g.notifiedWithin(&k, host.RefusalTime) { // otherwise anybody could stop Fast CNPs to a host
			g.host.Refusals.Refuse(packet.Host{Addr: k.Src, Scope: k.Scope()}, g.now)
			g.counters.add(f.Port, FastCNPRefused, 1)
		}
	}
	return ConsumedSTAMP + Counter(r.Verdict-host.STAMP)
}

// notified ends a notification to the gateway as a proxy. The domain filter applies to it, too.
func (g *gateway) notified(f *host.Frame) Counter {
	g.counters.add(f.Port, ReceivedFirst+Counter(packet.ProxyNotification), 1)
	border := g.policy.Border
	known := border != nil && border.from(f.Parsed)
	switch {
	case f.WAN && border != nil && !known && !border.onlyObserves(&g.counters, f.Port, DroppedBorderIn):
		return DroppedBorderIn
	case !f.Proxy.Listens(f.Parsed.Dst):
		return DroppedToGateway
	}
	request, reason := g.host.Accept(f, known)
	if reason == proxy.Accepted {
		reason = g.requests.pass(f, &request)
	}
	if reason == proxy.Accepted {
		g.counters.add(f.Port, ProxyAccepted, 1)
	} else {
		g.counters.add(f.Port, ProxyRefusedFirst+Counter(reason-1), 1)
	}
	return ConsumedProxyNotification
}

// conclude sends a reply, counts an event, and records a round-trip time.
func (g *gateway) conclude(f *host.Frame, r *host.Result) {
	if r.Event != host.NoEvent {
		g.counters.add(f.Port, AnswersLimited+Counter(r.Event-host.AnswerLimited), 1)
	}
	if r.Size > 0 {
		g.push(&g.egress[f.Port].Notifications, r.Size, tagHost+flowtable.Index(r.Verdict))
		f.Out = g.replyBuffer(f.Port)
	}
	g.paths[f.Port].probed(r.RTT)
}

// probe sends a port's next STAMP test packet if it is due. Nothing is sent before a data packet has shown the Ethernet header towards the
// peer, nor while the line is busy: the packet must leave at the time of its timestamp.
func (g *gateway) probe(port int, interval int64) {
	l := &g.links[port]
	if l.len == 0 || g.batch.Drain || g.egress[port].Line.Busy(g.now) || !g.host.Due(port, uint32(g.id), g.now, interval) {
		return
	}
	f := g.hostFrame(port)
	r := g.host.Probe(&f, uint32(g.id), l.octets[:l.len])
	g.conclude(&f, &r)
}

// noteLink keeps the Ethernet header of a forwarded packet outside tunnels. While the peer answers test packets with the present header, that stays:
// another one may be of a VLAN that doesn't lead to the peer.
func (g *gateway) noteLink(b *batch, out int, interval int64) {
	l := &g.links[out]
	if by, ok := g.host.Answers(out, g.now, interval); g.now < l.until || ok && by == uint32(g.id) {
		return
	}
	data, p := b.frame(0)
	if b.gone&1 == 0 && p.Kind == packet.RoCEv2 && !p.Encapsulated() && !b.toGroup(0) {
		l.len, l.until = copy(l.octets[:], data[:p.L3]), g.now+host.AnsweredIntervals*interval
	}
	b.inHand = notInHand
}
