package ospfapi_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/control/advertise/ospfapi"
	"github.com/cnpgate/cnpgate/internal/igp/ospf"
	"github.com/cnpgate/cnpgate/internal/igp/ospfv2"
)

var own = netip.MustParseAddr("192.0.2.99")

// lsa makes an extended prefix LSA. Each word is a prefix, and behind "=" the source router address of its proxy; without "=" it has no P-flag.
func lsa(t testing.TB, router string, lsaType, opaque int, words string) ospf.LSA {
	t.Helper()
	var body ospfv2.LSA
	for _, word := range strings.Fields(words) {
		prefix, proxy, is := strings.Cut(word, "=")
		p := ospfv2.Prefix{Prefix: netip.MustParsePrefix(prefix)}
		if is {
			p.SetP()
		}
		if proxy != "" {
			p.Addresses = []netip.Addr{netip.MustParseAddr(proxy)}
		}
		body.Prefixes = append(body.Prefixes, p)
	}
	b, err := body.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	const options = 0x4000 // O
	return ospf.LSA{Type: options | uint16(lsaType), ID: ospfv2.LinkStateID(uint32(opaque)), Router: netip.MustParseAddr(router), Body: b}
}

// TestSenders: which prefixes have which proxy, after LSAs of several routers.
func TestSenders(t *testing.T) {
	const area, as = ospfv2.AreaScope, ospfv2.ASScope
	for _, c := range []struct {
		name string
		lsas []ospf.LSA
		want string
	}{
		{"addresses", []ospf.LSA{lsa(t, "192.0.2.1", as, 1, "10.2.0.0/16=192.0.2.9 10.1.0.0/16=2001:db8::9 10.3.0.0/16")}, "10.1.0.0/16=2001:db8::9 10.2.0.0/16=192.0.2.9"},
		{"Router ID", []ospf.LSA{lsa(t, "192.0.2.1", area, 1, "10.1.0.0/16=")}, "10.1.0.0/16=192.0.2.1"},
		{"unreachable router", []ospf.LSA{lsa(t, "192.0.2.3", as, 1, "10.1.0.0/16=192.0.2.9")}, ""},
		{"two routers: the lowest address", []ospf.LSA{lsa(t, "192.0.2.1", as, 1, "10.1.0.0/16=192.0.2.9"), lsa(t, "192.0.2.2", as, 1, "10.1.0.0/16=192.0.2.8")},
			"10.1.0.0/16=192.0.2.8"},
		{"the smallest opaque ID counts, also without the flag",
			[]ospf.LSA{lsa(t, "192.0.2.1", as, 2, "10.1.0.0/16=192.0.2.9"), lsa(t, "192.0.2.1", as, 1, "10.1.0.0/16")}, ""},
		{"the smallest scope counts", []ospf.LSA{lsa(t, "192.0.2.1", as, 1, "10.1.0.0/16=192.0.2.9"), lsa(t, "192.0.2.1", area, 2, "10.1.0.0/16=192.0.2.8")},
			"10.1.0.0/16=192.0.2.8"},
		{"the first of a repeated prefix", []ospf.LSA{lsa(t, "192.0.2.1", as, 1, "10.1.0.0/16=192.0.2.9 10.1.0.0/16=192.0.2.8")}, "10.1.0.0/16=192.0.2.9"},
		{"proxies that no notification reaches", []ospf.LSA{lsa(t, "192.0.2.1", as, 1, "10.1.0.0/16=127.0.0.1 10.2.0.0/16=224.0.0.1 10.3.0.0/16=fe80::1")}, ""},
		{"this gateway", []ospf.LSA{lsa(t, "192.0.2.1", as, 1, "10.1.0.0/16=192.0.2.99")}, ""},
		{"a newer one replaces it", []ospf.LSA{lsa(t, "192.0.2.1", as, 1, "10.1.0.0/16=192.0.2.9"), lsa(t, "192.0.2.1", as, 1, "10.2.0.0/16=192.0.2.9")},
			"10.2.0.0/16=192.0.2.9"},
	} {
		d := ospfapi.NewDatabase()
		d.Reach([]netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.3")}, nil)
		d.Reach(nil, []netip.Addr{netip.MustParseAddr("192.0.2.3")})
		for i := range c.lsas {
			if e, err := d.Update(c.lsas[i], false, true); e != "changed" || err != nil {
				t.Errorf("%s: %s, %v", c.name, e, err)
			}
		}
		if got := senders(d); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func senders(d ospfapi.Database) string {
	var words []string
	for _, s := range d.Senders(own) {
		words = append(words, fmt.Sprintf("%v=%v", s.Prefix, s.Proxy))
	}
	return strings.Join(words, " ")
}

// TestUpdate: what each kind of change leads to, and what is counted.
func TestUpdate(t *testing.T) {
	d := ospfapi.NewDatabase()
	d.Reach([]netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil)
	good := lsa(t, "192.0.2.1", ospfv2.ASScope, 1, "10.1.0.0/16=192.0.2.9 10.2.0.0/16=192.0.2.9")
	other, link, broken, flushed := good, lsa(t, "192.0.2.1", ospfv2.LinkScope, 1, "10.1.0.0/16="), good, good
	other.ID = 4<<24 | 1
	broken.Body = good.Body[:len(good.Body)-5]
	flushed.Age = ospf.MaxAge
	for i, c := range []struct {
		lsa                 ospf.LSA
		originated, present bool
		effect              string
		fails               bool
		prefixes            int
	}{
		{other, false, true, "nothing", false, 0},
		{good, false, true, "changed", false, 2},
		{good, false, true, "changed", false, 2},
		{broken, false, true, "changed", true, 0}, // the earlier version isn't valid any more
		{good, false, true, "changed", false, 2},
		{flushed, false, true, "changed", false, 0},
		{good, false, true, "changed", false, 2},
		{flushed, false, false, "changed", false, 0},
		{good, true, true, "nothing", false, 0}, // nothing is learned from the own ospfd
		{link, true, false, "nothing", false, 0},
		{flushed, true, true, "lost", false, 0},
		{flushed, true, false, "nothing", false, 0},
	} {
		e, err := d.Update(c.lsa, c.originated, c.present)
		if e != c.effect || (err != nil) != c.fails || d.Prefixes() != c.prefixes {
			t.Errorf("change %d: %s, %v, %d prefixes; want %s, an error: %v, %d", i, e, err, d.Prefixes(), c.effect, c.fails, c.prefixes)
		}
	}
}

// TestFull: the number of prefixes is bounded, and an LSA beyond is ignored as a whole.
func TestFull(t *testing.T) {
	d := ospfapi.NewDatabase()
	words := make([]string, 1024)
	for i := range words {
		words[i] = fmt.Sprintf("10.%d.%d.0/24", i>>8, i&0xff)
	}
	l := lsa(t, "192.0.2.1", ospfv2.ASScope, 1, strings.Join(words, " "))
	for i := range ospfapi.MaxPrefixes / len(words) {
		l.ID = ospfv2.LinkStateID(uint32(i))
		if e, err := d.Update(l, false, true); e != "changed" || err != nil {
			t.Fatalf("LSA %d: %s, %v", i, e, err)
		}
	}
	l.ID++
	if e, _ := d.Update(l, false, true); e != "full" || d.Prefixes() != ospfapi.MaxPrefixes {
		t.Errorf("%s, %d prefixes", e, d.Prefixes())
	}
	l.ID--
	if e, _ := d.Update(l, false, true); e != "changed" || d.Prefixes() != ospfapi.MaxPrefixes {
		t.Errorf("one that replaces another: %s, %d prefixes", e, d.Prefixes())
	}
}

// TestNotAccepted: prefixes that are not accepted take no place from others, however many a router announces.
func TestNotAccepted(t *testing.T) {
	d := ospfapi.NewDatabaseOf(func(p netip.Prefix) bool { return p.Addr().As4()[1] == 1 })
	d.Reach([]netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil)
	for i, c := range []struct {
		words    string
		prefixes int
	}{{"10.2.0.0/16=192.0.2.9 10.3.0.0/16", 0}, {"10.2.0.0/16=192.0.2.9 10.1.0.0/16=192.0.2.9 10.1.0.0/16=192.0.2.8", 1}, {"10.1.0.0/17", 2}} {
		e, err := d.Update(lsa(t, "192.0.2.1", ospfv2.ASScope, i+1, c.words), false, true)
		if e != "changed" || err != nil || d.Prefixes() != c.prefixes {
			t.Errorf("%q: %s, %v, %d prefixes; want %d", c.words, e, err, d.Prefixes(), c.prefixes)
		}
	}
	if got := senders(d); got != "10.1.0.0/16=192.0.2.9" {
		t.Errorf("%q", got)
	}
}

// TestManyRouters: the number of routers that count as reachable is bounded.
func TestManyRouters(t *testing.T) {
	d := ospfapi.NewDatabase()
	for i := range 2 * ospfapi.MaxRouters {
		d.Reach([]netip.Addr{netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})}, nil)
	}
	if d.Routers() != ospfapi.MaxRouters {
		t.Errorf("%d routers", d.Routers())
	}
	for _, empty := range []string{"", "10.1.0.0/16"} {
		if e, err := d.Update(lsa(t, "10.0.0.1", ospfv2.ASScope, 1, empty), false, true); e != "changed" || err != nil || d.LSAs() != len(strings.Fields(empty)) {
			t.Errorf("%q: %s, %v, %d LSAs", empty, e, err, d.LSAs())
		}
	}
}

// FuzzNotice: whatever a server says, the database stays consistent, and its senders are valid and in order.
func FuzzNotice(f *testing.F) {
	update := append(make([]byte, 12), "\x00\x00\x40\x0b\x07\x00\x00\x01\xc0\x00\x02\x01\x80\x00\x00\x01\x7a\x9c\x00\x30"+
		"\x00\x01\x00\x18\x00\x18\x00\x00\xc6\x33\x64\x00\x00\x0b\x00\x04\x20\x00\x00\x00\x00\x05\x00\x04\x0a\x4d\x00\x01"...)
	f.Add(uint8(12), update, uint8(13), update)
	f.Add(uint8(18), []byte("\x00\x01\x00\x00\xc0\x00\x02\x01"), uint8(12), update)
	f.Add(uint8(11), []byte{}, uint8(18), []byte("\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, kind1 uint8, body1 []byte, kind2 uint8, body2 []byte) {
		d := ospfapi.NewDatabase()
		d.Reach([]netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil)
		_ = d.Notice(kind1, body1)
		_ = d.Notice(kind2, body2)
		all := d.Senders(own)
		for i, s := range all {
			if s.Prefix != s.Prefix.Masked() || !s.Proxy.IsValid() || s.Origin != "ospf" || i > 0 && all[i-1].Prefix.Compare(s.Prefix) >= 0 {
				t.Fatalf("%+v", all)
			}
		}
		if len(all) > d.Prefixes() {
			t.Fatalf("%d senders of %d prefixes", len(all), d.Prefixes())
		}
	})
}
