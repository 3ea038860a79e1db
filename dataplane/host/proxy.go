package host

import (
	"net/netip"
	"slices"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
	"github.com/cnpgate/cnpgate/proxy"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// Proxy makes the gateway a proxy (draft-xiao-proxy 3): congested nodes notify it by UDP, and it notifies the sender in a format that the
// sender accepts.
type Proxy struct {
	addresses []packet.Addr // reachable on each port
	listens   []packet.Addr // those of them that receive notifications
	sources   *prefix.Table[struct{}]

	perSource ratelimit.Rate // notifications from one source
	received  ratelimit.Rate // notifications from all sources
}

// NewProxy makes a proxy with the gateway's addresses, which may be invalid: it has none of that IP version. It takes notifications to listen, or
// to each address if listen is invalid, from the sources, at most so many a second from one source and from all of them; 0 is no limit.
func NewProxy(ipv4, ipv6, listen netip.Addr, sources []netip.Prefix, perSource, received uint64) *Proxy {
	x := &Proxy{sources: prefix.Set(sources), perSource: ratelimit.PerSecond(perSource), received: ratelimit.PerSecond(received)}
	for _, a := range []netip.Addr{ipv4, ipv6, listen} {
		if a.IsValid() {
			x.addresses = append(x.addresses, packet.AddrFrom(a))
		}
	}
	x.listens = x.addresses
	if listen.IsValid() {
		x.listens = x.addresses[len(x.addresses)-1:]
	}
	return x
}

// Owns reports whether a is one of the gateway's addresses. A nil Proxy has none.
func (x *Proxy) Owns(a packet.Addr) bool { return x != nil && slices.Contains(x.addresses, a) }

// Listens reports whether an address receives notifications.
func (x *Proxy) Listens(a packet.Addr) bool { return slices.Contains(x.listens, a) }

// proxySources is the number of sources whose limits are kept at once.
const proxySources = 4096

// Accept checks a notification, the cheap checks first, and reads what it asks for. known: its source is one of those outside the domain that
// may notify. Once the limit of all sources is reached, a flood from many addresses doesn't touch the table of sources.
func (s *Stage) Accept(f *Frame, known bool) (none proxy.Request, why proxy.Refusal) {
	x, p := f.Proxy, f.Parsed
	if _, listed := x.sources.Lookup(p.Src); !listed {
		return none, proxy.UntrustedSource
	}
	if x.Owns(p.Src) || known && !f.WAN {
		return none, proxy.WrongSide
	}
	if !x.received.Check(&s.fromAll, f.Now) {
		return none, proxy.ReceiveLimit
	}
	switch s.fromSource.Allow(x.perSource, packet.Host{Addr: p.Src, Scope: packet.ScopeOf(uint16(f.Port), p)}, f.Now) {
	case ratelimit.Limited:
		return none, proxy.SourceLimit
	case ratelimit.Busy:
		return none, proxy.SourcesFull
	}
	if !x.received.Allow(&s.fromAll, f.Now) {
		return none, proxy.ReceiveLimit
	}
	return proxy.Read(f.Data, p, &f.Gateway.Code)
}

// Refused returns the flow whose Fast CNP a host has refused by a Parameter Problem; false if that is about anything else.
func Refused(f *Frame) (k flowtable.Key, ok bool) {
	r, ok := packet.DecodeFastCNPRefusal(f.Data, f.Parsed, &f.Gateway.Code)
	k = flowtable.Key{Src: f.Parsed.Src, Dst: r.Dst, DestQP: r.DestQP}
	k.SetScope(packet.ScopeOf(uint16(f.Port), f.Parsed))
	return k, ok
}
