package config

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/internal/prefix"
)

// enforcing is a configuration whose WAN port slows down the flows of some senders.
const enforcing = `gateway: {name: gw, ipv4: 192.0.2.1}
ports:
  - {name: fabric, device: a, role: fabric, peer: wan, rate: 100Gbps}
  - {name: wan, device: b, role: wan, peer: fabric, rate: 100Gbps, rtt: 10ms, pacing: {enabled: true, senders: [198.51.100.0/24]}}
domain: {members: [198.51.100.0/24], notification_sources: [192.0.2.0/24]}
`

func parseText(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("gw.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPacingDefaults: those of a WAN port are in terms of its RTT; without one, of 1 ms. With the control law, reductions may follow each other as
// soon as the law's notifications.
func TestPacingDefaults(t *testing.T) {
	for _, c := range []struct {
		rtt                      string
		interval, hold, recovery time.Duration
		more                     string
	}{
		{"10ms", 60 * time.Microsecond, 20 * time.Millisecond, time.Second, ""},
		{"10ms", 10 * time.Millisecond, 20 * time.Millisecond, time.Second, "profiles: {default: {mode: thresholds}}\n"},
		{"0s", time.Millisecond, 2 * time.Millisecond, 100 * time.Millisecond, "profiles: {default: {mode: thresholds}}\n"},
		{"200ms", 60 * time.Microsecond, 400 * time.Millisecond, 10 * time.Second, ""},
	} {
		p := parseText(t, strings.Replace(enforcing, "rtt: 10ms", "rtt: "+c.rtt, 1)+c.more).Ports[1]
		if got := p.Policy.Pacing; got.Interval != int64(c.interval) || got.Hold != int64(c.hold) || got.Recovery != int64(c.recovery) || got.Keep != 50 || got.Floor != 100e6 {
			t.Errorf("an RTT of %s: %+v, expected %v and %v, half of the rate and a thousandth", c.rtt, got, c.hold, c.recovery)
		}
		if want := prefix.Set([]netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}); !reflect.DeepEqual(p.Policy.Enforce, want) || p.Paced != 64e6 {
			t.Errorf("the senders are %v, with %d bytes", p.Policy.Enforce, p.Paced)
		}
	}
}

// TestPacingReload: a reload changes the senders and what happens to them; to switch pacing on takes a restart, as it needs memory.
func TestPacingReload(t *testing.T) {
	started := parseText(t, enforcing)
	for _, c := range []struct {
		old, new string
		keys     []string
	}{
		{"senders: [198.51.100.0/24]", "senders: [198.51.100.0/24, 203.0.113.0/24]", []string{"ports[1].pacing.senders"}},
		{"senders: [198.51.100.0/24]", "hold: 3ms, keep_percent: 60, senders: [198.51.100.0/25]", []string{"ports[1].pacing.senders[0]", "ports[1].pacing.keep_percent", "ports[1].pacing.hold"}},
		{"enabled: true", "enabled: false", []string{"ports[1].pacing.enabled"}},
	} {
		now := parseText(t, strings.Replace(enforcing, c.old, c.new, 1))
		if err := now.CheckReload(started); err != nil {
			t.Errorf("%s: %v", c.new, err)
		}
		if got := now.Changes(started); !slices.Equal(got, c.keys) {
			t.Errorf("%s: changes %q, expected %q", c.new, got, c.keys)
		}
	}
	off := parseText(t, strings.Replace(enforcing, "enabled: true", "enabled: false", 1))
	if err := started.CheckReload(off); err == nil || !strings.Contains(err.Error(), "gw.yaml:4:97: ports[1].pacing.enabled: pacing was off at the start") {
		t.Errorf("pacing turned on: %v", err)
	}
}
