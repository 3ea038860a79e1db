//go:build !nobgp

package control

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/config"
)

// speaking are the settings of a speaker that listens nowhere, and whose peer only has to open the session.
func speaking(prefixes ...string) *config.BGP {
	c := &config.BGP{
		AS: 65001, RouterID: netip.MustParseAddr("192.0.2.9"), IPv4: netip.MustParseAddr("127.0.0.1"), Characteristic: 65400,
		NextHopIPv4: netip.MustParseAddr("192.0.2.9"), ProxyIPv4: netip.MustParseAddr("192.0.2.1"), HoldTime: 90 * time.Second, ConnectRetry: 10 * time.Second,
		Peers: []config.BGPPeer{{Address: netip.MustParseAddr("127.0.0.2"), AS: 65002, Port: 179, Passive: true, MaxPrefixes: 10}},
	}
	for _, p := range prefixes {
		c.Announce = append(c.Announce, netip.MustParsePrefix(p))
	}
	return c
}

// use makes the gateway use settings of BGP, nil for none.
func use(g *gateway, c *config.BGP) {
	g.follow(&config.Config{BGP: c})
	settled(g)
}

// settled waits until it is known of each service whether it works, however long that takes.
func settled(g *gateway) {
	for _, one := range g.services.list() {
		select {
		case <-one.tried:
		case <-one.done:
		}
	}
}

// TestSpeakerLifecycle: the speaker runs while the gateway forwards and the configuration has BGP, with the settings of the latest reload.
func TestSpeakerLifecycle(t *testing.T) {
	g, _ := mapped(t, enabledProxies)
	want := func(when string, running bool, announced ...string) {
		t.Helper()
		var prefixes []string
		s := g.BGP()
		for _, p := range s.Announced {
			prefixes = append(prefixes, p.String())
		}
		if s.Running != running || s.Error != "" || !slices.Equal(prefixes, announced) || (len(s.Peers) == 1) != running {
			t.Errorf("%s: %+v, want %t, %v", when, s, running, announced)
		}
	}
	want("without BGP", false)
	use(g, speaking("10.9.0.0/16"))
	want("before the gateway forwards", false)
	g.setForwarding(true)
	settled(g)
	want("while it forwards", true, "10.9.0.0/16")
	use(g, speaking("10.8.0.0/16", "10.9.0.0/16"))
	want("after a reload", true, "10.8.0.0/16", "10.9.0.0/16")
	use(g, nil)
	want("after a reload without BGP", false)
	use(g, speaking("10.7.0.0/16"))
	want("after a reload with BGP", true, "10.7.0.0/16")
	g.setForwarding(false)
	want("after the end", false)
	use(g, speaking())
	want("after a reload at the end", false)
}

// TestSpeakerCannotStart: a speaker that can't start doesn't stop the gateway, the state says why, and a reload can help.
func TestSpeakerCannotStart(t *testing.T) {
	g, _ := mapped(t, enabledProxies)
	g.setForwarding(true)
	settled(g)
	wrong := speaking()
	wrong.IPv4, wrong.Port = netip.MustParseAddr("192.0.2.9"), 1179 // not an address of this machine
	use(g, wrong)
	if s := g.BGP(); s.Running || !strings.HasPrefix(s.Error, "BGP: ") {
		t.Errorf("%+v", s)
	}
	use(g, speaking())
	if s := g.BGP(); !s.Running || s.Error != "" {
		t.Errorf("%+v", s)
	}
	use(g, wrong)
	if s := g.BGP(); s.Running || s.Error == "" {
		t.Errorf("after a reload that can't be applied: %+v", s)
	}
	g.setForwarding(false)
}

// TestLearnedByBGP: what the speaker learns is in force at once.
func TestLearnedByBGP(t *testing.T) {
	g, _ := mapped(t, enabledProxies)
	g.learnBGP(behindProxy("10.2.0.0/16 192.0.2.7"))
	if got := g.inForce(); !slices.Contains(got, "10.2.0.0/16 192.0.2.7 bgp") {
		t.Errorf("%v", got)
	}
	g.learnBGP(nil)
	if got := g.inForce(); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

// TestReloadWithoutPassword: a reload whose password can't be read changes nothing.
func TestReloadWithoutPassword(t *testing.T) {
	g, with := mapped(t, enabledProxies)
	file := filepath.Join(t.TempDir(), "password")
	next := with(strings.Replace(enabledProxies, "enabled: true,", "enabled: true, bgp: {as: 65001, router_id: 192.0.2.9, ipv4: 192.0.2.9, "+
		"peers: [{address: 192.0.2.10, as: 65002, password_file: "+file+"}]},", 1))
	stop, err := g.servers.start(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	g.options.Load = func() (*config.Config, error) { return next, nil }
	before := g.running.Load()
	if _, err := g.Reload(api.ReloadRequest{}); err == nil || !strings.Contains(err.Error(), "proxy.bgp.peers[0].password_file") || g.running.Load() != before {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := g.Reload(api.ReloadRequest{}); err != nil || g.running.Load() != next || !slices.Contains(r.Changes, "proxy.bgp.peers") {
		t.Errorf("%v, %v", r, err)
	}
}
