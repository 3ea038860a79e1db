package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestFill(t *testing.T) {
	for _, c := range []struct {
		name          string
		values, peers []float64
		less          bool
		wanted        float64
		value, peer   float64
		ratio         float64
		verdict, says string
	}{
		{"more is better", []float64{9, 10, 11}, []float64{5, 5, 5}, false, 2, 10, 5, 2, "met", ""},
		{"less is better", []float64{10, 10, 10}, []float64{5, 5, 5}, true, 0.51, 10, 5, 0.5, "missed", ""},
		{"both drift alike", []float64{10, 20, 40}, []float64{5, 10, 20}, false, 0, 20, 10, 2, "", ""},
		{"the ratio is that of pairs", []float64{20, 20, 90}, []float64{10, 10, 45}, false, 0, 20, 10, 2, "", ""},
		{"the slices disagree", []float64{10, 20, 40}, []float64{10, 10, 10}, false, 1, 20, 10, 2, "met", ""},
		{"nothing was measured", nil, nil, false, 1, 0, 0, 0, "no figure", "failed: 0 slices"},
		{"a slice is missing", []float64{1, 2}, []float64{1}, false, 1, 0, 0, 0, "no figure", "failed: 2 slices against 1"},
		{"nothing by nothing", []float64{0, 0}, []float64{0, 0}, false, 1, 0, 0, 0, "no figure", "failed: the median of 2 slices' ratios is "},
		{"something by nothing", []float64{1, 1}, []float64{0, 0}, false, 1, 0, 0, 0, "no figure", "failed: the median of 2 slices' ratios is "},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := row{less: c.less, Wanted: c.wanted}
			r.fill(c.values, c.peers, 0.5)
			if noise := c.name == "the slices disagree"; r.Noisy != noise || r.Runs != len(c.values) || r.verdict() != c.verdict || !strings.HasPrefix(r.Error, c.says) {
				t.Errorf("%d runs, verdict %q, error %q", r.Runs, r.verdict(), r.Error)
			}
			if c.says != "" {
				if r.Value != nil || r.PeerValue != nil || r.Ratio != nil {
					t.Error("there is a figure all the same")
				}
				return
			}
			if *r.RatioLow > *r.Ratio || *r.Ratio > *r.RatioHigh {
				t.Errorf("the ratio %v isn't between %v and %v", *r.Ratio, *r.RatioLow, *r.RatioHigh)
			}
			if *r.Value != c.value || *r.PeerValue != c.peer || *r.Ratio != c.ratio {
				t.Errorf("%v against %v: %v; expected %v, %v, %v", *r.Value, *r.PeerValue, *r.Ratio, c.value, c.peer, c.ratio)
			}
		})
	}
}

// TestNames: the names that others rely on are there, and none twice.
func TestNames(t *testing.T) {
	var names []string
	for _, g := range groups() {
		for _, r := range g.rows {
			if slices.Contains(names, r.Name) {
				t.Errorf("two rows are called %s", r.Name)
			}
			names = append(names, r.Name)
			if r.Unit == "" || r.Peer == "" || r.What == "" {
				t.Errorf("%+v lacks something", r)
			}
		}
	}
	for _, name := range []string{"fwd64_1k_csum", "nic_mixed_cold_csum", "nic64_1m_cold_5tswap", "nic1k_cold_io", "lookup_rte_hash", "notify_mpps", "reaction_p99_us",
		"latency_p99_us", "flow_octets"} {
		if !slices.Contains(names, name) {
			t.Errorf("no row is called %s", name)
		}
	}
	for _, s := range sizes {
		if !slices.Contains(names, s.group+besideCsum) {
			t.Errorf("no row is called %s", s.group+besideCsum)
		}
	}
	for _, n := range growth {
		if !slices.Contains(names, "cost_"+n.name+besideCsum) {
			t.Errorf("the cost curve has no row for %d flows", n.flows)
		}
	}
}

// TestGoals: the ratios that the rows must reach.
func TestGoals(t *testing.T) {
	want := map[string]float64{
		"nic_mixed_cold_csum": 1, "nic_mixed_cold_5tswap": 0.9, "nic64_1k_cold_csum": 1, "nic64_1k_cold_5tswap": 0.9, "nic64v6_1k_cold_csum": 1,
		"nic64v6_1k_cold_5tswap": 0.9, "nic64_1m_cold_csum": 0.85,
		"fwd_mixed_csum": 0.89, "fwd64_1k_csum": 0.89, "fwd64v6_1k_csum": 0.79, "ecn64_1k_csum": 0.8, "fwd1k_csum": 0.92, "nic1k_cold_csum": 1, "nic_imix_cold_csum": 1,
		"nic64v6_1m_cold_csum": 0.85, "lookup_1k_rte_hash": 1, "lookup_1k_rte_hash_lf": 1, "insert_1k_rte_hash": 1, "lookup_rte_hash": 1.1,
		"lookup_rte_hash_lf": 1, "insert_rte_hash": 1, "notify_mpps": 1, "notify_fast_cnp_mpps": 1, "notify_icmpv6_mpps": 1,
		"reaction_p99_us": 1, "latency_p99_us": 1, "workers_2": 0.98, "flow_octets": 1, "flow_octets_10m": 1, "cnps_mpps": 1,
	}
	for _, g := range groups() {
		for _, r := range g.rows {
			if r.Wanted != want[r.Name] {
				t.Errorf("%s: wanted %v, expected %v", r.Name, r.Wanted, want[r.Name])
			}
		}
	}
}

// TestJSON: the keys that others rely on are there also where there is no figure.
func TestJSON(t *testing.T) {
	r := row{Name: "a", Unit: "Mpps", Peer: "p"}
	text, err := json.Marshal(result{Rows: []row{r}})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"rows":[{`, `"name":"a"`, `"value":null`, `"unit":"Mpps"`, `"peer":"p"`, `"peer_value":null`, `"ratio":null`, `"ratio_low":null`, `"ratio_high":null`, `"runs":0`, `"machine":{`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("no %s in %s", part, text)
		}
	}
}

// TestVerdict: what makes the exit status.
func TestVerdict(t *testing.T) {
	good, bad, noisy := row{Wanted: 1}, row{Wanted: 2}, row{}
	noisy.fill([]float64{1, 2, 3}, []float64{1, 1, 1}, 0)
	good.fill([]float64{1}, []float64{1}, 1)
	bad.fill([]float64{1}, []float64{1}, 1)
	for _, c := range []struct {
		name   string
		row    row
		check  bool
		failed bool
	}{
		{"met", good, true, false}, {"missed", bad, false, false}, {"missed, and it matters", bad, true, true},
		{"noisy", noisy, false, false}, {"failed", row{Error: "failed: x"}, false, true}, {"left out", row{Error: errLeftOut.Error() + ": too long"}, true, false},
	} {
		b := bench{result: result{Rows: []row{c.row}}}
		if err := b.verdict(c.check); (err != nil) != c.failed {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
