package dataplane

import (
	"net/netip"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
	"github.com/cnpgate/cnpgate/proxy"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// ProxyNode makes the gateway a proxy (draft-xiao-proxy 3): congested nodes notify it by UDP, and it notifies the sender in a format that the
// sender accepts.
type ProxyNode struct {
	addresses []packet.Addr // reachable on each port
	listens   []packet.Addr // those of them that receive notifications
	sources   *prefix.Table[struct{}]

	perSource ratelimit.Rate // notifications from one source
	received  ratelimit.Rate // notifications from all sources
}

// NewProxyNode makes a proxy with the gateway's addresses, which may be invalid: it has none of that IP version. It takes notifications to listen, or
// to each address if listen is invalid, from the sources, at most so many a second from one source and from all of them; 0 is no limit.
func NewProxyNode(ipv4, ipv6, listen netip.Addr, sources []netip.Prefix, perSource, received uint64) *ProxyNode {
	n := &ProxyNode{sources: set(sources), perSource: ratelimit.PerSecond(perSource), received: ratelimit.PerSecond(received)}
	for _, a := range []netip.Addr{ipv4, ipv6, listen} {
		if a.IsValid() {
			n.addresses = append(n.addresses, packet.AddrFrom(a))
		}
	}
	n.listens = n.addresses
	if listen.IsValid() {
		n.listens = n.addresses[len(n.addresses)-1:]
	}
	return n
}

// owns reports whether a is one of the gateway's addresses.
func (n *ProxyNode) owns(a packet.Addr) bool { return has(n.addresses, a) }

// has reports whether a is in a list of a few addresses.
func has(addresses []packet.Addr, a packet.Addr) bool {
	for i := range addresses {
		if addresses[i] == a {
			return true
		}
	}
	return false
}

// proxySources is the number of sources whose limits are kept at once.
const proxySources = 4096

// takesNotification consumes a notification to the gateway as a proxy, and passes it to the worker that has its flow; or drops one that the domain
// filter doesn't admit, or that is for an address that doesn't receive notifications.
func (w *Worker) takesNotification(port int, f burst.Frame, data []byte, p *packet.Parsed, node *ProxyNode) {
	w.counters.add(port, ReceivedFirst+Counter(packet.ProxyNotification-1), 1)
	switch {
	case w.ports[port].Role == WAN && w.policy.Border != nil && !w.policy.Border.from(p) && !w.policy.Border.onlyObserves(&w.counters, port, DroppedBorderIn):
		w.drop(port, DroppedBorderIn, f)
		return
	case !has(node.listens, p.Dst):
		w.drop(port, DroppedToGateway, f)
		return
	}
	w.drop(port, ConsumedProxyNotification, f)
	if reason := w.accept(port, data, p, node); reason != proxy.Accepted {
		w.counters.add(port, ProxyRefusedFirst+Counter(reason-1), 1)
		return
	}
	w.counters.add(port, ProxyAccepted, 1)
}

// accept checks a notification, the cheap checks first, and requests that its flow's sender is notified. Once the limit of all sources is
// reached, a flood from many addresses doesn't touch the table of sources.
func (w *Worker) accept(port int, data []byte, p *packet.Parsed, node *ProxyNode) proxy.Refusal {
	if _, listed := node.sources.Lookup(p.Src); !listed {
		return proxy.UntrustedSource
	}
	if node.owns(p.Src) || w.ports[port].Role == Fabric && w.policy.Border != nil && w.policy.Border.from(p) {
		return proxy.WrongSide
	}
	if node.received.Reached(&w.plane.fromAll, w.now) {
		return proxy.ReceiveLimit
	}
	switch w.plane.fromSource.Allow(node.perSource, packet.Host{Addr: p.Src, Scope: packet.ScopeOf(uint16(port), p)}, w.now) {
	case ratelimit.Limited:
		return proxy.SourceLimit
	case ratelimit.Busy:
		return proxy.SourcesFull
	}
	if !node.received.Allow(&w.plane.fromAll, w.now) {
		return proxy.ReceiveLimit
	}
	request, reason := proxy.Read(data, p, &w.policy.Build.Code)
	if reason != proxy.Accepted {
		return reason
	}
	in := port // the sender's data arrives from the fabric
	if w.ports[port].Role == WAN {
		in = w.ports[port].Peer
	}
	k := flowtable.Key{Src: request.Sender, Dst: request.Receiver, DestQP: request.DestQP, SourceQP: request.SourceQP}
	k.SetScope(packet.ScopeOf(uint16(in), p))
	if w.locate(&k) == ambiguousScope {
		return proxy.Ambiguous
	}
	if !w.requestFlow(&k, request.Level) {
		return proxy.FlowUnknown
	}
	w.enforceForProxy(&k)
	return proxy.Accepted
}
