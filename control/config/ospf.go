package config

import (
	"net/netip"
	"path"
	"time"
)

type ospfSection struct {
	place
	API      socket              `key:"api" default:"127.0.0.1:2607"`
	Announce list[prefix]        `key:"announce" most:"1024"`
	Accept   list[acceptSection] `key:"accept" most:"1024"`
}

type ospf6Section struct {
	place
	Socket   text                `key:"socket" default:"/var/run/frr/ospf6d.vty"`
	Interval duration            `key:"interval" default:"10s" min:"1s" max:"1h"`
	Accept   list[acceptSection] `key:"accept" most:"1024"`
}

// OSPF6 has the settings of the client of ospf6d, which learns by which proxy senders are notified.
type OSPF6 struct {
	Socket   string // path of ospf6d's vty socket
	Interval time.Duration
	Proxy    netip.Addr // the gateway's IPv6 address as a proxy, from which it learns nothing; the zero Addr: none
	Accept   []BGPAccept
}

// resolveOSPF6 returns nil, no OSPFv3, if the file has no proxy.ospf6.
func (r *report) resolveOSPF6(s *ospf6Section, p *proxySection, g *gatewaySection) *OSPF6 {
	if !s.given {
		return nil
	}
	o := &OSPF6{Socket: s.Socket.V, Interval: s.Interval.V, Accept: r.resolveAccept(&s.Accept), Proxy: g.IPv6.V}
	if p.Listen.valid {
		o.Proxy = p.Listen.V
	}
	if s.Socket.valid && !path.IsAbs(s.Socket.V) {
		r.problem(s.Socket.place, "%s is not an absolute path; expected ospf6d's vty socket, such as /var/run/frr/ospf6d.vty", quote(s.Socket.V))
	}
	if s.valid && !s.Accept.given {
		r.warn(s.place, "accepts no prefixes, so nothing is learned; set accept")
	}
	return o
}

// OSPF has the settings of the client of ospfd, which announces and learns by which proxy senders are notified.
type OSPF struct {
	API      netip.AddrPort // of ospfd: an IPv4 address
	Announce []netip.Prefix // IPv4
	// Proxy is the IPv4 address at which this gateway receives notifications about the announced prefixes. The zero Addr: it announces none.
	Proxy  netip.Addr
	Accept []BGPAccept // as of BGP
}

// Accepts reports whether an entry accepts a prefix.
func (a *BGPAccept) Accepts(p netip.Prefix) bool {
	return a.Prefix.Bits() <= p.Bits() && p.Bits() <= a.MaxLength && a.Prefix.Contains(p.Addr())
}

// resolveOSPF returns nil, no OSPF, if the file has no proxy.ospf.
func (r *report) resolveOSPF(s *ospfSection, p *proxySection, g *gatewaySection) *OSPF {
	if !s.given {
		return nil
	}
	o := &OSPF{Announce: r.prefixes(&s.Announce), Accept: r.resolveAccept(&s.Accept), Proxy: g.IPv4.V}
	if p.Listen.valid {
		o.Proxy = netip.Addr{}
		if p.Listen.V.Is4() {
			o.Proxy = p.Listen.V
		}
	}
	if o.API, _ = netip.ParseAddrPort(s.API.V); s.API.valid && !o.API.Addr().Is4() {
		r.problem(s.API.place, "ospfd serves its API at IPv4 addresses; expected one with a port, such as 127.0.0.1:2607")
	}
	for i := range s.Announce.Items {
		switch e := &s.Announce.Items[i]; {
		case !e.valid:
		case !e.V.Addr().Is4():
			r.problem(e.place, "%s is not an IPv4 prefix; OSPFv2 announces no others", e.V)
		case !o.Proxy.IsValid() && g.valid:
			r.problem(e.place, "%s needs the proxy's IPv4 address; set gateway.ipv4, or an IPv4 address as proxy.listen", e.V)
		}
	}
	if s.valid && !s.Announce.given && !s.Accept.given {
		r.warn(s.place, "neither announces nor accepts prefixes; set announce where this gateway is a proxy, and accept where it notifies proxies")
	}
	return o
}
