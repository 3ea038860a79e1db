package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/internal/prefix"
)

// responseOf is the response of the WAN port of a configuration with a profile, and with more keys in notifications.
func responseOf(t *testing.T, profile, notifications string) congestion.Response {
	t.Helper()
	cfg, err := Parse("f", fmt.Appendf(nil, "%sprofiles: {default: {mode: thresholds, %s}}\nnotifications: {%s}\n", head, profile, notifications))
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Ports[1].Policy.Response
}

// TestAllowedActions: each word of the schema allows the action of its name, and without any all are allowed.
func TestAllowedActions(t *testing.T) {
	var words []string
	for _, k := range allKeys() {
		if k.Path == "profiles.NAME.actions" {
			words = k.Words
		}
	}
	named := map[string]int{"mark": actionMark}
	for a, n := range map[congestion.Action]int{
		congestion.Notify: actionNotify, congestion.RateReduce: actionRateReduce, congestion.Pause: actionPause, congestion.Resume: actionResume,
	} {
		named[a.String()] = n
	}
	if len(words) != len(named) {
		t.Fatalf("the schema has %v, the constants are %v", words, named)
	}
	for i, word := range words {
		p := profileSection{Actions: []int{i}}
		want := [actionResume + 1]bool{}
		want[named[word]] = true
		if got := allowedActions(&p); got != want {
			t.Errorf("%s allows %v, want %v", word, got, want)
		}
	}
	if got := allowedActions(&profileSection{}); got != ([actionResume + 1]bool{true, true, true, true, true}) {
		t.Errorf("without the key: %v", got)
	}
}

func TestLadder(t *testing.T) {
	const notify, reduce, pause = congestion.Notify, congestion.RateReduce, congestion.Pause
	for _, c := range []struct {
		name    string
		percent uint16
		actions []int
		want    []congestion.Rung
	}{
		{"all, 30 percent", 30, []int{actionNotify, actionRateReduce, actionPause}, congestion.DefaultLadder},
		{"all, 60 percent: at most 100", 60, []int{actionNotify, actionRateReduce, actionPause},
			[]congestion.Rung{{Action: notify}, {Level: 90, Action: reduce, Percent: 30}, {Level: 177, Action: reduce, Percent: 60}, {Level: 210, Action: reduce, Percent: 100}, {Level: 240, Action: pause}}},
		{"all, 1 percent: at least 1", 1, []int{actionNotify, actionRateReduce, actionPause},
			[]congestion.Rung{{Action: notify}, {Level: 90, Action: reduce, Percent: 1}, {Level: 177, Action: reduce, Percent: 1}, {Level: 210, Action: reduce, Percent: 1}, {Level: 240, Action: pause}}},
		{"all, 100 percent", 100, []int{actionNotify, actionRateReduce, actionPause},
			[]congestion.Rung{{Action: notify}, {Level: 90, Action: reduce, Percent: 50}, {Level: 177, Action: reduce, Percent: 100}, {Level: 210, Action: reduce, Percent: 100}, {Level: 240, Action: pause}}},
		{"only notify", 30, []int{actionNotify}, []congestion.Rung{{Action: notify}}},
		{"only rate-reduce", 30, []int{actionRateReduce}, []congestion.Rung{{Action: reduce, Percent: 15}, {Level: 177, Action: reduce, Percent: 30}, {Level: 210, Action: reduce, Percent: 50}}},
		{"only pause", 30, []int{actionPause}, []congestion.Rung{{Action: pause}}},
		{"notify and pause", 30, []int{actionNotify, actionPause}, []congestion.Rung{{Action: notify}, {Level: 240, Action: pause}}},
		{"nothing that a sender is asked for", 30, []int{actionMark, actionResume}, []congestion.Rung{{Action: notify}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := slices.Clone(congestion.DefaultLadder)
			var allowed [actionResume + 1]bool
			for _, a := range c.actions {
				allowed[a] = true
			}
			if got := ladder(c.percent, allowed); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
			if !slices.Equal(congestion.DefaultLadder, before) {
				t.Errorf("the default policy table became %v", congestion.DefaultLadder)
			}
		})
	}
}

// TestResponse: what each key of a profile and of notifications makes of the response.
func TestResponse(t *testing.T) {
	base := responseOf(t, "", "")
	if want := (congestion.Response{
		Triggers: congestion.Triggers{Thresholds: congestion.Thresholds{KMin: 32_000, KMax: 64_000}, Depth: true}, Marks: true,
		Ladder: congestion.DefaultLadder, ResumePercent: 50, Resumes: true, Disclose: true, Rate: 1e9, Interval: 100_000,
	}); !reflect.DeepEqual(base, want) {
		t.Fatalf("by default %+v, want %+v", base, want)
	}
	for _, c := range []struct {
		profile, notifications string
		change                 func(r *congestion.Response)
	}{
		{"depth_trigger: false", "", func(r *congestion.Response) { r.Depth = false }},
		{"v_ecn: 12.5", "", func(r *congestion.Response) { r.Marking = 125_000 }},
		{"v_ecn: 0.0001", "", func(r *congestion.Response) { r.Marking = 1 }},
		{"v_ecn: 100", "", func(r *congestion.Response) { r.Marking = 1_000_000 }},
		{"v_growth: 10Gbps", "", func(r *congestion.Response) { r.Growth = 1_250_000 }},
		{"v_growth: 8kbps", "", func(r *congestion.Response) { r.Growth = 1 }},
		{"interval: 2ms", "", func(r *congestion.Response) { r.Interval = 2_000_000 }},
		{"ce_on_arrival: true", "", func(r *congestion.Response) { r.OnArrival = true }},
		{"ce_on_arrival: true, clear_ce: true", "", func(r *congestion.Response) { r.OnArrival, r.ClearCE = true, true }},
		{"policy: [{level: 0, action: pause}, {level: 9, action: rate-reduce, percent: 7}]", "", func(r *congestion.Response) {
			r.Ladder = []congestion.Rung{{Action: congestion.Pause}, {Level: 9, Action: congestion.RateReduce, Percent: 7}}
		}},
		{"", "long_haul_cnp: {metric: trigger}", func(r *congestion.Response) { r.Metric = congestion.MetricUnspecified }},
		{"", "long_haul_cnp: {metric: depth}", func(r *congestion.Response) { r.Metric = congestion.MetricDepth }},
		{"", "long_haul_cnp: {metric: growth}", func(r *congestion.Response) { r.Metric = congestion.MetricGrowth }},
		{"", "long_haul_cnp: {metric: marking}", func(r *congestion.Response) { r.Metric = congestion.MetricMarking }},
		{"", "long_haul_cnp: {metric: rtt}", func(r *congestion.Response) { r.Metric = congestion.MetricRTT }},
		{"resume_percent: 0", "", func(r *congestion.Response) { r.ResumePercent = 0 }},
		{"", "long_haul_cnp: {disclose_metrics: false}", func(r *congestion.Response) { r.Disclose = false }},
		{"", "long_haul_cnp: {reduce_percent: 60}", func(r *congestion.Response) {
			r.Ladder = slices.Clone(r.Ladder)
			r.Ladder[1].Percent, r.Ladder[2].Percent, r.Ladder[3].Percent = 30, 60, 100
		}},
		{"actions: [mark], v_ecn: 5, v_growth: 1Gbps", "", func(r *congestion.Response) { // nothing triggers the second level
			r.Depth, r.Resumes, r.Ladder = false, false, []congestion.Rung{{}}
		}},
		{"actions: [mark, resume], v_ecn: 5", "", func(r *congestion.Response) { r.Depth, r.Ladder = false, []congestion.Rung{{}} }},
		{"actions: [pause], v_ecn: 5", "", func(r *congestion.Response) {
			r.Marks, r.Resumes, r.Marking, r.Ladder = false, false, 50_000, []congestion.Rung{{Action: congestion.Pause}}
		}},
	} {
		t.Run(c.profile+c.notifications, func(t *testing.T) {
			want := base
			c.change(&want)
			if got := responseOf(t, c.profile, c.notifications); !reflect.DeepEqual(got, want) {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}

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
		{"senders: [198.51.100.0/24]", "recovery: 3ms, senders: [198.51.100.0/25]", []string{"ports[1].pacing.senders[0]", "ports[1].pacing.recovery"}},
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

// TestDefaultBaseHoldsAFrame: K_base's default holds a frame of the largest MTU there is, with two VLAN tags, as draft-tian 5.3.2 wants
// it, and so no port is warned about.
func TestDefaultBaseHoldsAFrame(t *testing.T) {
	const text = `gateway: {name: gw1}
ports:
  - {name: lan0, device: d0, role: fabric, peer: wan0, rate: 1Gbps, mtu: 16000}
  - {name: wan0, device: d1, role: wan, peer: lan0, rate: 1Gbps, mtu: 16000}
profiles: {default: {mode: thresholds}}
`
	cfg, err := Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	const frame = 14 + 2*4 + 16000
	for _, p := range cfg.Ports {
		if p.Policy.KMax < frame {
			t.Errorf("%s: K_max without an RTT is %d, less than a frame of %d", p.Name, p.Policy.KMax, frame)
		}
	}
	if len(cfg.Warnings) != 0 {
		t.Errorf("warned: %v", cfg.Warnings)
	}
	if _, err := Parse("f", []byte(strings.ReplaceAll(text, "16000", "16001"))); err == nil || !strings.Contains(err.Error(), "expected 576 to 16000") {
		t.Errorf("a larger MTU: %v", err)
	}
}
