package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// checkProxies checks the proxies against the gateway's addresses and the domain, and warns of roles that have no effect.
func (r *resolver) checkProxies() {
	p := &r.doc.Proxy
	r.checkProxyPort()
	if p.Enabled == kindOff {
		for _, role := range []any{&p.Listen, &p.Senders, &p.Sources, &p.BGP, &p.OSPF, &p.OSPF6} {
			if r.Given(role) {
				r.Warn(role, "has no effect, as %s is false", r.At(&p.Enabled).Path)
			}
		}
		return
	}
	if len(p.Senders) == 0 && len(p.Sources) == 0 && !r.Given(&p.BGP) && !r.Given(&p.OSPF) && !r.Given(&p.OSPF6) {
		r.Warn(&p.Enabled, "has no effect without a role; add %s to notify the proxies of these senders, or %s to be a proxy for notifications from there",
			r.At(&p.Senders).Path, r.At(&p.Sources).Path)
	}
	if g := &r.doc.Gateway; r.Valid(g) && len(p.Sources) > 0 && !r.Given(&g.IPv4) && !r.Given(&g.IPv6) && !r.Given(&p.Listen) {
		r.Warn(&p.Sources, "has no effect, as the gateway has no address that notifications could be sent to; set gateway.ipv4, gateway.ipv6 or %s", r.At(&p.Listen).Path)
	}
	for i := range p.Senders {
		if e := &p.Senders[i]; r.Valid(&e.Proxy) {
			r.checkProxy(&e.Proxy)
		}
	}
}

// checkProxy checks that a proxy is another node, which the gateway's notifications reach.
func (r *resolver) checkProxy(a *netip.Addr) {
	g := &r.doc.Gateway
	if !r.Valid(g) {
		return
	}
	if *a == g.IPv4 || *a == g.IPv6 || *a == r.doc.Proxy.Listen {
		r.Problem(a, "%s is this gateway's own address, and it notifies these senders itself; expected another node's address, or list the senders in endpoints", *a)
		return
	}
	switch {
	case a.Is4() && !r.Given(&g.IPv4):
		r.Warn(a, "no notification can be sent to %s, as gateway.ipv4 is not set", *a)
	case a.Is6() && !r.Given(&g.IPv6):
		r.Warn(a, "no notification can be sent to %s, as gateway.ipv6 is not set", *a)
	}
	if r.Given(&r.doc.Domain) && r.Valid(&r.doc.Domain.Members) && !slices.ContainsFunc(r.prefixes(r.doc.Domain.Members), func(p netip.Prefix) bool { return p.Contains(*a) }) {
		r.Warn(a, "%s is in no prefix of domain.members, and a gateway at the domain's border drops notifications to it", *a)
	}
}

const (
	lastSystemPort        = 1023 // RFC 6335 6: IANA assigns ports up to this one by IETF review
	firstExperimentalPort = 1021 // 1021 and 1022 are for any use among those who agree on it (RFC 4727 6)
	// firstEphemeralPort is the lowest port that Linux gives to clients: answers to them have it as their destination port.
	firstEphemeralPort = 32768
)

// assignedPorts are UDP ports of protocols, beside packet.TunnelPorts, that pass the edge of a data centre: protocols between routers, storage, telemetry and what hosts
// need. Of the system ports, which are all refused, the best known have a name for the error. (IANA's registry.)
var assignedPorts = map[uint16]string{
	53: "DNS", 67: "DHCP", 68: "DHCP", 69: "TFTP", 88: "Kerberos", 111: "RPC", 123: "NTP", 161: "SNMP", 162: "SNMP", 319: "PTP", 320: "PTP", 389: "LDAP", 443: "QUIC",
	500: "IPsec", 514: "syslog", 520: "RIP", 521: "RIPng", 546: "DHCPv6", 547: "DHCPv6", 646: "LDP", 853: "DNS over QUIC", 862: "STAMP and TWAMP",
	1194: "OpenVPN", 1812: "RADIUS", 1813: "RADIUS", 2049: "NFS", 2055: "NetFlow", 2123: "GTP-C", 3260: "iSCSI", 3478: "STUN",
	3503: "MPLS ping", 3784: "BFD", 3785: "BFD echo", 3799: "RADIUS", 4342: "LISP", 4420: "NVMe", 4739: "IPFIX",
	4755: "GRE in UDP", 4784: "BFD", packet.RoCEv2Port: "RoCEv2", 4793: "Ultra Ethernet", 5060: "SIP", 5061: "SIP",
	5246: "CAPWAP", 5247: "CAPWAP", 5353: "mDNS", 5355: "LLMNR", 6343: "sFlow", 6636: "MPLS in UDP",
	6784: "BFD", 7784: "S-BFD", 8805: "PFCP", 9995: "NetFlow", 9996: "NetFlow", 51820: "WireGuard",
}

// checkProxyPort refuses the ports of other protocols. The domain filter regards everything to the port as notifications, and would drop what isn't a permitted one;
// and a proxy's host would receive notifications as packets of the other protocol.
func (r *resolver) checkProxyPort() {
	p := &r.doc.Proxy.Port
	if !r.Valid(p) {
		return
	}
	owner := cmp.Or(packet.TunnelPorts[*p], assignedPorts[*p])
	if system := *p < firstExperimentalPort || *p == lastSystemPort; system && owner == "" {
		owner = fmt.Sprintf("another protocol, like all system ports (up to %d)", lastSystemPort)
	}
	const expected = "expected 1021 or 1022, which are for experiments (RFC 4727), or a port above 1023 that your network doesn't use"
	switch {
	case owner != "":
		r.Problem(p, "%d is the port of %s; %s", *p, owner, expected)
	case *p >= firstEphemeralPort && r.Given(&r.doc.Domain):
		r.Warn(p, "%d is also a client's port, and the domain filter would drop answers to that client; %s", *p, expected)
	}
}
