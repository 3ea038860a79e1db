package congestion

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
	"pgregory.net/rapid"
)

func addr(s string) packet.Addr { return packet.AddrFrom(netip.MustParseAddr(s)) }

func endpoint(p string, accepts ...packet.Notification) prefix.Entry[Preference] {
	return prefix.Entry[Preference]{Prefix: netip.MustParsePrefix(p), Value: Prefer(accepts...)}
}

var testEndpoints = prefix.New([]prefix.Entry[Preference]{
	endpoint("10.0.0.0/8", packet.LongHaulCNP),
	endpoint("10.9.0.0/16"), // a prefix without formats inside one with formats
	endpoint("10.8.0.0/16", packet.FastCNP, packet.LongHaulCNPICMPv6),
	endpoint("10.7.0.0/16", packet.LongHaulCNP, packet.FastCNP, packet.PPFC),
	endpoint("2001:db8:a::/48", packet.FastCNP, packet.LongHaulCNP, packet.LongHaulCNPICMPv6),
	endpoint("2001:db8:a:1::/64", packet.LongHaulCNPICMPv6, packet.LongHaulCNP, packet.FastCNP),
	endpoint("2001:db8:a:2::/64", packet.PPFC, packet.StandardCNP, packet.LongHaulCNP),
	endpoint("2001:db8:a:3::/64", packet.PPFC, packet.StandardCNP),
	endpoint("224.0.0.0/4", packet.LongHaulCNP),
	endpoint("ff00::/8", packet.FastCNP),
	endpoint("::/127", packet.FastCNP),
	endpoint("0.0.0.0/8", packet.LongHaulCNP),
	endpoint("127.0.0.0/8", packet.LongHaulCNP),
})

func enabled(formats ...packet.Notification) (e [packet.SentNotifications]bool) {
	for _, f := range formats {
		e[f] = true
	}
	return e
}

func TestChoose(t *testing.T) {
	all := enabled(packet.FastCNP, packet.LongHaulCNP, packet.LongHaulCNPICMPv6)
	both := Policy{Enabled: all, HasIPv4: true, HasIPv6: true, Endpoints: testEndpoints}
	only := func(e [packet.SentNotifications]bool) Policy {
		p := both
		p.Enabled = e
		return p
	}
	no4, no6 := both, both
	no4.HasIPv4, no6.HasIPv6 = false, false
	nobody := both
	nobody.Endpoints = nil
	const v4, v6 = "10.0.0.1", "2001:db8:a::1"
	for _, c := range []struct {
		name    string
		policy  Policy
		src     string
		known   bool
		format  packet.Notification
		reason  Reason
		action  Action
		refused bool
	}{
		{"first choice", both, v6, true, packet.FastCNP, OK, Notify, false},
		{"Fast CNP needs no source QP", both, v6, false, packet.FastCNP, OK, Notify, false},
		{"an endpoint's own order", both, "2001:db8:a:1::1", true, packet.LongHaulCNPICMPv6, OK, Notify, false},
		{"the first possible of an endpoint's order", both, "2001:db8:a:1::1", false, packet.FastCNP, OK, Notify, false},
		{"second choice where the first is disabled", only(enabled(packet.LongHaulCNP)), v6, true, packet.LongHaulCNP, OK, Notify, false},
		{"third choice", only(enabled(packet.LongHaulCNPICMPv6)), v6, true, packet.LongHaulCNPICMPv6, OK, Notify, false},
		{"what isn't enabled is passed over", both, "2001:db8:a:2::1", true, packet.LongHaulCNP, OK, Notify, false},
		{"PPFC can't ask for nothing but attention", only(enabled(packet.PPFC, packet.LongHaulCNP)), "2001:db8:a:2::1", true, packet.LongHaulCNP, OK, Notify, false},
		{"PPFC pauses", only(enabled(packet.PPFC, packet.LongHaulCNP)), "2001:db8:a:2::1", true, packet.PPFC, OK, Pause, false},
		{"PPFC pauses where a rate is to be reduced", only(enabled(packet.PPFC)), "10.7.0.1", false, packet.PPFC, OK, RateReduce, false},
		{"PPFC resumes", only(enabled(packet.PPFC)), "10.7.0.1", false, packet.PPFC, OK, Resume, false},
		{"standard CNP needs no address of the gateway's", Policy{Enabled: enabled(packet.StandardCNP), Endpoints: testEndpoints}, "2001:db8:a:3::1", true, packet.StandardCNP, OK, RateReduce, false},
		{"standard CNP from the gateway needs one", Policy{Enabled: enabled(packet.StandardCNP), Endpoints: testEndpoints, CNPFromGateway: true}, "2001:db8:a:3::1", true, 0, NoGatewayAddress, RateReduce, false},
		{"standard CNP from the gateway", Policy{Enabled: enabled(packet.StandardCNP), Endpoints: testEndpoints, CNPFromGateway: true, HasIPv6: true}, "2001:db8:a:3::1", true, packet.StandardCNP, OK, RateReduce, false},
		{"standard CNP needs the source QP", only(enabled(packet.StandardCNP)), "2001:db8:a:3::1", false, 0, SourceQPUnknown, RateReduce, false},
		{"standard CNP knows no Resume", only(enabled(packet.StandardCNP)), "2001:db8:a:3::1", true, 0, NotExpressible, Resume, false},
		{"Fast CNP knows no Resume", only(enabled(packet.FastCNP)), v6, true, 0, NotExpressible, Resume, false},
		{"Resume in the format that knows it", both, v6, true, packet.LongHaulCNP, OK, Resume, false},
		{"IPv4", both, v4, true, packet.LongHaulCNP, OK, Notify, false},
		{"IPv4 without an IPv6 address", no6, v4, true, packet.LongHaulCNP, OK, Notify, false},
		{"IPv6 without an IPv4 address", no4, v6, true, packet.FastCNP, OK, Notify, false},

		{"off by default", Policy{HasIPv4: true, HasIPv6: true, Endpoints: testEndpoints}, v6, true, 0, NotEnabled, Notify, false},
		{"no notification by default", Policy{}, v6, true, 0, NoEndpoint, Notify, false},
		{"no endpoints", nobody, v6, true, 0, NoEndpoint, Notify, false},
		{"no endpoint's prefix", both, "2001:db8:b::1", true, 0, NoEndpoint, Notify, false},
		{"no endpoint's prefix, IPv4", both, "11.0.0.1", true, 0, NoEndpoint, Notify, false},
		{"the longest prefix takes away", both, "10.9.1.1", true, 0, NothingAccepted, Notify, false},
		{"none of the accepted is enabled", only(enabled(packet.LongHaulCNPICMPv6)), v4, true, 0, NotEnabled, Notify, false},
		{"none of the accepted is built", both, "2001:db8:a:3::1", true, 0, NotEnabled, Notify, false},
		{"formats of IPv6 for IPv4", both, "10.8.0.1", true, 0, WrongFamily, Notify, false},
		{"no IPv4 address", no4, v4, true, 0, NoGatewayAddress, Notify, false},
		{"no IPv6 address", no6, v6, true, 0, NoGatewayAddress, Notify, false},
		{"source QP unknown", both, v4, false, 0, SourceQPUnknown, Notify, false},
		{"the reason nearest to success", both, "10.7.0.1", false, 0, SourceQPUnknown, Notify, false},
		{"source QP unknown, Fast CNP disabled", only(enabled(packet.LongHaulCNP, packet.LongHaulCNPICMPv6)), v6, false, 0, SourceQPUnknown, Notify, false},

		{"IPv4 multicast", both, "224.0.0.1", true, 0, NotUnicast, Notify, false},
		{"IPv4 broadcast", both, "255.255.255.255", true, 0, NotUnicast, Notify, false},
		{"IPv4 this network", both, "0.0.0.0", true, 0, NotUnicast, Notify, false},
		{"IPv4 loopback", both, "127.0.0.1", true, 0, NotUnicast, Notify, false},
		{"IPv6 multicast", both, "ff02::1", true, 0, NotUnicast, Notify, false},
		{"IPv6 unspecified", both, "::", true, 0, NotUnicast, Notify, false},
		{"IPv6 loopback", both, "::1", true, 0, NotUnicast, Notify, false},

		{"the option refused", only(enabled(packet.FastCNP)), v6, true, 0, OptionRefused, Notify, true},
		{"the option refused, and a second choice", both, v6, true, packet.LongHaulCNP, OK, Notify, true},
		{"the option refused, and no source QP for the second choice", both, v6, false, 0, SourceQPUnknown, Notify, true},
		{"the option refused, where another format comes first", both, "2001:db8:a:1::1", true, packet.LongHaulCNPICMPv6, OK, Notify, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			format, reason := choose(&c.policy, addr(c.src), c.known, c.refused, c.action)
			if format != c.format || reason != c.reason {
				t.Errorf("%v, %v; want %v, %v", format, reason, c.format, c.reason)
			}
		})
	}
}

// TestChooseProperties: no sender is notified in a format that it doesn't accept, that isn't enabled or that can't ask for the action, and one
// that can be notified is, in the first format that does it.
func TestChooseProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
		accepts := rapid.SliceOf(rapid.Map(rapid.Uint8Range(0, uint8(packet.SentNotifications)), func(n uint8) packet.Notification { return packet.Notification(n) })).Draw(t, "accepts")
		known, refused, action := flag("source QP known"), flag("option refused"), Action(rapid.Uint8Range(0, packet.Actions-1).Draw(t, "action"))
		src := rapid.SampledFrom([]string{"10.0.0.1", "2001:db8::1"}).Draw(t, "source")
		granted := rapid.SampledFrom([]string{"10.0.0.0/8", "2001:db8::/32"}).Draw(t, "granted")
		p := Policy{HasIPv4: flag("IPv4"), HasIPv6: flag("IPv6"), Endpoints: prefix.New([]prefix.Entry[Preference]{endpoint(granted, accepts...)})}
		for f := range p.Enabled {
			p.Enabled[f] = flag("enabled")
		}
		is4 := src == "10.0.0.1"
		own := is4 && p.HasIPv4 || !is4 && p.HasIPv6
		slows := action == RateReduce || action == Pause
		can := map[packet.Notification]bool{
			packet.FastCNP:           !is4 && own && action != Resume && !refused,
			packet.LongHaulCNP:       known && own,
			packet.LongHaulCNPICMPv6: !is4 && own && known,
			packet.PPFC:              own && action != Notify,
			packet.StandardCNP:       known && (slows || action == Notify),
		}
		want := slices.IndexFunc(accepts, func(f packet.Notification) bool { return int(f) < packet.SentNotifications && p.Enabled[f] && can[f] })
		if is4 != (granted == "10.0.0.0/8") {
			want = -1
		}
		format, reason := choose(&p, addr(src), known, refused, action)
		switch {
		case (want >= 0) != (reason == OK):
			t.Fatalf("%v, %v; want the accepted number %d", format, reason, want)
		case want >= 0 && format != accepts[want]:
			t.Fatalf("%v, want %v", format, accepts[want])
		}
	})
}

// TestRecent: what a caller remembers changes no choice, whatever it has asked for before.
func TestRecent(t *testing.T) {
	hosts := []string{"10.0.0.1", "10.0.0.2", "10.1.0.1", "11.0.0.1", "127.0.0.1", "224.0.0.1", "fd00::1", "fd00::2", "fd01::1", "ff02::1", "::1"}
	of := func(a, b Preference) *prefix.Table[Preference] {
		return prefix.New([]prefix.Entry[Preference]{
			{Prefix: netip.MustParsePrefix("10.0.0.0/16"), Value: a}, {Prefix: netip.MustParsePrefix("10.0.0.2/32"), Value: b},
			{Prefix: netip.MustParsePrefix("::/0"), Value: b}, {Prefix: netip.MustParsePrefix("fd00::/64"), Value: a},
		})
	}
	policies := []*Policy{
		{Enabled: enabled(packet.FastCNP, packet.LongHaulCNP), HasIPv4: true, HasIPv6: true, Endpoints: of(Prefer(packet.FastCNP, packet.LongHaulCNP), Prefer(packet.LongHaulCNP))},
		{Enabled: enabled(packet.FastCNP, packet.LongHaulCNP), HasIPv4: true, HasIPv6: true, Endpoints: of(Prefer(packet.LongHaulCNP), Prefer(packet.FastCNP))},
		{Enabled: enabled(packet.FastCNP, packet.PPFC), HasIPv6: true, Endpoints: of(Prefer(packet.PPFC), Prefer(packet.FastCNP))},
		{Enabled: enabled(packet.FastCNP, packet.LongHaulCNP), HasIPv4: true, HasIPv6: true},
	}
	rapid.Check(t, func(t *rapid.T) {
		var r Recent
		for range 50 {
			p, src := rapid.SampledFrom(policies).Draw(t, "policy"), addr(rapid.SampledFrom(hosts).Draw(t, "host"))
			known, refused := rapid.Bool().Draw(t, "known"), rapid.Bool().Draw(t, "refused")
			action := Action(rapid.IntRange(0, packet.Actions-1).Draw(t, "action"))
			format, reason := p.Choose(&r, &src, known, refused, action)
			if f, want := choose(p, src, known, refused, action); reason != want || reason == OK && format != f {
				t.Fatalf("%v: %v, %v, want %v, %v", src.Netip(), format, reason, f, want)
			}
		}
	})
}

// TestToProxy: a proxy is notified for any sender that is a host, whatever endpoints say, if the gateway has an address of the proxy's family.
func TestToProxy(t *testing.T) {
	on := Policy{Enabled: enabled(packet.ProxyNotification), HasIPv4: true, HasIPv6: true}
	no4, no6 := on, on
	no4.HasIPv4, no6.HasIPv6 = false, false
	off := Policy{Enabled: enabled(packet.FastCNP, packet.LongHaulCNP, packet.LongHaulCNPICMPv6, packet.PPFC, packet.StandardCNP), HasIPv4: true, HasIPv6: true, Endpoints: testEndpoints}
	const v4, v6, proxy4, proxy6 = "10.0.0.1", "2001:db8:a::1", "192.0.2.1", "2001:db8::1"
	for _, c := range []struct {
		name, src, proxy string
		policy           Policy
		action           Action
		want             Reason
	}{
		{"IPv4", v4, proxy4, on, Notify, OK},
		{"IPv6", v6, proxy6, on, RateReduce, OK},
		{"a proxy of IPv6 for a sender of IPv4", v4, proxy6, no4, Pause, OK},
		{"a proxy of IPv4 for a sender of IPv6", v6, proxy4, no6, Pause, OK},
		{"no IPv4 address", v6, proxy4, no4, Notify, NoGatewayAddress},
		{"no IPv6 address", v4, proxy6, no6, Notify, NoGatewayAddress},
		{"off by default", v4, proxy4, off, Notify, NotEnabled},
		{"a level can't ask to resume", v4, proxy4, on, Resume, NotExpressible},
		{"a forged source", "224.0.0.1", proxy4, on, Notify, NotUnicast},
		{"a forged source, IPv6", "::1", proxy6, on, Notify, NotUnicast},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.policy.ToProxy(addr(c.src), addr(c.proxy), c.action); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestPrefer(t *testing.T) {
	p := Prefer(packet.LongHaulCNP, packet.LongHaulCNP, packet.ExtendedCNP, packet.ProxyNotification, packet.FastCNP, 255, packet.LongHaulCNP)
	if want := Preference(packet.LongHaulCNP + 1 | (packet.FastCNP+1)<<preferenceBits); p != want {
		t.Errorf("got %v, want %v", p, want)
	}
	for f := range packet.Notification(packet.SentNotifications + 1) {
		if got, want := p.Accepts(f), f == packet.LongHaulCNP || f == packet.FastCNP; got != want {
			t.Errorf("accepts %v: %v", f, got)
		}
	}
}

// choose is a choice without one before it.
func choose(p *Policy, src packet.Addr, known, refused bool, a Action) (packet.Notification, Reason) {
	return p.Choose(&Recent{}, &src, known, refused, a)
}

func TestNames(t *testing.T) {
	names := map[string]bool{}
	for f := range packet.Notification(packet.SentNotifications) {
		names[f.String()] = true
	}
	for r := range Reason(Reasons) {
		names[r.String()] = true
	}
	if len(names) != packet.SentNotifications+Reasons || names["unknown"] || names[""] {
		t.Errorf("a name is missing or repeated: %v", names)
	}
	if (packet.NotANotification+1).String() != "unknown" || Reason(Reasons).String() != "unknown" {
		t.Error("a value out of range has a name")
	}
}

func TestNoAllocations(t *testing.T) {
	p := Policy{Enabled: enabled(packet.FastCNP, packet.LongHaulCNP, packet.LongHaulCNPICMPv6), HasIPv4: true, HasIPv6: true, Endpoints: testEndpoints}
	src := addr("2001:db8:a:1::1")
	var sum uint64
	if n := testing.AllocsPerRun(100, func() {
		k := Adaptive(64_000, 1, 100e9, 10e6, 50)
		format, reason := choose(&p, src, true, false, Notify)
		sum += uint64(format) + uint64(reason) + uint64(k.Severity(130_000_000))
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkChoose(b *testing.B) {
	p := Policy{Enabled: enabled(packet.FastCNP, packet.LongHaulCNP, packet.LongHaulCNPICMPv6), HasIPv4: true, HasIPv6: true, Endpoints: testEndpoints}
	src := addr("2001:db8:a:1::1")
	for b.Loop() {
		choose(&p, src, false, false, Notify)
	}
}
