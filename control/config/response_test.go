package config

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
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
		if k.path == "profiles.NAME.actions" {
			words = k.rule.one
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
		var p profileSection
		p.Actions.given, p.Actions.Items = true, []choice{{V: i}}
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
		Ladder: congestion.DefaultLadder, ResumePercent: 50, Resumes: true, Disclose: true, Rate: 1e9, Interval: 100_000, FlowsPerRound: 16,
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
		{"flows_per_round: 3", "", func(r *congestion.Response) { r.FlowsPerRound = 3 }},
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
