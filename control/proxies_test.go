package control

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/assemble"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/proxy"
)

// mapped is a gateway that doesn't run, with a configuration in force that has these lines of proxy.
func mapped(t *testing.T, lines string) (g *gateway, with func(lines string) *config.Config) {
	t.Helper()
	c, b := newBench(t, []int{3}, "backoff", "1Gbps", 0)
	with = func(lines string) *config.Config {
		t.Helper()
		next, err := config.Parse("gw.yaml", []byte(string(c.File.Text)+lines))
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	g = newGateway(c, nil, Options{Log: zerolog.Nop()})
	var err error
	if g.plane, err = assemble.Dataplane(c, assemble.Options{Backends: []burst.Backend{b.Backend(0)}}); err != nil {
		t.Fatal(err)
	}
	if err := g.apply(with(lines)); err != nil {
		t.Fatal(err)
	}
	return g, with
}

// inForce are the entries that workers use, each as "prefix proxy origin".
func (g *gateway) inForce() (all []string) {
	for _, e := range g.plane.Policy().Proxies.Entries() {
		all = append(all, fmt.Sprint(e.Prefix, " ", e.Proxy, " ", e.Origin))
	}
	return all
}

func behindProxy(entries ...string) (all []proxy.Sender) {
	for _, e := range entries {
		prefix, to, _ := strings.Cut(e, " ")
		all = append(all, proxy.Sender{Prefix: netip.MustParsePrefix(prefix), Proxy: netip.MustParseAddr(to)})
	}
	return all
}

const (
	enabledProxies  = "proxy: {enabled: true, senders: [{prefix: 10.1.0.0/16, proxy: 10.1.0.1}]}\n"
	disabledProxies = "proxy: {senders: [{prefix: 10.1.0.0/16, proxy: 10.1.0.1}]}\n"
)

// TestLearnedProxies: what protocols learn is merged with the configuration, across reloads, as long as proxies are enabled.
func TestLearnedProxies(t *testing.T) {
	g, with := mapped(t, enabledProxies)
	learn := func(origin string, entries ...string) {
		t.Helper()
		if err := g.proxies.set(origin, behindProxy(entries...)); err != nil {
			t.Fatal(err)
		}
	}
	reload := func(lines string) {
		t.Helper()
		if err := g.apply(with(lines)); err != nil {
			t.Fatal(err)
		}
	}
	want := func(entries ...string) {
		t.Helper()
		if got := g.inForce(); !slices.Equal(got, entries) {
			t.Errorf("in force: %q, want %q", got, entries)
		}
	}
	static := "10.1.0.0/16 10.1.0.1 static"
	want(static)
	learn("bgp", "10.1.0.0/16 192.0.2.9", "10.2.0.0/16 192.0.2.9")
	want(static, "10.2.0.0/16 192.0.2.9 bgp")
	learn("ospf", "10.2.0.0/16 192.0.2.8", "10.3.0.0/16 192.0.2.8")
	want(static, "10.2.0.0/16 192.0.2.9 bgp", "10.3.0.0/16 192.0.2.8 ospf")

	for _, wrong := range [][]proxy.Sender{behindProxy("10.5.0.1/16 192.0.2.9"), behindProxy("10.5.0.0/16 192.0.2.9", "10.5.0.0/16 192.0.2.8"), {{}}} {
		if err := g.proxies.set("bgp", wrong); err == nil {
			t.Errorf("%v was taken", wrong)
		}
	}
	for _, origin := range []string{"", "static"} {
		if err := g.proxies.set(origin, nil); err == nil {
			t.Errorf("the origin %q was taken", origin)
		}
	}
	want(static, "10.2.0.0/16 192.0.2.9 bgp", "10.3.0.0/16 192.0.2.8 ospf")

	reload("proxy: {enabled: true, senders: [{prefix: 10.3.0.0/16, proxy: 10.1.0.2}]}\n")
	want("10.1.0.0/16 192.0.2.9 bgp", "10.2.0.0/16 192.0.2.9 bgp", "10.3.0.0/16 10.1.0.2 static")
	reload(disabledProxies)
	want()
	if g.plane.Policy().Proxies != nil {
		t.Error("disabled, and workers have a map")
	}
	learn("bgp", "10.4.0.0/16 192.0.2.9")
	want()
	reload(enabledProxies)
	want(static, "10.2.0.0/16 192.0.2.8 ospf", "10.3.0.0/16 192.0.2.8 ospf", "10.4.0.0/16 192.0.2.9 bgp")
	learn("bgp")
	learn("ospf")
	want(static)
}

// TestTooManyProxies: beyond the bound the map before stays in force, whether a protocol or a reload adds the last one.
func TestTooManyProxies(t *testing.T) {
	g, with := mapped(t, enabledProxies)
	all := make([]proxy.Sender, proxy.MaxSenders)
	for i := range all {
		a := netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)})
		all[i] = proxy.Sender{Prefix: netip.PrefixFrom(a, 32), Proxy: netip.MustParseAddr("192.0.2.9")}
	}
	if err := g.proxies.set("bgp", all[1:]); err != nil {
		t.Error(err)
	}
	if err := g.proxies.set("ospf", all[:1]); err == nil || !strings.Contains(err.Error(), "ospf: ") || !strings.Contains(err.Error(), "expected at most") {
		t.Errorf("error %v", err)
	}
	before := g.running.Load()
	err := g.apply(with("proxy: {enabled: true, senders: [{prefix: 10.1.0.0/16, proxy: 10.1.0.1}, {prefix: 10.2.0.0/16, proxy: 10.1.0.1}]}\n"))
	if err == nil || !strings.Contains(err.Error(), "gw.yaml: proxy.senders: ") || g.running.Load() != before {
		t.Errorf("error %v, and the configuration changed: %v", err, g.running.Load() != before)
	}
	if n := g.plane.Policy().Proxies.Len(); n != proxy.MaxSenders {
		t.Errorf("%d entries in force, want those before", n)
	}
}

// TestLearnWhileReloading: neither reloads, nor measurements, nor another protocol undo what one has learned.
func TestLearnWhileReloading(t *testing.T) {
	g, with := mapped(t, enabledProxies)
	configs := []*config.Config{with(enabledProxies), with(disabledProxies), with("proxy: {enabled: true, senders: [{prefix: 10.9.0.0/16, proxy: 10.1.0.2}]}\n")}
	const times = 200
	var all sync.WaitGroup
	for _, origin := range []string{"bgp", "ospf"} {
		all.Go(func() {
			for i := range times {
				if err := g.proxies.set(origin, behindProxy(fmt.Sprintf("10.%d.0.0/16 192.0.2.9", 20+i%10))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		for i := range times + 1 { // the last one is the first
			if err := g.apply(configs[(times-i)%3]); err != nil {
				t.Error(err)
			}
		}
	})
	all.Go(func() {
		for i := range times {
			g.adapting.Lock()
			g.plane.Adapt(int64(i) * 50e6)
			g.adapting.Unlock()
		}
	})
	all.Wait()
	if got, want := g.inForce(), []string{"10.1.0.0/16 10.1.0.1 static", "10.29.0.0/16 192.0.2.9 bgp"}; !slices.Equal(got, want) {
		t.Errorf("in force: %q, want %q", got, want)
	}
}
