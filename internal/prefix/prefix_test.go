package prefix

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/packet"
)

func TestLookup(t *testing.T) {
	var entries []Entry[string]
	for _, p := range []string{
		"10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32", "10.9.9.9/8", "255.255.255.255/32", "192.168.1.77/24",
		"::/0", "fd00::/8", "fd00:18::/64", "fd00:18::1/128", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128",
		"::ffff:172.16.0.0/108",
	} {
		entries = append(entries, Entry[string]{netip.MustParsePrefix(p), p})
	}
	entries = append(entries, Entry[string]{Value: "invalid"})
	table := New(entries)
	for _, c := range []struct{ addr, want string }{
		{"10.0.0.0", "10.9.9.9/8"}, // the same prefix again: the last one counts
		{"10.255.255.255", "10.9.9.9/8"},
		{"11.0.0.0", ""},
		{"9.255.255.255", ""},
		{"10.1.0.0", "10.1.0.0/16"},
		{"10.1.2.2", "10.1.0.0/16"},
		{"10.1.2.3", "10.1.2.3/32"},
		{"10.1.2.4", "10.1.0.0/16"},
		{"10.2.0.0", "10.9.9.9/8"},
		{"192.168.1.0", "192.168.1.77/24"}, // bits behind the length don't count
		{"192.168.2.0", ""},
		{"0.0.0.0", ""}, // ::/0 is no IPv4 address
		{"255.255.255.254", ""},
		{"255.255.255.255", "255.255.255.255/32"},
		{"172.16.0.1", "::ffff:172.16.0.0/108"}, // an IPv4 prefix in another form
		{"172.31.255.255", "::ffff:172.16.0.0/108"},
		{"172.32.0.0", ""},
		{"::", "::/0"},
		{"::fffe:ffff:ffff", "::/0"},
		{"::1:0:0:0", "::/0"},
		{"fcff::", "::/0"},
		{"fd00::", "fd00::/8"},
		{"fd00:18::", "fd00:18::/64"},
		{"fd00:18::1", "fd00:18::1/128"},
		{"fd00:18::2", "fd00:18::/64"},
		{"fd00:18:0:1::", "fd00::/8"},
		{"fe00::", "::/0"},
		{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe", "::/0"},
		{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128"},
	} {
		got, ok := table.Lookup(packet.AddrFrom(netip.MustParseAddr(c.addr)))
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%s: got %q, %v, want %q", c.addr, got, ok, c.want)
		}
	}
}

func TestMappedPrefixShorterThan96IsIPv6(t *testing.T) {
	table := New([]Entry[int]{{netip.MustParsePrefix("::ffff:0:0/95"), 1}})
	for addr, want := range map[string]bool{"10.0.0.1": false, "::fffe:0:1": true, "::": false} {
		if _, ok := table.Lookup(packet.AddrFrom(netip.MustParseAddr(addr))); ok != want {
			t.Errorf("%s: matched %v, want %v", addr, ok, want)
		}
	}
}

func TestEmpty(t *testing.T) {
	var none *Table[int]
	for _, table := range []*Table[int]{none, New[int](nil)} {
		for _, a := range []string{"::", "::1", "10.0.0.1"} {
			if v, ok := table.Lookup(packet.AddrFrom(netip.MustParseAddr(a))); v != 0 || ok {
				t.Errorf("%s: got %d, %v from an empty table", a, v, ok)
			}
		}
	}
}

// anyAddr favours addresses that are close to each other and to the ends of ranges.
func anyAddr(t *rapid.T) netip.Addr {
	word := func() uint64 {
		w := rapid.SampledFrom([]uint64{0, ^uint64(0), 0xfd00 << 48, 1}).Draw(t, "base")
		return w ^ rapid.SampledFrom([]uint64{0, 1, 2, 0xff, 1 << 63, 1 << 32}).Draw(t, "flip")
	}
	if rapid.Bool().Draw(t, "v4") {
		return packet.Addr{Lo: 0xffff<<32 | word()&0xffffffff}.Netip()
	}
	var b [16]byte
	packet.Addr{Hi: word(), Lo: word()}.Put16(b[:])
	return netip.AddrFrom16(b)
}

// naive goes through all entries. It uses netip's own Contains, which keeps the families apart too.
func naive(entries []Entry[int], a netip.Addr) (v int, ok bool) {
	best := -1
	for _, e := range entries {
		p := e.Prefix
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		if p.Contains(a.Unmap()) && p.Bits() >= best {
			best, v, ok = p.Bits(), e.Value, true
		}
	}
	return v, ok
}

func TestAgreesWithNaiveScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := make([]Entry[int], rapid.IntRange(0, 40).Draw(t, "n"))
		var probes []netip.Addr
		for i := range entries {
			a := anyAddr(t)
			entries[i] = Entry[int]{netip.PrefixFrom(a, rapid.IntRange(0, a.BitLen()).Draw(t, "bits")), i}
			s := spanOf(entries[i].Prefix, 0)
			for _, edge := range []packet.Addr{s.first, s.last, {Hi: s.first.Hi, Lo: s.first.Lo - 1}, {Hi: s.last.Hi, Lo: s.last.Lo + 1}} {
				probes = append(probes, edge.Netip())
			}
		}
		for range 50 {
			probes = append(probes, anyAddr(t))
		}
		table := New(entries)
		for _, a := range probes {
			got, ok := table.Lookup(packet.AddrFrom(a))
			want, wantOK := naive(entries, a)
			if got != want || ok != wantOK {
				t.Fatalf("%v: got %d, %v, want %d, %v\n%v", a, got, ok, want, wantOK, entries)
			}
		}
	})
}

func random(n int, v4 bool) ([]Entry[int], []packet.Addr) {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	entries, addrs := make([]Entry[int], n), make([]packet.Addr, 4096)
	for i := range entries {
		a, bits := packet.Addr{Hi: 0xfd<<56 | r.Uint64()>>16, Lo: r.Uint64()}, 48+r.IntN(17)
		if v4 {
			a, bits = packet.Addr{Lo: 0xffff<<32 | r.Uint64()>>32}, 16+r.IntN(17)
		}
		entries[i] = Entry[int]{netip.PrefixFrom(a.Netip(), bits).Masked(), i}
		addrs[i%len(addrs)] = a
	}
	for i := range addrs {
		addrs[i] = packet.AddrFrom(entries[r.IntN(n)].Prefix.Addr())
	}
	return entries, addrs
}

func TestNoAllocation(t *testing.T) {
	entries, addrs := random(1000, false)
	table := New(entries)
	if n := testing.AllocsPerRun(100, func() {
		for _, a := range addrs[:64] {
			table.Lookup(a)
		}
	}); n != 0 {
		t.Fatalf("%v allocations in 64 lookups", n)
	}
}

func BenchmarkLookup(b *testing.B) {
	for _, v4 := range []bool{true, false} {
		for _, n := range []int{4, 100, 5000} {
			family := "IPv6"
			if v4 {
				family = "IPv4"
			}
			b.Run(fmt.Sprintf("%s/%d", family, n), func(b *testing.B) {
				entries, addrs := random(n, v4)
				table := New(entries)
				sum := 0
				for i := 0; b.Loop(); i++ {
					v, _ := table.Lookup(addrs[i&4095])
					sum += v
				}
			})
		}
	}
}

// before and after are the neighbours of an address that is neither the lowest nor the highest.
func before(a packet.Addr) packet.Addr {
	lo, borrow := bits.Sub64(a.Lo, 1, 0)
	return packet.Addr{Hi: a.Hi - borrow, Lo: lo}
}

func after(a packet.Addr) packet.Addr {
	lo, carry := bits.Add64(a.Lo, 1, 0)
	return packet.Addr{Hi: a.Hi + carry, Lo: lo}
}

// TestAround: an address is in its own range, whose ends, and whatever lies in it, have what the address has and are of its family; the
// neighbours of the ends are of the other family or of another range.
func TestAround(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := make([]Entry[int], rapid.IntRange(0, 10).Draw(t, "n"))
		for i := range entries {
			a := anyAddr(t)
			entries[i] = Entry[int]{netip.PrefixFrom(a, rapid.IntRange(0, a.BitLen()).Draw(t, "bits")), i}
		}
		table := New(entries)
		a := packet.AddrFrom(anyAddr(t))
		r := table.Around(a)
		v, ok := table.Lookup(a)
		if !r.Has(a) {
			t.Fatalf("%v is not in its own range, %v to %v", a, r.first, r.last)
		}
		for _, b := range []packet.Addr{r.first, r.last, packet.AddrFrom(anyAddr(t)), packet.AddrFrom(anyAddr(t))} {
			if w, has := table.Lookup(b); r.Has(b) && (b.Is4() != a.Is4() || w != v || has != ok) {
				t.Fatalf("%v is in the range of %v and has %d, %v, not %d, %v", b, a, w, has, v, ok)
			}
		}
		if r.first != (packet.Addr{}) && r.Has(before(r.first)) || r.last != (packet.Addr{Hi: ^uint64(0), Lo: ^uint64(0)}) && r.Has(after(r.last)) {
			t.Fatalf("%v to %v has more than its ends", r.first, r.last)
		}
		if other := table.Around(r.last); other != r {
			t.Fatalf("the last of %v to %v is in %v to %v", r.first, r.last, other.first, other.last)
		}
	})
	var none *Table[int]
	if a := packet.AddrFrom(netip.MustParseAddr("192.0.2.1")); none.Around(a) != (Range{a, a}) {
		t.Error("a nil table has ranges")
	}
}
