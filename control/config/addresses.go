package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"path"
	"strconv"
	"strings"

	"github.com/cnpgate/cnpgate/internal/packet"
)

type (
	address  = scalar[netip.Addr, addressKind]
	address4 = scalar[netip.Addr, address4Kind]
	address6 = scalar[netip.Addr, address6Kind]
	routed   = scalar[netip.Addr, routedKind]
	cidr     = scalar[netip.Prefix, prefixKind]
	socket   = scalar[string, socketKind]
	listener = scalar[string, listenerKind]
)

// parseAddress reads the unicast address of a host, without a zone.
func parseAddress(text, expected string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		return a, not(text, "an IP address", expected)
	case a.Zone() != "":
		return a, fmt.Errorf("%s has a zone; expected %s", quote(text), expected)
	case a.Is4In6():
		return a, fmt.Errorf("%s is an IPv4 address in IPv6 form; write %s", text, a.Unmap())
	case a.IsMulticast(), a.IsUnspecified(), a.IsLoopback(), thisNetwork.Contains(a), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return a, fmt.Errorf("%s is not the address of a host on the network; expected %s", text, expected)
	}
	return a, nil
}

// thisNetwork has the addresses that a host uses only until it knows its own, and that are never destinations (RFC 1122 3.2.1.3).
var thisNetwork = netip.MustParsePrefix("0.0.0.0/8")

// reserved has addresses without a defined use (RFC 1112 4); other equipment drops packets from them (RFC 6890).
var reserved = netip.MustParsePrefix("240.0.0.0/4")

// parseRouted reads an address that must be valid behind a router too: a source of notifications, or a proxy.
func parseRouted(text, expected string) (netip.Addr, error) {
	a, err := parseAddress(text, expected)
	switch {
	case err != nil:
		return a, err
	case a.IsLinkLocalUnicast():
		return a, fmt.Errorf("%s is link-local, and no router forwards packets from or to it; expected %s", text, expected)
	case reserved.Contains(a):
		return a, fmt.Errorf("%s is reserved, not unicast (RFC 1112 4); expected %s", text, expected)
	}
	return a, nil
}

type addressKind struct{}

func (k addressKind) parse(text string, rl rule) (netip.Addr, error) {
	return parseAddress(text, k.expects(rl))
}

func (addressKind) expects(rule) string {
	return "a unicast IPv4 or IPv6 address, such as 192.0.2.1 or 2001:db8::1"
}

// routedKind is an address that routers forward packets to.
type routedKind struct{ addressKind }

func (k routedKind) parse(text string, rl rule) (netip.Addr, error) {
	return parseRouted(text, k.expects(rl))
}

type address4Kind struct{}

func (k address4Kind) parse(text string, rl rule) (netip.Addr, error) {
	a, err := parseRouted(text, k.expects(rl))
	if err == nil && !a.Is4() {
		return a, not(text, "an IPv4 address", k.expects(rl))
	}
	return a, err
}

func (address4Kind) expects(rule) string { return "a unicast IPv4 address, such as 192.0.2.1" }

type address6Kind struct{}

func (k address6Kind) parse(text string, rl rule) (netip.Addr, error) {
	a, err := parseRouted(text, k.expects(rl))
	if err == nil && !a.Is6() {
		return a, not(text, "an IPv6 address", k.expects(rl))
	}
	return a, err
}

func (address6Kind) expects(rule) string { return "a unicast IPv6 address, such as 2001:db8::1" }

type prefixKind struct{}

func (k prefixKind) parse(text string, rl rule) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if a, isAddress := netip.ParseAddr(text); err != nil && isAddress == nil && a.Zone() == "" {
		return p, fmt.Errorf("%s is an address without a length; expected a prefix, such as %s", text, netip.PrefixFrom(a, a.BitLen()))
	}
	switch {
	case err != nil:
		return p, not(text, "a prefix", k.expects(rl))
	case p.Addr().Is4In6():
		return p, fmt.Errorf("%s is an IPv4 prefix in IPv6 form; expected %s", text, k.expects(rl))
	case p != p.Masked():
		return p, fmt.Errorf("%s has host bits set; expected %s", text, p.Masked())
	}
	return p, nil
}

func (prefixKind) expects(rule) string {
	return "an address and a length, such as 10.1.0.0/16 or 2001:db8:1::/48"
}

// ParsePrefix reads a prefix in the form of configurations, such as 10.1.0.0/16. The error says what was expected.
func ParsePrefix(text string) (netip.Prefix, error) { return prefixKind{}.parse(text, rule{}) }

// socketKind is an address and a port to listen on.
type socketKind struct{}

func (k socketKind) parse(text string, rl rule) (string, error) {
	if s, err := netip.ParseAddrPort(text); err != nil || s.Port() == 0 {
		return "", not(text, "an address with port", k.expects(rl))
	}
	return text, nil
}

func (socketKind) expects(rule) string {
	return "an address and a port, such as 127.0.0.1:9456 or [::1]:9456"
}

// listenerKind is a Unix socket: its clients can change the gateway's configuration, so it needs the permissions of a file.
type listenerKind struct{}

const unixPrefix = "unix:"

func (k listenerKind) parse(text string, rl rule) (string, error) {
	file, isUnix := strings.CutPrefix(text, unixPrefix)
	if !isUnix || !path.IsAbs(file) || path.Clean(file) != file || len(file) > 107 { // sun_path, unix(7)
		return "", not(text, "a Unix socket", k.expects(rl))
	}
	return file, nil
}

func (listenerKind) expects(rule) string {
	return "unix: and an absolute path of at most 107 bytes, such as unix:/run/cnpgate/cnpgate.sock"
}

type (
	tags   = scalar[string, tagsKind]
	tunnel = scalar[string, tunnelKind]
)

const noTags = "none"

// tpids are the tag protocol identifiers of a VLAN; the first one need not be written.
var tpids = [...]uint16{packet.EtherTypeCTag, packet.EtherTypeSTag, packet.EtherTypeQinQ}

// tagsKind is the VLAN tags of a flow, the outer one first.
type tagsKind struct{}

// parse returns the text in its only form, so that equal tags have equal texts.
func (k tagsKind) parse(text string, rl rule) (string, error) {
	all, ok := parseTags(text)
	if !ok {
		return "", not(text, "a VLAN's tags", k.expects(rl))
	}
	var parts []string
	for _, tag := range all {
		switch {
		case tag == 0:
		case tag.TPID() == tpids[0]:
			parts = append(parts, strconv.Itoa(int(tag.VID())))
		default:
			parts = append(parts, tag.String())
		}
	}
	if parts == nil {
		return noTags, nil
	}
	return strings.Join(parts, "/"), nil
}

func (tagsKind) expects(rule) string {
	return "a VID of 0 to 4094, such as 10, with another TPID than 0x8100 as 0x88a8:10, two tags as 0x88a8:10/20, or " + noTags
}

func parseTags(text string) (tags [2]packet.Tag, ok bool) {
	if text == noTags {
		return tags, true
	}
	parts := strings.Split(text, "/")
	if len(parts) > len(tags) {
		return tags, false
	}
	for i, part := range parts {
		protocol, vid, named := strings.Cut(part, ":")
		if !named {
			protocol, vid = "0x8100", part
		}
		tpid, err := strconv.ParseUint(protocol, 0, 16)
		if err != nil {
			return tags, false
		}
		const most = 4094 // 4095 is reserved (IEEE 802.1Q 9.6)
		n, err := strconv.ParseUint(vid, 10, 16)
		if tags[i] = packet.MakeTag(uint16(tpid), uint16(n)); err != nil || n > most || tags[i] == 0 {
			return tags, false
		}
	}
	return tags, true
}

// tunnelKind is the tunnel of a flow.
type tunnelKind struct{}

func (k tunnelKind) parse(text string, rl rule) (string, error) {
	of, ok := parseTunnel(text)
	if !ok {
		return "", not(text, "a tunnel", k.expects(rl))
	}
	return fmt.Sprintf("%v:%d", of.Kind, of.ID), nil
}

func (tunnelKind) expects(rule) string {
	return "a kind, vxlan, gre, ip-in-ip, mpls or srv6, and its identifier, such as vxlan:5000; without an identifier it is 0"
}

func parseTunnel(text string) (t packet.Tunnel, ok bool) {
	name, id, named := strings.Cut(text, ":")
	for t.Kind = packet.VXLAN; t.Kind.String() != name; t.Kind++ {
		if t.Kind == packet.SRv6 {
			return t, false
		}
	}
	if !named {
		return t, true
	}
	n, err := strconv.ParseUint(id, 10, 32)
	t.ID = uint32(n)
	return t, err == nil
}

// Scope is the VLAN or tunnel that a pair is in; ok is false if it has none.
func (p *QPPair) Scope() (s packet.Scope, ok bool) {
	if p.Tags == "" && p.Tunnel == "" {
		return 0, false
	}
	all, _ := parseTags(cmp.Or(p.Tags, noTags))
	if p.Tunnel == "" {
		return packet.ScopeInVLAN(0, all[0], all[1]), true
	}
	t, _ := parseTunnel(p.Tunnel)
	return packet.ScopeInTunnel(0, t, all[0]), true
}
