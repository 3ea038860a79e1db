package config

import (
	"net/netip"
	"path"
	"time"
)

type bgpSection struct {
	place
	AS              integer               `key:"as" min:"1" max:"4294967294"`
	RouterID        address4              `key:"router_id"`
	IPv4            address4              `key:"ipv4"`
	IPv6            address6              `key:"ipv6"`
	Port            integer               `key:"port" default:"179" min:"0" max:"65535"`
	Characteristic  integer               `key:"characteristic" default:"65400" min:"1" max:"65534"`
	Announce        list[prefix]          `key:"announce" most:"1024"`
	NextHopIPv4     address4              `key:"next_hop_ipv4"`
	NextHopIPv6     address6              `key:"next_hop_ipv6"`
	Accept          list[acceptSection]   `key:"accept" most:"1024"`
	GracefulRestart toggle                `key:"graceful_restart" default:"true"`
	HoldTime        duration              `key:"hold_time" default:"90s" min:"3s" max:"18h"`
	ConnectRetry    duration              `key:"connect_retry" default:"10s" min:"2s" max:"1h"`
	Peers           list[neighborSection] `key:"peers" most:"64"`
}

type acceptSection struct {
	place
	Prefix    prefix  `key:"prefix" required:"yes"`
	MaxLength integer `key:"max_length" min:"0" max:"128"`
}

type neighborSection struct {
	place
	Address      address      `key:"address" required:"yes"`
	AS           integer      `key:"as" required:"yes" min:"1" max:"4294967294"`
	Port         integer      `key:"port" default:"179" min:"1" max:"65535"`
	PasswordFile text         `key:"password_file"`
	Passive      toggle       `key:"passive" default:"false"`
	Multihop     integer      `key:"multihop" min:"2" max:"255"`
	TTLSecurity  integer      `key:"ttl_security" min:"1" max:"254"`
	Families     list[choice] `key:"families" default:"[ipv4-unicast, ipv6-unicast]" items:"1" most:"2" one:"ipv4-unicast|ipv6-unicast"`
	MaxPrefixes  integer      `key:"max_prefixes" default:"10000" min:"1" max:"1000000"`
}

// BGP has the settings of the BGP speaker, which announces and learns by which proxy senders are notified.
type BGP struct {
	AS       uint32
	RouterID netip.Addr // IPv4
	// IPv4 and IPv6 are the addresses of a kernel interface from which sessions are opened and at which they are accepted. The zero Addr: none.
	IPv4, IPv6     netip.Addr
	Port           uint16 // at which sessions are accepted; 0: none are
	Characteristic uint16 // code of the PNC characteristic
	Announce       []netip.Prefix
	// NextHopIPv4 and NextHopIPv6 are the next hops of the prefixes announced, by IP version. The zero Addr: no prefix of that version is announced.
	NextHopIPv4, NextHopIPv6 netip.Addr
	// ProxyIPv4 and ProxyIPv6 are the addresses at which this gateway receives notifications about the announced prefixes. At least one is set.
	ProxyIPv4, ProxyIPv6 netip.Addr
	Accept               []BGPAccept
	GracefulRestart      bool // routes of a peer that restarts stay for its restart time
	HoldTime             time.Duration
	ConnectRetry         time.Duration
	Peers                []BGPPeer
}

// BGPAccept accepts the prefixes within a prefix that are at most MaxLength bits long.
type BGPAccept struct {
	Prefix    netip.Prefix
	MaxLength int
}

// BGPPeer is a BGP neighbor.
type BGPPeer struct {
	Address      netip.Addr
	AS           uint32
	Port         uint16
	PasswordFile string // has the password of TCP-MD5 (RFC 2385); "" for none
	Passive      bool   // the peer opens the session
	Multihop     uint8  // TTL of packets to a peer of another AS that isn't on the link; 0: it is
	TTLSecurity  uint8  // hops at most to the peer (RFC 5082); 0: not checked
	IPv4, IPv6   bool   // families of prefixes exchanged
	MaxPrefixes  int    // of a family; the session ends if the peer sends more
}

// resolveBGP returns nil, no BGP, if the file has no proxy.bgp.
func (r *report) resolveBGP(s *bgpSection, p *proxySection, g *gatewaySection) *BGP {
	if !s.given {
		return nil
	}
	b := &BGP{
		AS: uint32(s.AS.V), RouterID: s.RouterID.V, IPv4: s.IPv4.V, IPv6: s.IPv6.V, Port: uint16(s.Port.V), Characteristic: uint16(s.Characteristic.V),
		Announce: r.prefixes(&s.Announce), NextHopIPv4: first(s.NextHopIPv4.V, s.IPv4.V), NextHopIPv6: first(s.NextHopIPv6.V, s.IPv6.V),
		ProxyIPv4: g.IPv4.V, ProxyIPv6: g.IPv6.V, Accept: r.resolveAccept(&s.Accept), GracefulRestart: s.GracefulRestart.V,
		HoldTime: s.HoldTime.V, ConnectRetry: s.ConnectRetry.V, Peers: r.resolvePeers(s),
	}
	if p.Listen.valid {
		b.ProxyIPv4, b.ProxyIPv6 = netip.Addr{}, netip.Addr{}
		if p.Listen.V.Is4() {
			b.ProxyIPv4 = p.Listen.V
		} else {
			b.ProxyIPv6 = p.Listen.V
		}
	}
	if !s.valid {
		return b
	}
	if !s.AS.given {
		r.problem(s.AS.place, "missing; expected %s", s.AS.expects(rule{min: "1", max: "4294967294"}))
	}
	if b.RouterID = first(b.RouterID, s.IPv4.V, g.IPv4.V); !s.RouterID.given && !s.IPv4.given && !g.IPv4.given {
		r.problem(s.RouterID.place, "missing, as neither bgp nor gateway has ipv4; expected %s", s.RouterID.expects(rule{}))
	}
	if !s.Peers.given || s.Peers.valid && len(s.Peers.Items) == 0 {
		r.problem(s.Peers.place, "BGP needs a peer; expected a list of sections with address, as")
	}
	r.wholeSeconds(&s.HoldTime)
	r.wholeSeconds(&s.ConnectRetry)
	r.checkAnnounce(s, p, g)
	if !s.Announce.given && !s.Accept.given {
		r.warn(s.place, "neither announces nor accepts prefixes; set announce where this gateway is a proxy, and accept where it notifies proxies")
	}
	return b
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

func (r *report) wholeSeconds(s *duration) {
	if s.valid && s.V%time.Second != 0 {
		r.problem(s.place, "BGP's timers count seconds; expected a whole number of them, such as 30s")
	}
}

// checkAnnounce checks that there are the addresses that an announcement names: a next hop of the prefix's IP version, and a proxy.
func (r *report) checkAnnounce(s *bgpSection, of *proxySection, g *gatewaySection) {
	for i := range s.Announce.Items {
		p := &s.Announce.Items[i]
		switch {
		case !p.valid:
		case p.V.Addr().Is4() && !s.IPv4.given && !s.NextHopIPv4.given:
			r.problem(p.place, "%s needs a next hop; set ipv4 or next_hop_ipv4 in bgp (%s)", p.V, r.position(s.place))
		case p.V.Addr().Is6() && !s.IPv6.given && !s.NextHopIPv6.given:
			r.problem(p.place, "%s needs a next hop; set ipv6 or next_hop_ipv6 in bgp (%s)", p.V, r.position(s.place))
		case g.valid && !of.Listen.given && !g.IPv4.given && !g.IPv6.given:
			r.problem(p.place, "a proxy needs an address for notifications; set ipv4, ipv6 or both in gateway (%s)", r.position(g.place))
			return
		}
	}
}

func (r *report) resolveAccept(s *list[acceptSection]) []BGPAccept {
	var accept []BGPAccept
	seen := map[netip.Prefix]place{}
	for i := range s.Items {
		e := &s.Items[i]
		if !e.Prefix.valid {
			continue
		}
		unique(r, seen, e.Prefix.V, e.Prefix.place, "the prefix "+e.Prefix.V.String())
		most, length := e.Prefix.V.Addr().BitLen(), e.MaxLength.V
		switch {
		case !e.MaxLength.given:
			length = int64(most)
		case e.MaxLength.valid && (length < int64(e.Prefix.V.Bits()) || length > int64(most)):
			r.problem(e.MaxLength.place, "%d is not a length within %s; expected %d to %d", length, e.Prefix.V, e.Prefix.V.Bits(), most)
		}
		accept = append(accept, BGPAccept{e.Prefix.V, int(length)})
	}
	return accept
}

func (r *report) resolvePeers(s *bgpSection) []BGPPeer {
	var peers []BGPPeer
	seen := map[netip.Addr]place{}
	for i := range s.Peers.Items {
		e := &s.Peers.Items[i]
		p := BGPPeer{
			Address: e.Address.V, AS: uint32(e.AS.V), Port: uint16(e.Port.V), PasswordFile: e.PasswordFile.V, Passive: e.Passive.V,
			Multihop: uint8(e.Multihop.V), TTLSecurity: uint8(e.TTLSecurity.V), MaxPrefixes: int(e.MaxPrefixes.V),
		}
		r.resolveFamilies(e, &p)
		r.checkNeighbor(s, e, seen)
		peers = append(peers, p)
	}
	return peers
}

func (r *report) resolveFamilies(e *neighborSection, p *BGPPeer) {
	seen := map[int]place{}
	for i := range e.Families.Items {
		family := &e.Families.Items[i]
		if !family.valid || !unique(r, seen, family.V, family.place, "the family") {
			continue
		}
		if family.V == 0 {
			p.IPv4 = true
		} else {
			p.IPv6 = true
		}
	}
}

// checkNeighbor checks a peer against the other keys.
func (r *report) checkNeighbor(s *bgpSection, e *neighborSection, seen map[netip.Addr]place) {
	if e.Address.valid && unique(r, seen, e.Address.V, e.Address.place, "the address "+e.Address.V.String()) {
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
