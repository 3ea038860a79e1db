package yamldoc

import (
	"fmt"
	"net/netip"
)

const (
	anAddress = "a unicast IPv4 or IPv6 address, such as 192.0.2.1 or 2001:db8::1"
	aPrefix   = "an address and a length, such as 10.1.0.0/16 or 2001:db8:1::/48"
)

// addresses is the form of addresses that parse reads, of the IP version of is unless that is nil.
func addresses(what, expected, pattern string, parse func(text, expected string) (netip.Addr, error), is func(netip.Addr) bool) Form {
	return Form{expected, func(text string) (any, error) {
		a, err := parse(text, expected)
		if err == nil && is != nil && !is(a) {
			err = not(text, what, expected)
		}
		return a, err
	}, textual(pattern)}
}

// parseAddress reads the unicast address of a host, without a zone.
func parseAddress(text, expected string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		return a, not(text, "an IP address", expected)
	case a.Zone() != "":
		return a, fmt.Errorf("%s has a zone; expected %s", Quote(text), expected)
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

// ParsePrefix reads a prefix such as 10.1.0.0/16. The error says what was expected.
func ParsePrefix(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if a, isAddress := netip.ParseAddr(text); err != nil && isAddress == nil && a.Zone() == "" {
		return p, fmt.Errorf("%s is an address without a length; expected a prefix, such as %s", text, netip.PrefixFrom(a, a.BitLen()))
	}
	switch {
	case err != nil:
		return p, not(text, "a prefix", aPrefix)
	case p.Addr().Is4In6():
		return p, fmt.Errorf("%s is an IPv4 prefix in IPv6 form; expected %s", text, aPrefix)
	case p != p.Masked():
		return p, fmt.Errorf("%s has host bits set; expected %s", text, p.Masked())
	}
	return p, nil
}
