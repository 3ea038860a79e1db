package dataplane

import (
	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/frames"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/proxy"
)

// ownHost connects a worker with the gateway as a host, see package host.
type ownHost struct {
	*stage.State
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
func (g *ownHost) hostFrame(port int) host.Frame {
	return host.Frame{
		Port: port, WAN: g.Ports[port].Role == WAN, Address: g.Ports[port].Address, Now: g.Now, Ahead: g.Clock.Load(),
		Gateway: &g.Policy.Build, Session: &g.Policy.Ports[port].STAMP, Reflects: g.Policy.Reflects, Proxy: g.Policy.Proxy, Out: g.replyBuffer(port),
	}
}

// replyBuffer is the last spare buffer, if a port has space for a reply.
func (g *ownHost) replyBuffer(port int) []byte {
	if g.CanQueue(&g.Egress[port].Notifications) != counters.Allowed {
		return nil
	}
	return g.IO.Bytes(g.IO.Spare[len(g.IO.Spare)-1])
}

// receive passes a frame to the gateway as a host. It returns the counter of its end, or passed.
func (g *ownHost) receive(f *host.Frame) counters.Counter {
	r := g.Host.Receive(f)
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
		if k, ok := host.Refused(f); ok && g.NotifiedWithin(&k, host.RefusalTime) { // otherwise anybody could stop Fast CNPs to a host
			g.Host.Refusals.Refuse(packet.Host{Addr: k.Src, Scope: k.Scope()}, g.Now)
			g.Counters.Add(f.Port, counters.FastCNPRefused, 1)
		}
	}
	return counters.ConsumedSTAMP + counters.Counter(r.Verdict-host.STAMP)
}

// notified ends a notification to the gateway as a proxy. The domain filter applies to it, too.
func (g *ownHost) notified(f *host.Frame) counters.Counter {
	g.Counters.Add(f.Port, counters.ReceivedFirst+counters.Counter(packet.ProxyNotification), 1)
	domain := g.Policy.Domain
	known := domain != nil && domain.From(f.Parsed)
	switch {
	case f.WAN && domain != nil && !known && !domain.OnlyObserves(&g.Counters, f.Port, counters.DroppedDomainIn):
		return counters.DroppedDomainIn
	case !f.Proxy.Listens(f.Parsed.Dst):
		return counters.DroppedToGateway
	}
	request, reason := g.Host.Accept(f, known)
	if reason == proxy.Accepted {
		reason = g.requests.pass(f, &request)
	}
	if reason == proxy.Accepted {
		g.Counters.Add(f.Port, counters.ProxyAccepted, 1)
	} else {
		g.Counters.Add(f.Port, counters.ProxyRefusedFirst+counters.Counter(reason-1), 1)
	}
	return counters.ConsumedProxyNotification
}

// conclude sends a reply, counts an event, and records a round-trip time.
func (g *ownHost) conclude(f *host.Frame, r *host.Result) {
	if r.Event != host.NoEvent {
		g.Counters.Add(f.Port, counters.AnswersLimited+counters.Counter(r.Event-host.AnswerLimited), 1)
	}
	if r.Size > 0 {
		g.Push(&g.Egress[f.Port].Notifications, r.Size, tagHost+flowtable.Index(r.Verdict))
		f.Out = g.replyBuffer(f.Port)
	}
	g.paths[f.Port].probed(r.RTT)
}

// probe sends a port's next STAMP test packet if it is due. Nothing is sent before a data packet has shown the Ethernet header towards the
// peer, nor while the line is busy: the packet must leave at the time of its timestamp.
func (g *ownHost) probe(port int, interval int64) {
	l := &g.links[port]
	if l.len == 0 || g.IO.Drain || g.Egress[port].Line.Busy(g.Now) || !g.Host.Due(port, uint32(g.ID), g.Now, interval) {
		return
	}
	f := g.hostFrame(port)
	r := g.Host.Probe(&f, uint32(g.ID), l.octets[:l.len])
	g.conclude(&f, &r)
}

// noteLink keeps the Ethernet header of a forwarded packet outside tunnels. While the peer answers test packets with the present header, that stays:
// another one may be of a VLAN that doesn't lead to the peer.
func (g *ownHost) noteLink(b *frames.Batch, out int, interval int64) {
	l := &g.links[out]
	if by, ok := g.Host.Answers(out, g.Now, interval); g.Now < l.until || ok && by == uint32(g.ID) {
		return
	}
	data, p := b.Frame(0)
	if b.Gone&1 == 0 && p.Kind == packet.RoCEv2 && !p.Encapsulated() && !b.ToGroup(0) {
		l.len, l.until = copy(l.octets[:], data[:p.L3]), g.Now+host.AnsweredIntervals*interval
	}
	b.InHand = frames.NotInHand
}
