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

type (
	addressKind  struct{}
	routedKind   struct{} // an address that routers forward packets to
	address4Kind struct{}
	address6Kind struct{}
	prefixKind   struct{}
	socketKind   struct{} // an address and a port to listen on
	listenerKind struct{} // a Unix socket: its clients can change the gateway's configuration, so it needs the permissions of a file
)

const anAddress = "a unicast IPv4 or IPv6 address, such as 192.0.2.1 or 2001:db8::1"

func (addressKind) Form(rule) form[netip.Addr] {
	return form[netip.Addr]{anAddress, func(text string) (netip.Addr, error) { return parseAddress(text, anAddress) }}
}

func (routedKind) Form(rule) form[netip.Addr] {
	return form[netip.Addr]{anAddress, func(text string) (netip.Addr, error) { return parseRouted(text, anAddress) }}
}

// ofVersion is the form of addresses of one IP version that routers forward packets to.
func ofVersion(what, expected string, is func(netip.Addr) bool) form[netip.Addr] {
	return form[netip.Addr]{expected, func(text string) (netip.Addr, error) {
		a, err := parseRouted(text, expected)
		if err == nil && !is(a) {
			err = not(text, what, expected)
		}
		return a, err
	}}
}

func (address4Kind) Form(rule) form[netip.Addr] {
	return ofVersion("an IPv4 address", "a unicast IPv4 address, such as 192.0.2.1", netip.Addr.Is4)
}

func (address6Kind) Form(rule) form[netip.Addr] {
	return ofVersion("an IPv6 address", "a unicast IPv6 address, such as 2001:db8::1", netip.Addr.Is6)
}

func (prefixKind) Form(rule) form[netip.Prefix] {
	return form[netip.Prefix]{"an address and a length, such as 10.1.0.0/16 or 2001:db8:1::/48", ParsePrefix}
}

// ParsePrefix reads a prefix in the form of configurations, such as 10.1.0.0/16. The error says what was expected.
func ParsePrefix(text string) (netip.Prefix, error) {
	expected := prefixKind{}.Form(rule{}).expected
	p, err := netip.ParsePrefix(text)
	if a, isAddress := netip.ParseAddr(text); err != nil && isAddress == nil && a.Zone() == "" {
		return p, fmt.Errorf("%s is an address without a length; expected a prefix, such as %s", text, netip.PrefixFrom(a, a.BitLen()))
	}
	switch {
	case err != nil:
		return p, not(text, "a prefix", expected)
	case p.Addr().Is4In6():
		return p, fmt.Errorf("%s is an IPv4 prefix in IPv6 form; expected %s", text, expected)
	case p != p.Masked():
		return p, fmt.Errorf("%s has host bits set; expected %s", text, p.Masked())
	}
	return p, nil
}

func (socketKind) Form(rule) form[string] {
	return words("an address with port", "an address and a port, such as 127.0.0.1:9456 or [::1]:9456", func(text string) bool {
		s, err := netip.ParseAddrPort(text)
		return err == nil && s.Port() != 0
	})
}

const unixPrefix = "unix:"

func (listenerKind) Form(rule) form[string] {
	const expected = "unix: and an absolute path of at most 107 bytes, such as unix:/run/cnpgate/cnpgate.sock"
	return checked("a Unix socket", expected, func(text string) (file string, ok bool) {
		file, ok = strings.CutPrefix(text, unixPrefix)
		return file, ok && path.IsAbs(file) && path.Clean(file) == file && len(file) <= 107 // sun_path, unix(7)
	})
}

type (
	tags   = scalar[string, tagsKind]
	tunnel = scalar[string, tunnelKind]
)

const noTags = "none"

// tpids are the tag protocol identifiers of a VLAN; the first one need not be written.
var tpids = [...]uint16{packet.EtherTypeCTag, packet.EtherTypeSTag, packet.EtherTypeQinQ}

type (
	tagsKind   struct{} // the VLAN tags of a flow, the outer one first
	tunnelKind struct{}
)

// form of tags reads the text in its only form, so that equal tags have equal texts.
func (tagsKind) Form(rule) form[string] {
	const expected = "a VID of 0 to 4094, such as 10, with another TPID than 0x8100 as 0x88a8:10, two tags as 0x88a8:10/20, or " + noTags
	return checked("a VLAN's tags", expected, func(text string) (string, bool) {
		all, ok := parseTags(text)
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
		return cmp.Or(strings.Join(parts, "/"), noTags), ok
	})
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

func (tunnelKind) Form(rule) form[string] {
	const expected = "a kind, vxlan, gre, ip-in-ip, mpls or srv6, and its identifier, such as vxlan:5000; without an identifier it is 0"
	return checked("a tunnel", expected, func(text string) (string, bool) {
		of, ok := parseTunnel(text)
		return fmt.Sprintf("%v:%d", of.Kind, of.ID), ok
	})
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
	return scopeOf(p.Tags, p.Tunnel), p.Tags != "" || p.Tunnel != ""
}

// Scopes are those of the two directions.
func (p *ScopePair) Scopes() [2]packet.Scope {
	return [2]packet.Scope{scopeOf(p.Tags, p.Tunnel), scopeOf(p.OtherTags, p.OtherTunnel)}
}

func scopeOf(tags, tunnel string) packet.Scope {
	all, _ := parseTags(cmp.Or(tags, noTags))
	if tunnel == "" {
		return packet.ScopeInVLAN(0, all[0], all[1])
	}
	t, _ := parseTunnel(tunnel)
	return packet.ScopeInTunnel(0, t, all[0])
}
