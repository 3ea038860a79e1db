package config

import (
	"fmt"
	"net/netip"
)

// documentation are the prefixes that are reserved for examples (RFC 5737, RFC 3849, RFC 9637): no network has them.
var documentation = []netip.Prefix{
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("3fff::/20"),
}

// example is an address or prefix in the file that is reserved for examples.
type example struct {
	place
	text string
}

// noteExample notes a value that is an address or a prefix for examples.
func (r *report) noteExample(at place, value any) {
	var p netip.Prefix
	switch v := value.(type) {
	case netip.Addr:
		p = netip.PrefixFrom(v, v.BitLen())
	case netip.Prefix:
		p = v
	default:
		return
	}
	for _, d := range documentation {
		if p.IsValid() && d.Bits() <= p.Bits() && d.Contains(p.Addr()) {
			r.examples = append(r.examples, example{at, fmt.Sprint(value)})
		}
	}
}

// warnExamples warns, once a file, of addresses that are left over from an example.
func (r *report) warnExamples() {
	const reserved = "reserved for examples (RFC 5737, RFC 3849), and no network has"
	switch n := len(r.examples); {
	case n == 1:
		r.warn(r.examples[0].place, "%s is %s it; replace it by your own", r.examples[0].text, reserved)
	case n > 1:
		r.warn(r.examples[0].place, "%s and %d more in this file are %s them; replace them by your own", r.examples[0].text, n-1, reserved)
	}
}
