package config

import (
	"fmt"
	"net/netip"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// checkProxies checks the proxies against the gateway's addresses and the domain, and warns of roles that have no effect.
func (r *resolver) checkProxies() {
	p := &r.doc.Proxy
	r.checkProxyPort()
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
	if g := &r.doc.Gateway; g.valid && len(p.Sources.Items) > 0 && !g.IPv4.given && !g.IPv6.given && !p.Listen.given {
		r.warn(p.Sources.place, "has no effect, as the gateway has no address that notifications could be sent to; set gateway.ipv4, gateway.ipv6 or %s", p.Listen.path)
	}
	for i := range p.Senders.Items {
		if e := &p.Senders.Items[i]; e.Proxy.valid {
			r.checkProxy(&e.Proxy)
		}
	}
}

// checkProxy checks that a proxy is another node, which the gateway's notifications reach.
func (r *resolver) checkProxy(a *routed) {
	g := &r.doc.Gateway
	if !g.valid {
		return
	}
	if a.V == g.IPv4.V || a.V == g.IPv6.V || a.V == r.doc.Proxy.Listen.V {
		r.problem(a.place, "%s is this gateway's own address, and it notifies these senders itself; expected another node's address, or list the senders in endpoints", a.V)
		return
	}
	switch {
	case a.V.Is4() && !g.IPv4.given:
		r.warn(a.place, "no notification can be sent to %s, as gateway.ipv4 is not set", a.V)
	case a.V.Is6() && !g.IPv6.given:
		r.warn(a.place, "no notification can be sent to %s, as gateway.ipv6 is not set", a.V)
	}
	if r.doc.Domain.given && r.doc.Domain.Members.valid && !within(a.V, &r.doc.Domain.Members) {
		r.warn(a.place, "%s is in no prefix of domain.members, and a gateway at the domain's border drops notifications to it", a.V)
	}
}

func within(a netip.Addr, prefixes *list[cidr]) bool {
	for i := range prefixes.Items {
		if p := &prefixes.Items[i]; p.valid && p.V.Contains(a) {
			return true
		}
	}
	return false
}

const (
	lastSystemPort        = 1023 // RFC 6335 6: IANA assigns ports up to this one by IETF review
	firstExperimentalPort = 1021 // 1021 and 1022 are for any use among those who agree on it (RFC 4727 6)
	// firstEphemeralPort is the lowest port that Linux gives to clients: answers to them have it as their destination port.
	firstEphemeralPort = 32768
)

// assignedPorts are UDP ports of protocols that pass the edge of a data centre: encapsulations, protocols between routers, storage, telemetry and what hosts
// need. Of the system ports, which are all refused, the best known have a name for the error. (IANA's registry; 8472 is Linux's for VXLAN.)
var assignedPorts = map[int64]string{
	53: "DNS", 67: "DHCP", 68: "DHCP", 69: "TFTP", 88: "Kerberos", 111: "RPC", 123: "NTP", 161: "SNMP", 162: "SNMP", 319: "PTP", 320: "PTP", 389: "LDAP", 443: "QUIC",
	500: "IPsec", 514: "syslog", 520: "RIP", 521: "RIPng", 546: "DHCPv6", 547: "DHCPv6", 646: "LDP", 853: "DNS over QUIC", 862: "STAMP and TWAMP",
	1194: "OpenVPN", 1701: "L2TP", 1812: "RADIUS", 1813: "RADIUS", 2049: "NFS", 2055: "NetFlow", 2123: "GTP-C", 2152: "GTP-U", 3260: "iSCSI", 3478: "STUN",
	3503: "MPLS ping", 3784: "BFD", 3785: "BFD echo", 3799: "RADIUS", 4341: "LISP", 4342: "LISP", 4420: "NVMe", 4500: "IPsec", 4739: "IPFIX", 4754: "GRE in UDP",
	4755: "GRE in UDP", 4784: "BFD", 4789: "VXLAN", 4790: "VXLAN-GPE", packet.RoCEv2Port: "RoCEv2", 4793: "Ultra Ethernet", 5060: "SIP", 5061: "SIP",
	5246: "CAPWAP", 5247: "CAPWAP", 5353: "mDNS", 5355: "LLMNR", 6080: "GUE", 6081: "Geneve", 6343: "sFlow", 6635: "MPLS in UDP", 6636: "MPLS in UDP",
	6784: "BFD", 7784: "S-BFD", 8472: "VXLAN", 8805: "PFCP", 9995: "NetFlow", 9996: "NetFlow", 51820: "WireGuard",
}

// checkProxyPort refuses the ports of other protocols. The domain filter regards everything to the port as notifications, and would drop what isn't a permitted one;
// and a proxy's host would receive notifications as packets of the other protocol.
func (r *resolver) checkProxyPort() {
	p := &r.doc.Proxy.Port
	if !p.valid {
		return
	}
	owner := assignedPorts[p.V]
	if system := p.V < firstExperimentalPort || p.V == lastSystemPort; system && owner == "" {
		owner = fmt.Sprintf("another protocol, like all system ports (up to %d)", lastSystemPort)
	}
	const expected = "expected 1021 or 1022, which are for experiments (RFC 4727), or a port above 1023 that your network doesn't use"
	switch {
	case owner != "":
		r.problem(p.place, "%d is the port of %s; %s", p.V, owner, expected)
	case p.V >= firstEphemeralPort && r.doc.Domain.given:
		r.warn(p.place, "%d is also a client's port, and the domain filter would drop answers to that client; %s", p.V, expected)
	}
}
