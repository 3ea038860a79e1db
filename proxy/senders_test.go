package proxy

import (
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/packet"
)

func entry(prefix, proxy string) Sender {
	return Sender{netip.MustParsePrefix(prefix), netip.MustParseAddr(proxy), OriginStatic}
}

func learned(prefix, proxy string) Sender {
	s := entry(prefix, proxy)
	s.Origin = "bgp"
	return s
}

func senders(t testing.TB, entries ...Sender) *Senders {
	t.Helper()
	s, err := NewSenders(entries...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func addr(s string) packet.Addr { return packet.AddrFrom(netip.MustParseAddr(s)) }

// TestLookup: the longest prefix counts, IPv4 and IPv6 are separate, and a proxy may be of either.
func TestLookup(t *testing.T) {
	s := senders(t,
		entry("10.1.0.0/16", "192.0.2.1"), entry("10.1.2.0/24", "2001:db8::1"), entry("10.1.2.3/32", "10.1.2.3"),
		entry("::/0", "192.0.2.2"), entry("2001:db8:1::/48", "2001:db8::2"),
	)
	for sender, want := range map[string]string{
		"10.1.0.0": "192.0.2.1", "10.1.255.255": "192.0.2.1", "10.1.2.4": "2001:db8::1", "10.1.2.3": "10.1.2.3", "10.2.0.0": "", "9.255.255.255": "",
		"2001:db8:1::1": "2001:db8::2", "2001:db8:2::1": "192.0.2.2", "::1": "192.0.2.2",
	} {
		got, ok := s.Lookup(addr(sender))
		if ok != (want != "") || ok && got != addr(want) {
			t.Errorf("%s: %v, %v; want %q", sender, got.Netip(), ok, want)
		}
	}
	var none *Senders
	if _, ok := none.Lookup(addr("10.1.0.1")); ok || none.Len() != 0 || none.Entries() != nil {
		t.Error("a nil map has an entry")
	}
}

// TestEntries are in the order of their prefixes.
func TestEntries(t *testing.T) {
	given := []Sender{entry("::/0", "192.0.2.1"), entry("10.2.0.0/16", "192.0.2.1"), learned("10.0.0.0/8", "192.0.2.2"), entry("10.0.0.0/16", "192.0.2.1")}
	s := senders(t, given...)
	want := []Sender{given[2], given[3], given[1], given[0]}
	if !slices.Equal(s.Entries(), want) || s.Len() != 4 {
		t.Errorf("%v, want %v", s.Entries(), want)
	}
	if given[0] != entry("::/0", "192.0.2.1") {
		t.Error("the caller's entries were changed")
	}
}

// TestInvalid: each entry that can't be used is refused, with what is wrong.
func TestInvalid(t *testing.T) {
	proxyAt := func(a netip.Addr) []Sender { return []Sender{{netip.MustParsePrefix("10.0.0.0/8"), a, "bgp"}} }
	for name, c := range map[string]struct {
		entries []Sender
		want    string
	}{
		"no prefix":             {[]Sender{{Proxy: netip.MustParseAddr("192.0.2.1"), Origin: "bgp"}}, "bgp: a sender's prefix is not valid"},
		"a mapped prefix":       {[]Sender{entry("::ffff:10.0.0.0/104", "192.0.2.1")}, "IPv4 prefix in IPv6 form"},
		"host bits":             {[]Sender{entry("10.0.0.1/8", "192.0.2.1")}, "10.0.0.1/8 has host bits set; expected 10.0.0.0/8"},
		"the same prefix twice": {[]Sender{entry("10.0.0.0/8", "192.0.2.1"), entry("10.0.0.0/9", "192.0.2.1"), learned("10.0.0.0/8", "192.0.2.2")}, "the prefix 10.0.0.0/8 has two entries, static with the proxy 192.0.2.1 and bgp with 192.0.2.2"},
		"no proxy":              {proxyAt(netip.Addr{}), "not the address of a host"},
		"a mapped proxy":        {proxyAt(netip.MustParseAddr("::ffff:192.0.2.1")), "not the address of a host"},
		"a zone":                {proxyAt(netip.MustParseAddr("2001:db8::1%eth0")), "not the address of a host"},
		"link-local":            {proxyAt(netip.MustParseAddr("fe80::1")), "not the address of a host"},
		"link-local, IPv4":      {proxyAt(netip.MustParseAddr("169.254.0.1")), "not the address of a host"},
		"multicast":             {proxyAt(netip.MustParseAddr("ff02::1")), "not the address of a host"},
		"multicast, IPv4":       {proxyAt(netip.MustParseAddr("224.0.0.5")), "not the address of a host"},
		"broadcast":             {proxyAt(netip.MustParseAddr("255.255.255.255")), "not the address of a host"},
		"loopback":              {proxyAt(netip.MustParseAddr("127.0.0.1")), "not the address of a host"},
		"unspecified":           {proxyAt(netip.MustParseAddr("::")), "not the address of a host"},
		"this network":          {proxyAt(netip.MustParseAddr("0.1.2.3")), "not the address of a host"},
	} {
		t.Run(name, func(t *testing.T) {
			if s, err := NewSenders(c.entries...); err == nil || s != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want an error with %q", err, c.want)
			}
		})
	}
}

// TestMerge: for the same prefix the static entry counts; otherwise the longest prefix does, whatever its origin.
func TestMerge(t *testing.T) {
	static := senders(t, entry("10.1.0.0/16", "192.0.2.1"), entry("10.3.0.0/16", "192.0.2.1"))
	others := senders(t, learned("10.1.0.0/16", "192.0.2.9"), learned("10.1.2.0/24", "192.0.2.9"), learned("10.0.0.0/8", "192.0.2.9"), learned("10.9.0.0/16", "192.0.2.9"))
	all, err := Merge(static, others)
	if err != nil {
		t.Fatal(err)
	}
	want := []Sender{learned("10.0.0.0/8", "192.0.2.9"), entry("10.1.0.0/16", "192.0.2.1"), learned("10.1.2.0/24", "192.0.2.9"), entry("10.3.0.0/16", "192.0.2.1"), learned("10.9.0.0/16", "192.0.2.9")}
	if !slices.Equal(all.Entries(), want) {
		t.Errorf("%v, want %v", all.Entries(), want)
	}
	for sender, want := range map[string]string{"10.1.1.1": "192.0.2.1", "10.1.2.1": "192.0.2.9", "10.2.0.1": "192.0.2.9", "10.3.0.1": "192.0.2.1"} {
		if got, _ := all.Lookup(addr(sender)); got != addr(want) {
			t.Errorf("%s: %v, want %s", sender, got.Netip(), want)
		}
	}
	third := senders(t, learned("10.1.2.0/24", "192.0.2.7"), learned("10.4.0.0/16", "192.0.2.7"))
	if all, err = Merge(nil, static, others, third, senders(t)); err != nil || all.Len() != 6 {
		t.Errorf("%v, %v", all.Entries(), err)
	}
	for sender, want := range map[string]string{"10.1.1.1": "192.0.2.1", "10.1.2.1": "192.0.2.9", "10.4.0.1": "192.0.2.7"} {
		if got, _ := all.Lookup(addr(sender)); got != addr(want) {
			t.Errorf("of three maps, %s: %v, want %s", sender, got.Netip(), want)
		}
	}
	for _, c := range []struct {
		static, learned *Senders
		want            int
	}{{static, nil, 2}, {nil, others, 4}, {senders(t), others, 4}, {static, senders(t), 2}, {nil, nil, 0}, {nil, senders(t), 0}} {
		if s, err := Merge(c.static, c.learned); err != nil || s == nil || s.Len() != c.want {
			t.Errorf("%d and %d entries: %d, %v", c.static.Len(), c.learned.Len(), s.Len(), err)
		}
	}
}

// many are n entries from an address on, of which no two are neighbours, so that each needs two ranges.
func many(from uint32, n int) []Sender {
	all := make([]Sender, n)
	proxy := netip.MustParseAddr("192.0.2.1")
	for i := range all {
		a := from + 2*uint32(i)
		all[i] = Sender{netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(a >> 24), byte(a >> 16), byte(a >> 8), byte(a)}), 32), proxy, OriginStatic}
	}
	return all
}

// TestMost: MaxSenders are possible, one more isn't, and the memory is what the documentation says.
func TestMost(t *testing.T) {
	all := many(10<<24, MaxSenders+1)
	if _, err := NewSenders(all...); err == nil || !strings.Contains(err.Error(), fmt.Sprint("expected at most ", MaxSenders)) {
		t.Errorf("error %v", err)
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	s := senders(t, all[:MaxSenders]...)
	bytes := (heap() - before) / MaxSenders
	if got, ok := s.Lookup(addr("10.0.0.2")); !ok || got != addr("192.0.2.1") || s.Len() != MaxSenders {
		t.Errorf("%v, %v of %d entries", got.Netip(), ok, s.Len())
	}
	if bytes > bytesAnEntry {
		t.Errorf("an entry takes %d bytes, the documentation says %d", bytes, bytesAnEntry)
	}
	if _, err := Merge(s, senders(t, many(11<<24|1<<23, 1)...)); err == nil || !strings.Contains(err.Error(), " together; expected at most ") {
		t.Errorf("merged beyond the bound: %v", err)
	}
	if m, err := Merge(s, senders(t, all[0])); err != nil || m.Len() != MaxSenders {
		t.Errorf("a prefix that both have: %v", err)
	}
}

// bytesAnEntry is what the comment of MaxSenders says.
const bytesAnEntry = 140

// TestLongestPrefix: against a search of all entries, also of merged maps.
func TestLongestPrefix(t *testing.T) {
	addresses := rapid.Custom(func(t *rapid.T) netip.Addr {
		b := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0x80, 0xff}), 4, 4).Draw(t, "address") // few values, so that prefixes nest
		if rapid.Bool().Draw(t, "IPv6") {
			return netip.AddrFrom16([16]byte{0: 0x20, 1: b[0], 2: b[1], 14: b[2], 15: b[3]})
		}
		return netip.AddrFrom4([4]byte(b))
	})
	entries := func(origin string) *rapid.Generator[[]Sender] {
		one := rapid.Custom(func(t *rapid.T) Sender {
			a := addresses.Draw(t, "prefix")
			p, _ := a.Prefix(rapid.IntRange(0, a.BitLen()).Draw(t, "bits"))
			return Sender{p, netip.AddrFrom4([4]byte{192, 0, 2, byte(rapid.IntRange(1, 200).Draw(t, "proxy"))}), origin}
		})
		return rapid.SliceOfNDistinct(one, 0, 12, func(s Sender) netip.Prefix { return s.Prefix })
	}
	rapid.Check(t, func(t *rapid.T) {
		first, second := entries(OriginStatic).Draw(t, "static"), entries("bgp").Draw(t, "learned")
		a, err := NewSenders(first...)
		if err != nil {
			t.Fatal(err)
		}
		b, err := NewSenders(second...)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Merge(a, b)
		if err != nil {
			t.Fatal(err)
		}
		for range 8 {
			sender := addresses.Draw(t, "sender")
			var want Sender
			for _, e := range append(slices.Clone(first), second...) { // of equal prefixes the first counts
				if e.Prefix.Contains(sender) && (!want.Prefix.IsValid() || e.Prefix.Bits() > want.Prefix.Bits()) {
					want = e
				}
			}
			got, ok := s.Lookup(packet.AddrFrom(sender))
			if ok != want.Prefix.IsValid() || ok && got != packet.AddrFrom(want.Proxy) {
				t.Fatalf("%v: %v, %v; want %v of %v", sender, got.Netip(), ok, want.Proxy, want.Prefix)
			}
		}
	})
}

// FuzzNewSenders: whatever a protocol has learned, the entries are all taken or all refused, and a map finds each of its prefixes.
func FuzzNewSenders(f *testing.F) {
	f.Add([]byte{4, 10, 0, 0, 0, 8, 192, 0, 2, 1}, []byte{6, 0x20, 1})
	f.Add([]byte{4, 10, 0, 0, 0, 33, 255, 255, 255, 255}, []byte{})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var all []Sender
		for _, in := range [][]byte{a, b} {
			var e [40]byte
			copy(e[:], in)
			if e[0]%2 == 0 {
				all = append(all, Sender{netip.PrefixFrom(netip.AddrFrom4([4]byte(e[1:5])), int(e[5])), netip.AddrFrom4([4]byte(e[6:10])), "bgp"})
			} else {
				all = append(all, Sender{netip.PrefixFrom(netip.AddrFrom16([16]byte(e[1:17])), int(e[17])), netip.AddrFrom16([16]byte(e[18:34])), "bgp"})
			}
		}
		s, err := NewSenders(all...)
		if (err == nil) != (s != nil) {
			t.Fatalf("%v, %v", s, err)
		}
		if err != nil {
			return
		}
		for _, e := range all {
			if _, ok := s.Lookup(packet.AddrFrom(e.Prefix.Addr())); !ok {
				t.Fatalf("%v is not found", e.Prefix)
			}
		}
	})
}

// TestLookupAllocatesNothing: workers call it.
func TestLookupAllocatesNothing(t *testing.T) {
	s, a := senders(t, entry("10.0.0.0/8", "192.0.2.1")), addr("10.1.2.3")
	if n := testing.AllocsPerRun(100, func() { s.Lookup(a) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
