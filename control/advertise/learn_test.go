package advertise

import (
	"fmt"
	"net/netip"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/control/advertise/nhc"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/proxy"
)

var (
	rules = Rules{
		Characteristic: 65400,
		Accept:         []config.BGPAccept{{Prefix: netip.MustParsePrefix("10.0.0.0/8"), MaxLength: 24}, {Prefix: netip.MustParsePrefix("2001:db8::/32"), MaxLength: 64}},
		Own:            []netip.Addr{netip.MustParseAddr("203.0.113.99")},
	}
	hop4, hop6 = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8:f::1")
)

// attribute is the value of an attribute that names a proxy.
func attribute(t *testing.T, family nhc.Family, hop netip.Addr, proxy string) []byte {
	t.Helper()
	a := nhc.Attribute{Family: family, NextHop: hop, Characteristics: []nhc.Characteristic{nhc.PNC(65400, netip.MustParseAddr(proxy))}}
	b, err := a.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestJudge(t *testing.T) {
	good := attribute(t, nhc.IPv4Unicast, hop4, "203.0.113.7")
	link := netip.MustParseAddr("fe80::1")
	for _, c := range []struct {
		name, prefix string
		hop          netip.Addr
		value        []byte
		flags        uint8
		want         Reason
	}{
		{"IPv4", "10.1.0.0/16", hop4, good, 0xC0, Learned},
		{"Partial", "10.1.0.0/16", hop4, good, 0xE0, Learned},
		{"as long as is accepted", "10.1.2.0/24", hop4, good, 0xC0, Learned},
		{"as short as is accepted", "10.0.0.0/8", hop4, good, 0xC0, Learned},
		{"an IPv4 proxy of IPv6 senders", "2001:db8:1::/48", hop6, attribute(t, nhc.IPv6Unicast, hop6, "203.0.113.7"), 0xC0, Learned},
		{"IPv4 by an IPv6 next hop (RFC 8950)", "10.1.0.0/16", hop6, attribute(t, nhc.IPv4Unicast, hop6, "203.0.113.7"), 0xC0, Learned},
		{"no attribute", "10.1.0.0/16", hop4, nil, 0, NoAttribute},
		{"no attribute, not accepted", "198.51.100.0/24", hop4, nil, 0, NoAttribute},
		{"an empty attribute", "10.1.0.0/16", hop4, []byte{}, 0xC0, Malformed},
		{"cut", "10.1.0.0/16", hop4, good[:len(good)-1], 0xC0, Malformed},
		{"not transitive", "10.1.0.0/16", hop4, good, 0x80, Malformed},
		{"not optional", "10.1.0.0/16", hop4, good, 0x40, Malformed},
		{"longer than is accepted", "10.1.2.0/25", hop4, good, 0xC0, NotAccepted},
		{"around what is accepted", "8.0.0.0/7", hop4, good, 0xC0, NotAccepted},
		{"outside", "198.51.100.0/24", hop4, good, 0xC0, NotAccepted},
		{"another next hop", "10.1.0.0/16", netip.MustParseAddr("192.0.2.2"), good, 0xC0, OtherHop},
		{"no next hop", "10.1.0.0/16", netip.Addr{}, good, 0xC0, OtherHop},
		{"another family", "10.1.0.0/16", hop4, attribute(t, nhc.IPv6Unicast, hop4, "203.0.113.7"), 0xC0, OtherFamily},
		{"a link-local next hop", "2001:db8:1::/48", link, attribute(t, nhc.IPv6Unicast, link, "203.0.113.7"), 0xC0, OtherHop},
		{"another code", "10.1.0.0/16", hop4, append(good[:8:8], 0, 1, 0, 4, 203, 0, 113, 7), 0xC0, NoProxy},
		{"no characteristic", "10.1.0.0/16", hop4, good[:8], 0xC0, NoProxy},
		{"this gateway", "10.1.0.0/16", hop4, attribute(t, nhc.IPv4Unicast, hop4, "203.0.113.99"), 0xC0, OwnProxy},
	} {
		r := Route{Prefix: netip.MustParsePrefix(c.prefix), NextHop: c.hop, Attribute: c.value, Flags: c.flags}
		address, got := rules.Judge(&r)
		if got != c.want || (got == Learned) != address.IsValid() {
			t.Errorf("%s: %s, %s; expected %s", c.name, got, address, c.want)
		}
	}
}

// Learn makes a map that proxy.NewSenders takes, in order, and counts every route once.
func TestLearn(t *testing.T) {
	a, b := netip.MustParseAddr("192.0.2.10"), netip.MustParseAddr("192.0.2.11")
	routes := []Route{
		{Prefix: netip.MustParsePrefix("2001:db8:1::/48"), NextHop: hop6, Peer: b, Attribute: attribute(t, nhc.IPv6Unicast, hop6, "2001:db8:7::7"), Flags: 0xC0},
		{Prefix: netip.MustParsePrefix("10.2.0.0/16"), NextHop: hop4, Peer: a, Attribute: attribute(t, nhc.IPv4Unicast, hop4, "203.0.113.8"), Flags: 0xE0},
		{Prefix: netip.MustParsePrefix("10.1.0.0/16"), NextHop: hop4, Peer: a, Attribute: attribute(t, nhc.IPv4Unicast, hop4, "203.0.113.7"), Flags: 0xC0},
		{Prefix: netip.MustParsePrefix("10.3.0.0/16"), NextHop: hop4, Peer: a},
	}
	got := rules.Learn(routes)
	want := []proxy.Sender{
		{Prefix: netip.MustParsePrefix("10.1.0.0/16"), Proxy: netip.MustParseAddr("203.0.113.7"), Origin: "bgp"},
		{Prefix: netip.MustParsePrefix("10.2.0.0/16"), Proxy: netip.MustParseAddr("203.0.113.8"), Origin: "bgp"},
		{Prefix: netip.MustParsePrefix("2001:db8:1::/48"), Proxy: netip.MustParseAddr("2001:db8:7::7"), Origin: "bgp"},
	}
	if !reflect.DeepEqual(got.Senders, want) {
		t.Errorf("%v", got.Senders)
	}
	if _, err := proxy.NewSenders(got.Senders...); err != nil {
		t.Error(err)
	}
	if *got.ByPeer[a] != [Reasons]int{Learned: 2, NoAttribute: 1} || *got.ByPeer[b] != [Reasons]int{Learned: 1} {
		t.Errorf("%v", got.ByPeer)
	}
	if routes[0].Peer != b {
		t.Error("the routes were reordered")
	}
}

// More prefixes than the map takes are counted, and the rest is used.
func TestTooMany(t *testing.T) {
	const more = 3
	value := attribute(t, nhc.IPv4Unicast, hop4, "203.0.113.7")
	wide := Rules{Characteristic: 65400, Accept: []config.BGPAccept{{Prefix: netip.MustParsePrefix("0.0.0.0/0"), MaxLength: 32}}}
	var routes []Route
	for i := range proxy.MaxSenders + more {
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32)
		routes = append(routes, Route{Prefix: p, NextHop: hop4, Attribute: value, Flags: 0xC0})
	}
	if got := wide.Learn(routes); len(got.Senders) != proxy.MaxSenders || got.ByPeer[netip.Addr{}][TooMany] != more {
		t.Errorf("%d senders, %v", len(got.Senders), got.ByPeer)
	}
}

func TestReasonNames(t *testing.T) {
	names := map[string]bool{}
	for r := range Reasons {
		if names[r.String()] || r.String() == "" {
			t.Errorf("%d is %q", r, r)
		}
		names[r.String()] = true
	}
}

// Changes are used together, none before it has settled or waited for long, and none later than that.
func TestSettling(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.Int64Range(0, int64(400*time.Millisecond)), 1, 60).Draw(rt, "steps")
		wrong := ""
		synctest.Test(t, func(*testing.T) { wrong = settle(steps) })
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// settle makes a change after each step. It says what is wrong about when they are used.
func settle(steps []int64) string {
	s, begin := NewSettling(), time.Now()
	defer s.Stop()
	var first, last time.Duration
	pending := false
	for _, step := range append(steps, int64(2*Longest)) {
		next := time.Since(begin) + time.Duration(step)
		for time.Since(begin) < next {
			due := min(last+Quiet, first+Longest)
			select {
			case <-s.C:
				if s.Used(); !pending || time.Since(begin) != due {
					return fmt.Sprintf("used at %v, changes at %v to %v", time.Since(begin), first, last)
				}
				pending = false
			case <-time.After(next - time.Since(begin)):
				if pending && due < next {
					return fmt.Sprintf("not used by %v, changes at %v to %v", next, first, last)
				}
			}
		}
		s.Change()
		if last = next; !pending {
			pending, first = true, next
		}
	}
	return ""
}
