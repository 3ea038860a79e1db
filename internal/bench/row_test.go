package main

import (
	"encoding/json"
	"errors"
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
		{"the runs disagree", []float64{10, 20, 40}, []float64{10, 10, 10}, false, 1, 0, 0, 0, "no figure", "noisy: "},
		{"nothing was measured", nil, nil, false, 1, 0, 0, 0, "no figure", "failed: 0 runs"},
		{"a run is missing", []float64{1, 2}, []float64{1}, false, 1, 0, 0, 0, "no figure", "failed: 2 runs against 1"},
		{"divided by nothing", []float64{0, 0}, []float64{0, 0}, false, 1, 0, 0, 0, "no figure", "noisy: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := row{less: c.less, Wanted: c.wanted}
			r.fill(c.values, c.peers, 0.2)
			if r.Runs != len(c.values) || r.verdict() != c.verdict || !strings.HasPrefix(r.Error, c.says) {
				t.Errorf("%d runs, verdict %q, error %q", r.Runs, r.verdict(), r.Error)
			}
			if c.says != "" {
				if r.Value != nil || r.PeerValue != nil || r.Ratio != nil {
					t.Error("there is a figure all the same")
				}
				return
			}
			if *r.Value != c.value || *r.PeerValue != c.peer || *r.Ratio != c.ratio {
				t.Errorf("%v against %v: %v; expected %v, %v, %v", *r.Value, *r.PeerValue, *r.Ratio, c.value, c.peer, c.ratio)
			}
		})
	}
}

func TestQuantile(t *testing.T) {
	v := []float64{4, 1, 3, 2}
	for q, want := range map[float64]float64{0: 1, 0.5: 2.5, 0.75: 3.25, 1: 4} {
		if got := quantile(v, q); got != want {
			t.Errorf("quantile %v is %v, expected %v", q, got, want)
		}
	}
	if quantile([]float64{7}, 0.25) != 7 {
		t.Error("one value is not its own quantile")
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
	for _, name := range []string{"fwd64_1k_csum", "fwd64_1k_5tswap", "fwd64_1m_csum", "fwd1k_io", "lookup_rte_hash", "notify_mpps", "reaction_p99_us",
		"latency_p99_us", "flow_octets"} {
		if !slices.Contains(names, name) {
			t.Errorf("no row is called %s", name)
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
	for _, part := range []string{`"rows":[{`, `"name":"a"`, `"value":null`, `"unit":"Mpps"`, `"peer":"p"`, `"peer_value":null`, `"ratio":null`, `"runs":0`, `"machine":{`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("no %s in %s", part, text)
		}
	}
}

// TestVerdict: what makes the exit status.
func TestVerdict(t *testing.T) {
	good, bad := row{Wanted: 1}, row{Wanted: 2}
	good.fill([]float64{1}, []float64{1}, 1)
	bad.fill([]float64{1}, []float64{1}, 1)
	for _, c := range []struct {
		name   string
		row    row
		check  bool
		failed bool
	}{
		{"met", good, true, false}, {"missed", bad, false, false}, {"missed, and it matters", bad, true, true},
		{"noisy", row{Error: "noisy: x"}, false, true}, {"left out", row{Error: errLeftOut.Error() + ": too long"}, true, false},
	} {
		b := bench{result: result{Rows: []row{c.row}}}
		if err := b.verdict(c.check); (err != nil) != c.failed {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// scripted is a side whose runs are given.
type scripted struct {
	rates []float64
	order *[]int
	me    int
}

// TestSides: each side runs as often as the others, and its rates stay its own.
func TestSides(t *testing.T) {
	b := bench{runs: 4}
	var order []int
	sides := []side{&scripted{rates: []float64{1, 1, 1, 1}, order: &order}, &scripted{rates: []float64{2, 2, 2, 2}, order: &order, me: 1}}
	rates, err := b.sides(sides...)
	if err != nil || !slices.Equal(rates[0], []float64{1, 1, 1, 1}) || !slices.Equal(rates[1], []float64{2, 2, 2, 2}) {
		t.Errorf("%v, %v", rates, err)
	}
	if want := []int{0, 1, 1, 0, 0, 1, 1, 0}; !slices.Equal(order, want) {
		t.Errorf("the order is %v, expected %v", order, want)
	}
	if _, err := b.sides(sides[0]); !errors.Is(err, errScript) {
		t.Errorf("a run that fails: %v", err)
	}
}
