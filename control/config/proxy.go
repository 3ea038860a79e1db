package config

import (
	"net/netip"

	"github.com/cnpgate/cnpgate/proxy"
)

func (r *report) resolveProxy(s *proxySection, g *gatewaySection) Proxy {
	return Proxy{
		Enabled: s.Enabled.V, Port: uint16(s.Port.V), Senders: r.resolveSenders(&s.Senders), PerProxy: s.Limits.PerProxy.V,
		Listen: s.Listen.V, Sources: r.prefixes(&s.Sources), PerSource: s.Limits.PerSource.V, Received: s.Limits.Received.V,
		BGP: r.resolveBGP(&s.BGP, s, g), OSPF: r.resolveOSPF(&s.OSPF, s, g), OSPF6: r.resolveOSPF6(&s.OSPF6, s, g),
	}
}

func (r *report) resolveSenders(s *list[senderSection]) []proxy.Sender {
	var senders []proxy.Sender
	seen := map[netip.Prefix]place{}
	for i := range s.Items {
		e := &s.Items[i]
		if e.Prefix.valid && e.Proxy.valid && unique(r, seen, e.Prefix.V, e.Prefix.place, "the prefix "+e.Prefix.V.String()) {
			senders = append(senders, proxy.Sender{Prefix: e.Prefix.V, Proxy: e.Proxy.V, Origin: proxy.OriginStatic})
		}
	}
	return senders
}

// checkProxies checks the proxies against the gateway's addresses and the domain, and warns of roles that have no effect.
func (r *report) checkProxies(doc *document) {
	p := &doc.Proxy
	r.checkProxyPort(&p.Port, doc.Domain.place)
	if !p.Enabled.V {
		for _, role := range []place{p.Listen.place, p.Senders.place, p.Sources.place, p.BGP.place, p.OSPF.place, p.OSPF6.place} {
			if role.given {
				r.warn(role, "has no effect, as %s is false", p.Enabled.path)
			}
		}
		return
	}
	if len(p.Senders.Items) == 0 && len(p.Sources.Items) == 0 && !p.BGP.given && !p.OSPF.given && !p.OSPF6.given {
		r.warn(p.Enabled.place, "has no effect without a role; add %s to notify the proxies of these senders, or %s to be a proxy for notifications from there",
			p.Senders.path, p.Sources.path)
	}
	if g := &doc.Gateway; g.valid && len(p.Sources.Items) > 0 && !g.IPv4.given && !g.IPv6.given && !p.Listen.given {
		r.warn(p.Sources.place, "has no effect, as the gateway has no address that notifications could be sent to; set gateway.ipv4, gateway.ipv6 or %s", p.Listen.path)
	}
	for i := range p.Senders.Items {
		if e := &p.Senders.Items[i]; e.Proxy.valid {
			r.checkProxy(doc, &e.Proxy)
		}
	}
}

// checkProxy checks that a proxy is another node, which the gateway's notifications reach.
func (r *report) checkProxy(doc *document, a *routed) {
	g := &doc.Gateway
	if !g.valid {
		return
	}
	if a.V == g.IPv4.V || a.V == g.IPv6.V || a.V == doc.Proxy.Listen.V {
		r.problem(a.place, "%s is this gateway's own address, and it notifies these senders itself; expected another node's address, or list the senders in endpoints", a.V)
		return
	}
	switch {
	case a.V.Is4() && !g.IPv4.given:
		r.warn(a.place, "no notification can be sent to %s, as gateway.ipv4 is not set", a.V)
	case a.V.Is6() && !g.IPv6.given:
		r.warn(a.place, "no notification can be sent to %s, as gateway.ipv6 is not set", a.V)
	}
	if doc.Domain.given && doc.Domain.Members.valid && !within(a.V, &doc.Domain.Members) {
		r.warn(a.place, "%s is in no prefix of domain.members, and a gateway at the domain's border drops notifications to it", a.V)
	}
}

func within(a netip.Addr, prefixes *list[prefix]) bool {
	for i := range prefixes.Items {
		if p := &prefixes.Items[i]; p.valid && p.V.Contains(a) {
			return true
		}
	}
	return false
}
