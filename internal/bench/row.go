package main

import (
	"fmt"
	"math"
	"slices"
)

// row is one line of the result. Value and PeerValue are medians of alternating runs; Ratio says how cnpgate compares, above 1 is
// better than the peer: Value/PeerValue, or its inverse where less is better. A row that could not be measured, or whose runs
// disagree, has an Error and no figure.
type row struct {
	Name      string   `json:"name"`
	What      string   `json:"what"`
	Value     *float64 `json:"value"`
	Unit      string   `json:"unit"`
	Peer      string   `json:"peer"`
	PeerValue *float64 `json:"peer_value"`
	Ratio     *float64 `json:"ratio"`
	Runs      int      `json:"runs"`
	Spread    *float64 `json:"spread,omitempty"` // of the runs' ratios: the middle half, over their median
	Wanted    float64  `json:"wanted,omitempty"` // least ratio
	Error     string   `json:"error,omitempty"`

	less bool // is better
}

// result is the output of scripts/bench --json.
type result struct {
	Rows    []row   `json:"rows"`
	Machine machine `json:"machine"`
}

// fill sets a row's figures from the values of alternating runs, or the reason for none.
func (r *row) fill(values, peers []float64, noise float64) {
	r.Runs = len(values)
	if len(values) == 0 || len(values) != len(peers) {
		r.Error = fmt.Sprintf("failed: %d runs against %d of the peer", len(values), len(peers))
		return
	}
	ratios := make([]float64, len(values))
	for i := range values {
		ratios[i] = r.compare(values[i], peers[i])
	}
	spread := (quantile(ratios, 0.75) - quantile(ratios, 0.25)) / median(ratios)
	r.Spread = number3(spread)
	if !(spread <= noise) {
		r.Error = fmt.Sprintf("noisy: the middle half of %d runs spreads over %.0f %% of their median, more than %.0f %%", len(values), 100*spread, 100*noise)
		return
	}
	value, peer := median(values), median(peers)
	r.Value, r.PeerValue, r.Ratio = number3(value), number3(peer), number3(r.compare(value, peer))
}

func (r *row) compare(value, peer float64) float64 {
	if r.less {
		return peer / value
	}
	return value / peer
}

// number3 rounds to four digits.
func number3(v float64) *float64 {
	if v != 0 && !math.IsNaN(v) && !math.IsInf(v, 0) {
		scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(v))))
		v = math.Round(v*scale) / scale
	}
	return &v
}

// verdict returns whether the row meets its goal.
func (r *row) verdict() string {
	switch {
	case r.Error != "":
		return "no figure"
	case r.Wanted == 0:
		return ""
	case *r.Ratio >= r.Wanted:
		return "met"
	}
	return "missed"
}

func median(v []float64) float64 { return quantile(v, 0.5) }

// quantile interpolates between the values next to it.
func quantile(v []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(v))
	at := q * float64(len(s)-1)
	low := int(at)
	high := min(low+1, len(s)-1)
	return s[low] + (s[high]-s[low])*(at-float64(low))
}
