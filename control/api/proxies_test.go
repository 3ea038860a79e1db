package api

import (
	"bufio"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/proxy"
)

// senders are entries with n prefixes.
func senders(t *testing.T, origin string, n int) *proxy.Senders {
	t.Helper()
	var all []proxy.Sender
	for i := range n {
		a := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		all = append(all, proxy.Sender{Prefix: netip.PrefixFrom(a, 32), Proxy: netip.MustParseAddr("192.0.2.9"), Origin: origin})
	}
	s, err := proxy.NewSenders(all...)
	check(t, err)
	return s
}

// TestProxies: the API lists the proxies in force, whatever their origin and number.
func TestProxies(t *testing.T) {
	g := newGate(t, 1)
	g.want(t, http.MethodGet, ProxiesPath, "", 200, "{\"proxies\":[\n\n]}")
	g.Plane.SetProxies(senders(t, "bgp", 2))
	g.want(t, http.MethodGet, ProxiesPath, "", 200, `{"prefix":"10.0.0.1/32","proxy":"192.0.2.9","origin":"bgp"}`)
	g.want(t, http.MethodGet, ProxiesPath+"?limit=1", "", 400, "no parameter")
	const many = 2*proxiesAtOnce + 1
	g.Plane.SetProxies(senders(t, "static", many))
	all, err := Get[ProxiesBody](t.Context(), NewClient(g.path), ProxiesPath)
	if err != nil || len(all.Proxies) != many || all.Proxies[many-1].Prefix != netip.MustParsePrefix("10.0.32.0/32") || all.Proxies[0].Origin != "static" {
		t.Errorf("%d proxies, %v", len(all.Proxies), err)
	}
}

// TestProxiesCutOff: an answer that can't be written to its end is no answer.
func TestProxiesCutOff(t *testing.T) {
	pauses := 0
	err := writeProxies(bufio.NewWriter(full{}), senders(t, "static", proxiesAtOnce+1).Entries(), func() { pauses++ })
	if !errors.Is(err, errFull) || pauses != 2 {
		t.Errorf("error %v after %d pauses", err, pauses)
	}
	var b strings.Builder
	if err := writeProxies(bufio.NewWriter(&b), nil, func() {}); err != nil || b.String() != "{\"proxies\":[\n\n]}\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
