package config

import (
	"net/netip"
	"path"
	"time"
)

// protocolResolver makes the settings of the protocols that announce and learn proxies.
type protocolResolver struct{ *resolver }

// resolveBGP checks the settings of the BGP speaker, and fills in what follows from others. b is nil if the file has no proxy.bgp.
func (r *protocolResolver) resolveBGP(b *BGP) {
	if b == nil {
		return
	}
	s, g := &r.doc.Proxy.BGP, &r.doc.Gateway
	b.NextHopIPv4, b.NextHopIPv6 = first(b.NextHopIPv4, b.IPv4), first(b.NextHopIPv6, b.IPv6)
	b.ProxyIPv4, b.ProxyIPv6 = r.listens()
	r.resolveAccept(&s.Accept, b.Accept)
	for i := range b.Peers {
		e := &s.Peers.Items[i]
		for j := range e.Families.Items {
			b.Peers[i].IPv4 = b.Peers[i].IPv4 || e.Families.Items[j].V == 0
			b.Peers[i].IPv6 = b.Peers[i].IPv6 || e.Families.Items[j].V == 1
		}
		r.checkNeighbor(e)
	}
	if !s.valid {
		return
	}
	if !s.AS.given {
		r.problem(s.AS.place, "missing; expected %s", s.AS.expects(rule{min: "1", max: "4294967294"}))
	}
	if b.RouterID = first(b.RouterID, b.IPv4, g.IPv4.V); !s.RouterID.given && !s.IPv4.given && !g.IPv4.given {
		r.problem(s.RouterID.place, "missing, as neither bgp nor gateway has ipv4; expected %s", s.RouterID.expects(rule{}))
	}
	if !s.Peers.given || s.Peers.valid && len(s.Peers.Items) == 0 {
		r.problem(s.Peers.place, "BGP needs a peer; expected a list of sections with address, as")
	}
	r.wholeSeconds(&s.HoldTime)
	r.wholeSeconds(&s.ConnectRetry)
	r.checkAnnounce()
	r.warnIdle(s.place, s.Announce.given, s.Accept.given)
}

// warnIdle warns of a protocol that has nothing to do.
func (r *protocolResolver) warnIdle(at place, announces, accepts bool) {
	if !announces && !accepts {
		r.warn(at, "neither announces nor accepts prefixes; set announce where this gateway is a proxy, and accept where it notifies proxies")
	}
}

// listens are the addresses at which the gateway receives notifications as a proxy.
func (r *protocolResolver) listens() (ipv4, ipv6 netip.Addr) {
	p, g := &r.doc.Proxy, &r.doc.Gateway
	switch {
	case !p.Listen.valid:
		return g.IPv4.V, g.IPv6.V
	case p.Listen.V.Is4():
		return p.Listen.V, ipv6
	}
	return ipv4, p.Listen.V
}

// first is the first address that is valid.
func first(addresses ...netip.Addr) netip.Addr {
	for _, a := range addresses {
		if a.IsValid() {
			return a
		}
	}
	return netip.Addr{}
}

func (r *protocolResolver) wholeSeconds(s *duration) {
	if s.valid && s.V%time.Second != 0 {
		r.problem(s.place, "BGP's timers count seconds; expected a whole number of them, such as 30s")
	}
}

// checkAnnounce checks that there are the addresses that an announcement names: a next hop of the prefix's IP version, and a proxy.
func (r *protocolResolver) checkAnnounce() {
	s, g := &r.doc.Proxy.BGP, &r.doc.Gateway
	for i := range s.Announce.Items {
		p := &s.Announce.Items[i]
		switch {
		case !p.valid:
		case p.V.Addr().Is4() && !s.IPv4.given && !s.NextHopIPv4.given:
			r.problem(p.place, "%s needs a next hop; set ipv4 or next_hop_ipv4 in bgp (%s)", p.V, r.position(s.place))
		case p.V.Addr().Is6() && !s.IPv6.given && !s.NextHopIPv6.given:
			r.problem(p.place, "%s needs a next hop; set ipv6 or next_hop_ipv6 in bgp (%s)", p.V, r.position(s.place))
		case g.valid && !r.doc.Proxy.Listen.given && !g.IPv4.given && !g.IPv6.given:
			r.problem(p.place, "a proxy needs an address for notifications; set ipv4, ipv6 or both in gateway (%s)", r.position(g.place))
			return
		}
	}
}

// resolveAccept sets the greatest lengths of the prefixes that are accepted.
func (r *protocolResolver) resolveAccept(s *list[acceptSection], accept []BGPAccept) {
	for i := range accept {
		e := &s.Items[i]
		if !e.Prefix.valid {
			continue
		}
		switch most, length := e.Prefix.V.Addr().BitLen(), int(e.MaxLength.V); {
		case !e.MaxLength.given:
			accept[i].MaxLength = most
		case e.MaxLength.valid && (length < e.Prefix.V.Bits() || length > most):
			r.problem(e.MaxLength.place, "%d is not a length within %s; expected %d to %d", length, e.Prefix.V, e.Prefix.V.Bits(), most)
		}
	}
}

// checkNeighbor checks a peer against the other keys.
func (r *protocolResolver) checkNeighbor(e *neighborSection) {
	s := &r.doc.Proxy.BGP
	if e.Address.valid && !e.Address.twice {
		own, key := &s.IPv6.V, "ipv6"
		given := s.IPv6.given
		if e.Address.V.Is4() {
			own, key, given = &s.IPv4.V, "ipv4", s.IPv4.given
		}
		switch {
		case !given:
			r.problem(e.Address.place, "a session with %s needs an address of this gateway; set %s in bgp (%s)", e.Address.V, key, r.position(s.place))
		case *own == e.Address.V:
			r.problem(e.Address.place, "%s is the speaker's own address; expected another router's", e.Address.V)
		}
	}
	if e.PasswordFile.valid && !path.IsAbs(e.PasswordFile.V) {
		r.problem(e.PasswordFile.place, "%s is not an absolute path; expected such as /etc/cnpgate/bgp-password", quote(e.PasswordFile.V))
	}
	if e.Passive.V && s.Port.valid && s.Port.V == 0 {
		r.problem(e.Passive.place, "a passive peer opens the session, but port in bgp is 0 (%s), so that none is accepted; expected false, or another port",
			r.position(s.Port.place))
	}
	if e.Multihop.given && e.TTLSecurity.given {
		r.problem(e.TTLSecurity.place, "can't go together with multihop (%s): ttl_security also sets how far away the peer may be; keep one of the two",
			r.position(e.Multihop.place))
	}
	if e.Multihop.given && e.AS.valid && e.AS.V == s.AS.V {
		r.warn(e.Multihop.place, "has no effect, as the peer is of the same AS, whose packets may pass routers")
	}
}

// resolveOSPF6 checks the settings of the client of ospf6d. o is nil if the file has no proxy.ospf6.
func (r *protocolResolver) resolveOSPF6(o *OSPF6) {
	if o == nil {
		return
	}
	s, p := &r.doc.Proxy.OSPF6, &r.doc.Proxy
	r.resolveAccept(&s.Accept, o.Accept)
	if o.Proxy = r.doc.Gateway.IPv6.V; p.Listen.valid {
		o.Proxy = p.Listen.V
	}
	if s.Socket.valid && !path.IsAbs(s.Socket.V) {
		r.problem(s.Socket.place, "%s is not an absolute path; expected ospf6d's vty socket, such as /var/run/frr/ospf6d.vty", quote(s.Socket.V))
	}
	if s.valid && !s.Accept.given {
		r.warn(s.place, "accepts no prefixes, so nothing is learned; set accept")
	}
}

// resolveOSPF checks the settings of the client of ospfd. o is nil if the file has no proxy.ospf.
func (r *protocolResolver) resolveOSPF(o *OSPF) {
	if o == nil {
		return
	}
	s := &r.doc.Proxy.OSPF
	r.resolveAccept(&s.Accept, o.Accept)
	o.Proxy, _ = r.listens()
	if o.API, _ = netip.ParseAddrPort(s.API.V); s.API.valid && !o.API.Addr().Is4() {
		r.problem(s.API.place, "ospfd serves its API at IPv4 addresses; expected one with a port, such as 127.0.0.1:2607")
	}
	for i := range s.Announce.Items {
		switch e := &s.Announce.Items[i]; {
		case !e.valid:
		case !e.V.Addr().Is4():
			r.problem(e.place, "%s is not an IPv4 prefix; OSPFv2 announces no others", e.V)
		case !o.Proxy.IsValid() && r.doc.Gateway.valid:
			r.problem(e.place, "%s needs the proxy's IPv4 address; set gateway.ipv4, or an IPv4 address as proxy.listen", e.V)
		}
	}
	if s.valid {
		r.warnIdle(s.place, s.Announce.given, s.Accept.given)
	}
}
