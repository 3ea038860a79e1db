// Package proxy maps senders to the proxies that notify them (draft-xiao-rtgwg-proxy-congestion-notification-03 5): a congested node looks up
// the source of a data packet, and notifies the proxy instead of the sender. The package is pure: no clock, goroutine, input or output.
package proxy

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
)

// MaxSenders bounds the entries of a Senders. An entry needs about 130 bytes: 72 for itself, and up to 56 for its ranges of addresses. So
// the largest map needs 34 MB, and twice as much while another one replaces it; a million entries would need 130 MB.
const MaxSenders = 1 << 18

// OriginStatic is the Origin of an entry from the configuration.
const OriginStatic = "static"

// Sender is an entry of the map: the senders of a prefix and their proxy.
type Sender struct {
	Prefix netip.Prefix // without host bits, not an IPv4 prefix in IPv6 form
	Proxy  netip.Addr   // a unicast address of either IP version, without a zone
	Origin string       // where the entry comes from: OriginStatic, or a protocol such as "bgp"
}

// check returns an error if the entry can't be used.
func (s *Sender) check() error {
	a := s.Proxy
	switch {
	case !s.Prefix.IsValid():
		return fmt.Errorf("%s: a sender's prefix is not valid; expected an address and a length, such as 10.1.0.0/16", s.Origin)
	case s.Prefix.Addr().Is4In6():
		return fmt.Errorf("%s: the prefix %v is an IPv4 prefix in IPv6 form; expected the IPv4 prefix", s.Origin, s.Prefix)
	case s.Prefix != s.Prefix.Masked():
		return fmt.Errorf("%s: the prefix %v has host bits set; expected %v", s.Origin, s.Prefix, s.Prefix.Masked())
	case !a.IsValid(), a.Zone() != "", a.Is4In6(), a.IsLinkLocalUnicast(), !packet.AddrFrom(a).Unicast():
		return fmt.Errorf("%s: the proxy %v of %v is not the address of a host that routers reach; expected a unicast address", s.Origin, a, s.Prefix)
	}
	return nil
}

// Senders maps addresses of senders to their proxies, by the longest prefix. It is immutable, so any number of goroutines may share one. A
// nil one is empty.
type Senders struct {
	table   *prefix.Table[packet.Addr]
	entries []Sender
}

// NewSenders makes a map. It returns an error if an entry is not valid, if two entries have the same prefix, or if there are more than
// MaxSenders.
func NewSenders(entries ...Sender) (*Senders, error) {
	if len(entries) > MaxSenders {
		return nil, fmt.Errorf("%d prefixes of senders behind proxies; expected at most %d", len(entries), MaxSenders)
	}
	s := &Senders{entries: slices.Clone(entries)}
	for i := range s.entries {
		if err := s.entries[i].check(); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(s.entries, compare)
	for i := 1; i < len(s.entries); i++ {
		if a, b := &s.entries[i-1], &s.entries[i]; a.Prefix == b.Prefix {
			return nil, fmt.Errorf("the prefix %v has two entries, %s with the proxy %v and %s with %v; expected one", a.Prefix, a.Origin, a.Proxy, b.Origin, b.Proxy)
		}
	}
	s.index()
	return s, nil
}

// compare orders entries by prefix: IPv4 first, then by address, then the shorter prefix.
func compare(a, b Sender) int { return a.Prefix.Compare(b.Prefix) }

// index makes the table of the entries.
func (s *Senders) index() {
	table := make([]prefix.Entry[packet.Addr], len(s.entries))
	for i := range s.entries {
		table[i] = prefix.Entry[packet.Addr]{Prefix: s.entries[i].Prefix, Value: packet.AddrFrom(s.entries[i].Proxy)}
	}
	s.table = prefix.New(table)
}

// Lookup returns the proxy of a sender; false if it has none.
func (s *Senders) Lookup(sender packet.Addr) (proxy packet.Addr, ok bool) {
	if s == nil {
		return packet.Addr{}, false
	}
	return s.table.Lookup(sender)
}

// Len is the number of entries.
func (s *Senders) Len() int {
	if s == nil {
		return 0
	}
	return len(s.entries)
}

// Entries are the entries in the order of their prefixes: IPv4 first, then by address, the shorter prefix first. The caller must not change
// them.
func (s *Senders) Entries() []Sender {
	if s == nil {
		return nil
	}
	return s.entries
}

// Merge returns the entries of all maps. If several have the same prefix, the entry of the first of them counts: so the static map comes first,
// then learned ones. It returns an error if they are more than MaxSenders together. Maps may be nil.
func Merge(maps ...*Senders) (*Senders, error) {
	merged := &Senders{}
	for _, m := range maps {
		switch {
		case m.Len() == 0:
		case merged.Len() == 0:
			merged = m
		default:
			merged = &Senders{entries: union(merged.entries, m.entries)}
		}
	}
	if merged.Len() > MaxSenders {
		return nil, fmt.Errorf("%d prefixes of senders behind proxies together; expected at most %d", merged.Len(), MaxSenders)
	}
	if merged.table == nil {
		merged.index()
	}
	return merged, nil
}

// union merges two ordered lists; of entries with the same prefix it has the one of a.
func union(a, b []Sender) []Sender {
	merged := make([]Sender, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch c := compare(a[0], b[0]); {
		case c > 0:
			merged, b = append(merged, b[0]), b[1:]
		case c == 0:
			b = b[1:]
		default:
			merged, a = append(merged, a[0]), a[1:]
		}
	}
	return append(append(merged, a...), b...)
}
