package config

import (
	"net/netip"
	"time"
)

// BGP has the settings of the BGP speaker, which announces and learns by which proxy senders are notified.
type BGP struct {
	AS       uint32     `key:"as" required:"given" min:"1" max:"4294967294"`
	RouterID netip.Addr `key:"router_id" form:"ipv4"`
	// IPv4 and IPv6 are the addresses of a kernel interface from which sessions are opened and at which they are accepted. The zero Addr: none.
	IPv4           netip.Addr     `key:"ipv4" form:"ipv4"`
	IPv6           netip.Addr     `key:"ipv6" form:"ipv6"`
	Port           uint16         `key:"port" default:"179" min:"0" max:"65535"`             // at which sessions are accepted; 0: none are
	Characteristic uint16         `key:"characteristic" default:"65400" min:"1" max:"65534"` // code of the PNC characteristic
	Announce       []netip.Prefix `key:"announce" most:"1024" unique:"the prefix %"`
	// NextHopIPv4 and NextHopIPv6 are the next hops of the prefixes announced, by IP version. The zero Addr: no prefix of that version is announced.
	NextHopIPv4 netip.Addr `key:"next_hop_ipv4" form:"ipv4"`
	NextHopIPv6 netip.Addr `key:"next_hop_ipv6" form:"ipv6"`
	// ProxyIPv4 and ProxyIPv6 are the addresses at which this gateway receives notifications about the announced prefixes. At least one is set.
	ProxyIPv4, ProxyIPv6 netip.Addr
	Accept               []BGPAccept `key:"accept" most:"1024"`
	HoldTime             time.Duration
	ConnectRetry         time.Duration
	_                    struct{}  `key:"graceful_restart" removed:"it is always true now; remove the key"`
	_                    struct{}  `key:"hold_time" removed:"it is 90s now, unless the peer's is lower; set it there, and remove the key"`
	_                    struct{}  `key:"connect_retry" removed:"it is always 10s now; remove the key"`
	Peers                []BGPPeer `key:"peers" required:"given" items:"1" most:"64"`
}

// BGPAccept accepts the prefixes within a prefix that are at most MaxLength bits long.
type BGPAccept struct {
	Prefix    netip.Prefix `key:"prefix" required:"yes" unique:"the prefix %"`
	MaxLength int          `key:"max_length" min:"0" max:"128"`
}

// Accepts reports whether an entry accepts a prefix.
func (a *BGPAccept) Accepts(p netip.Prefix) bool {
	return a.Prefix.Bits() <= p.Bits() && p.Bits() <= a.MaxLength && a.Prefix.Contains(p.Addr())
}

// BGPPeer is a BGP neighbor.
type BGPPeer struct {
	Address      netip.Addr `key:"address" required:"yes" unique:"the address %"`
	AS           uint32     `key:"as" required:"yes" min:"1" max:"4294967294"`
	Port         uint16     `key:"port" default:"179" min:"1" max:"65535"`
	PasswordFile string     `key:"password_file" form:"file" expects:"/etc/cnpgate/bgp-password"` // of TCP-MD5 (RFC 2385); "" for none
	Passive      bool       `key:"passive" default:"false"`                                       // the peer opens the session
	Multihop     uint8      `key:"multihop" min:"2" max:"255"`                                    // TTL of packets to a peer of another AS that isn't on the link; 0: it is
	TTLSecurity  uint8      `key:"ttl_security" min:"1" max:"254"`                                // hops at most to the peer (RFC 5082); 0: not checked
	_            struct{}   `key:"families" removed:"IPv4 and IPv6 are always offered now, and those that the peer has, too, are exchanged; remove the key"`
	MaxPrefixes  int        `key:"max_prefixes" default:"10000" min:"1" max:"1000000"` // of a family; the session ends if the peer sends more
}

// OSPF has the settings of the client of ospfd, which announces and learns by which proxy senders are notified.
type OSPF struct {
	API      netip.AddrPort `key:"api" form:"socket" default:"127.0.0.1:2607"` // of ospfd: an IPv4 address
	Announce []netip.Prefix `key:"announce" most:"1024" unique:"the prefix %"` // IPv4
	// Proxy is the IPv4 address at which this gateway receives notifications about the announced prefixes. The zero Addr: it announces none.
	Proxy  netip.Addr
	Accept []BGPAccept `key:"accept" most:"1024"` // as of BGP
}

// OSPF6 has the settings of the client of ospf6d, which learns by which proxy senders are notified.
type OSPF6 struct {
	Socket   string        `key:"socket" form:"file" default:"/var/run/frr/ospf6d.vty" expects:"/var/run/frr/ospf6d.vty"` // ospf6d's vty socket
	Interval time.Duration // between two questions
	_        struct{}      `key:"interval" removed:"it is always 10s now; remove the key"`
	Proxy    netip.Addr    // the gateway's IPv6 address as a proxy, from which it learns nothing; the zero Addr: none
	Accept   []BGPAccept   `key:"accept" most:"1024"`
}

const (
	holdTime     = 90 * time.Second // RFC 4271 10
	connectRetry = 10 * time.Second // between attempts to open a BGP session
	askInterval  = 10 * time.Second // between two questions to ospf6d
)

// protocolResolver makes the settings of the protocols that announce and learn proxies.
type protocolResolver struct{ *resolver }

// resolveBGP checks the settings of the BGP speaker, and fills in what follows from others. b is nil if the file has no proxy.bgp.
func (r *protocolResolver) resolveBGP(b *BGP) {
	if b == nil {
		return
	}
	g := &r.doc.Gateway
	b.HoldTime, b.ConnectRetry = holdTime, connectRetry
	b.NextHopIPv4, b.NextHopIPv6 = first(b.NextHopIPv4, b.IPv4), first(b.NextHopIPv6, b.IPv6)
	b.ProxyIPv4, b.ProxyIPv6 = r.listens()
	r.resolveAccept(b.Accept)
	for i := range b.Peers {
		r.checkNeighbor(&b.Peers[i])
	}
	if !r.Valid(b) {
		return
	}
	if b.RouterID = first(b.RouterID, b.IPv4, g.IPv4); !r.Given(&b.RouterID) && !r.Given(&b.IPv4) && !r.Given(&g.IPv4) {
		r.Problem(&b.RouterID, "missing, as neither bgp nor gateway has ipv4; expected %s", r.Expects(&b.RouterID))
	}
	r.checkAnnounce()
	r.warnIdle(b, r.Given(&b.Announce), r.Given(&b.Accept))
}

// warnIdle warns of a protocol that has nothing to do.
func (r *protocolResolver) warnIdle(at any, announces, accepts bool) {
	if !announces && !accepts {
		r.Warn(at, "neither announces nor accepts prefixes; set announce where this gateway is a proxy, and accept where it notifies proxies")
	}
}

// listens are the addresses at which the gateway receives notifications as a proxy.
func (r *protocolResolver) listens() (ipv4, ipv6 netip.Addr) {
	p, g := &r.doc.Proxy, &r.doc.Gateway
	switch {
	case !r.Valid(&p.Listen):
		return g.IPv4, g.IPv6
	case p.Listen.Is4():
		return p.Listen, ipv6
	}
	return ipv4, p.Listen
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

// checkAnnounce checks that there are the addresses that an announcement names: a next hop of the prefix's IP version, and a proxy.
func (r *protocolResolver) checkAnnounce() {
	s, g := r.doc.Proxy.BGP, &r.doc.Gateway
	for i := range s.Announce {
		p := &s.Announce[i]
		switch {
		case !r.Valid(p):
		case p.Addr().Is4() && !r.Given(&s.IPv4) && !r.Given(&s.NextHopIPv4):
			r.Problem(p, "%s needs a next hop; set ipv4 or next_hop_ipv4 in bgp (%s)", *p, r.Position(s))
		case p.Addr().Is6() && !r.Given(&s.IPv6) && !r.Given(&s.NextHopIPv6):
			r.Problem(p, "%s needs a next hop; set ipv6 or next_hop_ipv6 in bgp (%s)", *p, r.Position(s))
		case r.Valid(g) && !r.Given(&r.doc.Proxy.Listen) && !r.Given(&g.IPv4) && !r.Given(&g.IPv6):
			r.Problem(p, "a proxy needs an address for notifications; set ipv4, ipv6 or both in gateway (%s)", r.Position(g))
			return
		}
	}
}

// resolveAccept sets the greatest lengths of the prefixes that are accepted.
func (r *protocolResolver) resolveAccept(accept []BGPAccept) {
	for i := range accept {
		e := &accept[i]
		if !r.Valid(&e.Prefix) {
			continue
		}
		switch most, length := e.Prefix.Addr().BitLen(), e.MaxLength; {
		case !r.Given(&e.MaxLength):
			e.MaxLength = most
		case r.Valid(&e.MaxLength) && (length < e.Prefix.Bits() || length > most):
			r.Problem(&e.MaxLength, "%d is not a length within %s; expected %d to %d", length, e.Prefix, e.Prefix.Bits(), most)
		}
	}
}

// checkNeighbor checks a peer against the other keys.
func (r *protocolResolver) checkNeighbor(e *BGPPeer) {
	s := r.doc.Proxy.BGP
	if r.Valid(&e.Address) && !r.At(&e.Address).Twice {
		own, key := &s.IPv6, "ipv6"
		given := r.Given(&s.IPv6)
		if e.Address.Is4() {
			own, key, given = &s.IPv4, "ipv4", r.Given(&s.IPv4)
		}
		switch {
		case !given:
			r.Problem(&e.Address, "a session with %s needs an address of this gateway; set %s in bgp (%s)", e.Address, key, r.Position(s))
		case *own == e.Address:
			r.Problem(&e.Address, "%s is the speaker's own address; expected another router's", e.Address)
		}
	}
	if e.Passive && r.Valid(&s.Port) && s.Port == 0 {
		r.Problem(&e.Passive, "a passive peer opens the session, but port in bgp is 0 (%s), so that none is accepted; expected false, or another port",
			r.Position(&s.Port))
	}
	if r.Given(&e.Multihop) && r.Given(&e.TTLSecurity) {
		r.Problem(&e.TTLSecurity, "can't go together with multihop (%s): ttl_security also sets how far away the peer may be; keep one of the two",
			r.Position(&e.Multihop))
	}
	if r.Given(&e.Multihop) && r.Valid(&e.AS) && e.AS == s.AS {
		r.Warn(&e.Multihop, "has no effect, as the peer is of the same AS, whose packets may pass routers")
	}
}

// resolveOSPF6 checks the settings of the client of ospf6d. o is nil if the file has no proxy.ospf6.
func (r *protocolResolver) resolveOSPF6(o *OSPF6) {
	if o == nil {
		return
	}
	p := &r.doc.Proxy
	o.Interval = askInterval
	r.resolveAccept(o.Accept)
	if o.Proxy = r.doc.Gateway.IPv6; r.Valid(&p.Listen) {
		o.Proxy = p.Listen
	}
	if r.Valid(o) && !r.Given(&o.Accept) {
		r.Warn(o, "accepts no prefixes, so nothing is learned; set accept")
	}
}

// resolveOSPF checks the settings of the client of ospfd. o is nil if the file has no proxy.ospf.
func (r *protocolResolver) resolveOSPF(o *OSPF) {
	if o == nil {
		return
	}
	r.resolveAccept(o.Accept)
	o.Proxy, _ = r.listens()
	if r.Valid(&o.API) && !o.API.Addr().Is4() {
		r.Problem(&o.API, "ospfd serves its API at IPv4 addresses; expected one with a port, such as 127.0.0.1:2607")
	}
	for i := range o.Announce {
		switch e := &o.Announce[i]; {
		case !r.Valid(e):
		case !e.Addr().Is4():
			r.Problem(e, "%s is not an IPv4 prefix; OSPFv2 announces no others", *e)
		case !o.Proxy.IsValid() && r.Valid(&r.doc.Gateway):
			r.Problem(e, "%s needs the proxy's IPv4 address; set gateway.ipv4, or an IPv4 address as proxy.listen", *e)
		}
	}
	if r.Valid(o) {
		r.warnIdle(o, r.Given(&o.Announce), r.Given(&o.Accept))
	}
}
