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

func endpoint(p string, accepts ...Format) prefix.Entry[Preference] {
	return prefix.Entry[Preference]{Prefix: netip.MustParsePrefix(p), Value: Prefer(accepts...)}
}

var testEndpoints = prefix.New([]prefix.Entry[Preference]{
	endpoint("10.0.0.0/8", LongHaulCNP),
	endpoint("10.9.0.0/16"), // granted nothing inside of what is granted something
	endpoint("10.8.0.0/16", FastCNP, LongHaulCNPICMPv6),
	endpoint("10.7.0.0/16", LongHaulCNP, FastCNP, PPFC),
	endpoint("2001:db8:a::/48", FastCNP, LongHaulCNP, LongHaulCNPICMPv6),
	endpoint("2001:db8:a:1::/64", LongHaulCNPICMPv6, LongHaulCNP, FastCNP),
	endpoint("2001:db8:a:2::/64", PPFC, StandardCNP, LongHaulCNP),
	endpoint("2001:db8:a:3::/64", PPFC, StandardCNP),
	endpoint("224.0.0.0/4", LongHaulCNP),
	endpoint("ff00::/8", FastCNP),
	endpoint("::/127", FastCNP),
	endpoint("0.0.0.0/8", LongHaulCNP),
	endpoint("127.0.0.0/8", LongHaulCNP),
})

func TestChoose(t *testing.T) {
	all := Enabled{true, true, true}
	both := Policy{Enabled: all, HasIPv4: true, HasIPv6: true, Endpoints: testEndpoints}
	only := func(e Enabled) Policy {
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
		name   string
		policy Policy
		src    string
		known  bool
		format Format
		reason Reason
	}{
		{"first choice", both, v6, true, FastCNP, OK},
		{"Fast CNP needs no source QP", both, v6, false, FastCNP, OK},
		{"an endpoint's own order", both, "2001:db8:a:1::1", true, LongHaulCNPICMPv6, OK},
		{"the first possible of an endpoint's order", both, "2001:db8:a:1::1", false, FastCNP, OK},
		{"second choice where the first is disabled", only(Enabled{LongHaulCNP: true}), v6, true, LongHaulCNP, OK},
		{"third choice", only(Enabled{LongHaulCNPICMPv6: true}), v6, true, LongHaulCNPICMPv6, OK},
		{"what this version doesn't build is passed over", both, "2001:db8:a:2::1", true, LongHaulCNP, OK},
		{"IPv4", both, v4, true, LongHaulCNP, OK},
		{"IPv4 without an IPv6 address", no6, v4, true, LongHaulCNP, OK},
		{"IPv6 without an IPv4 address", no4, v6, true, FastCNP, OK},

		{"off by default", Policy{HasIPv4: true, HasIPv6: true, Endpoints: testEndpoints}, v6, true, 0, NotEnabled},
		{"nobody is told by default", Policy{}, v6, true, 0, NoEndpoint},
		{"no endpoints", nobody, v6, true, 0, NoEndpoint},
		{"no endpoint's prefix", both, "2001:db8:b::1", true, 0, NoEndpoint},
		{"no endpoint's prefix, IPv4", both, "11.0.0.1", true, 0, NoEndpoint},
		{"the longest prefix takes away", both, "10.9.1.1", true, 0, NothingAccepted},
		{"none of the accepted is enabled", only(Enabled{LongHaulCNPICMPv6: true}), v4, true, 0, NotEnabled},
		{"none of the accepted is built", both, "2001:db8:a:3::1", true, 0, NotEnabled},
		{"formats of IPv6 for IPv4", both, "10.8.0.1", true, 0, WrongFamily},
		{"no IPv4 address", no4, v4, true, 0, NoGatewayAddress},
		{"no IPv6 address", no6, v6, true, 0, NoGatewayAddress},
		{"source QP unknown", both, v4, false, 0, SourceQPUnknown},
		{"the reason nearest to success", both, "10.7.0.1", false, 0, SourceQPUnknown},
		{"source QP unknown, Fast CNP disabled", only(Enabled{LongHaulCNP: true, LongHaulCNPICMPv6: true}), v6, false, 0, SourceQPUnknown},

		{"IPv4 multicast", both, "224.0.0.1", true, 0, NotUnicast},
		{"IPv4 broadcast", both, "255.255.255.255", true, 0, NotUnicast},
		{"IPv4 this network", both, "0.0.0.0", true, 0, NotUnicast},
		{"IPv4 loopback", both, "127.0.0.1", true, 0, NotUnicast},
		{"IPv6 multicast", both, "ff02::1", true, 0, NotUnicast},
		{"IPv6 unspecified", both, "::", true, 0, NotUnicast},
		{"IPv6 loopback", both, "::1", true, 0, NotUnicast},
	} {
		t.Run(c.name, func(t *testing.T) {
			format, reason := c.policy.Choose(addr(c.src), c.known)
			if format != c.format || reason != c.reason {
				t.Errorf("%v, %v; want %v, %v", format, reason, c.format, c.reason)
			}
		})
	}
}

// TestChooseProperties: nobody is told by what it doesn't accept, what isn't enabled or what can't be built, and somebody who can
// be told is, by the first format that does it.
func TestChooseProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
		accepts := rapid.SliceOf(rapid.Map(rapid.Uint8Range(0, Formats), func(n uint8) Format { return Format(n) })).Draw(t, "accepts")
		known := flag("source QP known")
		src := rapid.SampledFrom([]string{"10.0.0.1", "2001:db8::1"}).Draw(t, "source")
		granted := rapid.SampledFrom([]string{"10.0.0.0/8", "2001:db8::/32"}).Draw(t, "granted")
		p := Policy{
			Enabled: Enabled{flag("fast"), flag("long-haul"), flag("icmpv6")}, HasIPv4: flag("IPv4"), HasIPv6: flag("IPv6"),
			Endpoints: prefix.New([]prefix.Entry[Preference]{endpoint(granted, accepts...)}),
		}
		is4 := src == "10.0.0.1"
		can := map[Format]bool{
			FastCNP:           p.Enabled.FastCNP && !is4 && p.HasIPv6,
			LongHaulCNP:       p.Enabled.LongHaulCNP && known && (is4 && p.HasIPv4 || !is4 && p.HasIPv6),
			LongHaulCNPICMPv6: p.Enabled.LongHaulCNPICMPv6 && !is4 && p.HasIPv6 && known,
		}
		want := slices.IndexFunc(accepts, func(f Format) bool { return can[f] })
		if is4 != (granted == "10.0.0.0/8") {
			want = -1
		}
		format, reason := p.Choose(addr(src), known)
		switch {
		case (want >= 0) != (reason == OK):
			t.Fatalf("%v, %v; want the accepted number %d", format, reason, want)
		case want >= 0 && format != accepts[want]:
			t.Fatalf("%v, want %v", format, accepts[want])
		}
	})
}

// TestChoice: a choice kept says of every sender that it covers what Choose says, and covers the one it was made for.
func TestChoice(t *testing.T) {
	sources := []string{"10.0.0.1", "10.6.255.255", "10.7.0.0", "10.9.1.1", "11.0.0.1", "0.0.0.1", "1.0.0.0", "126.255.255.255", "127.0.0.1",
		"128.0.0.0", "223.255.255.255", "224.0.0.1", "255.255.255.255", "::", "::1", "::2", "2001:db8:a::1", "2001:db8:a:1::1", "2001:db8:a:4::1",
		"2001:db8:b::1", "feff:ffff::1", "ff02::1"}
	rapid.Check(t, func(t *rapid.T) {
		flag := rapid.Bool().Draw
		p := Policy{Enabled: Enabled{flag(t, "fast"), flag(t, "long-haul"), flag(t, "icmpv6")}, HasIPv4: flag(t, "IPv4"), HasIPv6: flag(t, "IPv6")}
		if flag(t, "endpoints") {
			p.Endpoints = testEndpoints
		}
		var c Choice
		first := addr(rapid.SampledFrom(sources).Draw(t, "first"))
		made := p.Around(first, &c)
		if made != (c.Covers(first)) {
			t.Fatalf("made %v, covers its own %v", made, c.Covers(first))
		}
		other, known := addr(rapid.SampledFrom(sources).Draw(t, "other")), flag(t, "source QP known")
		if !c.Covers(other) {
			return
		}
		format, reason := c.Of(known)
		if f, r := p.Choose(other, known); f != format || r != reason {
			t.Fatalf("%v, %v; Choose says %v, %v", format, reason, f, r)
		}
	})
	if c := (Choice{}); c.Covers(addr("::")) || c.Covers(addr("10.0.0.1")) {
		t.Error("the zero choice covers somebody")
	}
}

func TestPrefer(t *testing.T) {
	p := Prefer(LongHaulCNP, LongHaulCNP, Formats, FastCNP, 255, LongHaulCNP)
	if want := (Preference{[Formats]Format{LongHaulCNP, FastCNP}, 2}); p != want {
		t.Errorf("got %v, want %v", p, want)
	}
	for f := range Format(Formats + 1) {
		if got, want := p.Accepts(f), f == LongHaulCNP || f == FastCNP; got != want {
			t.Errorf("accepts %v: %v", f, got)
		}
	}
}

func TestNames(t *testing.T) {
	names := map[string]bool{}
	for f := range Format(Formats) {
		names[f.String()] = true
	}
	for r := range Reason(Reasons) {
		names[r.String()] = true
	}
	for l := range Second + 1 {
		names[l.String()] = true
	}
	if len(names) != Formats+Reasons+int(Second)+1 || names["unknown"] || names[""] {
		t.Errorf("a name is missing or there twice: %v", names)
	}
	if Format(Formats).String() != "unknown" || Reason(Reasons).String() != "unknown" || Level(3).String() != "unknown" {
		t.Error("a value out of range has a name")
	}
}

func TestRateReduce(t *testing.T) {
	const mb = 1_000_000
	for _, c := range []struct {
		name            string
		percent         uint16
		depth, capacity uint64
		disclose        bool
		want            Instruction
	}{
		{"draft-tian 7 step 4", 30, 130 * mb, 184_166_666, true, Instruction{180, 30, MetricQueueDepth, 130_000}},
		{"undisclosed (draft-tian 9)", 30, 130 * mb, 184_166_666, false, Instruction{180, 30, MetricUnspecified, 0}},
		{"more than everything", 101, 999, 1000, true, Instruction{254, 100, MetricQueueDepth, 0}},
		{"24 bits of kilobytes", 1, 16_777_215_999, 1 << 40, true, Instruction{3, 1, MetricQueueDepth, 0xffffff}},
		{"more saturate", 1, 1 << 63, 1 << 63, true, Instruction{255, 1, MetricQueueDepth, 0xffffff}},
	} {
		if got := RateReduce(c.percent, c.depth, c.capacity, c.disclose); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	p := Policy{Enabled: Enabled{true, true, true}, HasIPv4: true, HasIPv6: true, Endpoints: testEndpoints}
	src := addr("2001:db8:a:1::1")
	var sum uint64
	if n := testing.AllocsPerRun(100, func() {
		k := Adaptive(64_000, 1, 100e9, 10e6, 50)
		format, reason := p.Choose(src, true)
		i := RateReduce(30, 130_000_000, 250_000_000, true)
		sum += uint64(k.Level(130_000_000)) + uint64(format) + uint64(reason) + uint64(i.MetricValue)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkChoose(b *testing.B) {
	p := Policy{Enabled: Enabled{true, true, true}, HasIPv4: true, HasIPv6: true, Endpoints: testEndpoints}
	src := addr("2001:db8:a:1::1")
	for b.Loop() {
		p.Choose(src, false)
	}
}
