package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestResume: a run goes on with the rows that have no figure, and replaces those that are measured again, in the order of the groups.
func TestResume(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.json")
	first := result{Machine: machine{CPU: "Example 9000", Load: "0.1"}}
	if err := first.load(path); err != nil || len(first.Rows) != 0 {
		t.Fatalf("%v; without a file there are %d rows", err, len(first.Rows))
	}
	done := row{Name: "fwd64_1k_csum", Wanted: 1}
	done.fill([]float64{2}, []float64{1}, 1)
	first.put([]row{done, {Name: "nic_mixed_cold_csum", Error: "failed: x"}})
	if err := first.save(path); err != nil {
		t.Fatal(err)
	}
	second := result{Machine: machine{CPU: "Example 9000", Load: "7"}}
	if err := second.load(path); err != nil {
		t.Fatal(err)
	}
	if !second.has("fwd64_1k_csum") || second.has("nic_mixed_cold_csum") || second.has("fwd1k_csum") || second.Machine.Load != "0.1" {
		t.Errorf("resumed: %+v", second)
	}
	again := row{Name: "nic_mixed_cold_csum"}
	again.fill([]float64{3}, []float64{1}, 1)
	second.put([]row{again})
	if len(second.Rows) != 2 || second.Rows[0].Name != again.Name || *second.Rows[0].Value != 3 || *second.Rows[1].Ratio != 2 {
		t.Errorf("rows %+v", second.Rows)
	}
	for name, r := range map[string]result{"another machine": {Machine: machine{CPU: "Example 1"}}, "other settings": {Machine: machine{CPU: "Example 9000", Burst: 1}}} {
		if err := r.load(path); err == nil || !strings.Contains(err.Error(), "remove it") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.WriteFile(path, []byte("no rows"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := second.load(path); err == nil {
		t.Error("what isn't JSON is taken as rows")
	}
}

// TestLimit: a group takes the slices that it should in its time, and the least number when that is over.
func TestLimit(t *testing.T) {
	for name, c := range map[string]struct {
		until time.Time
		want  int
	}{"no limit": {time.Time{}, 64}, "in time": {time.Now().Add(time.Hour), 64}, "late": {time.Now().Add(-time.Hour), leastSlices}} {
		b, taken := bench{until: c.until}, make(slicesOf, 2)
		one := &scripted{rate: constantly(1)}
		if err := b.takeSlices(taken, 64, []side{one, one}); err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(taken, func(s []*sample) bool { return len(s) != c.want }) {
			t.Errorf("%s: %d and %d slices, expected %d", name, len(taken[0]), len(taken[1]), c.want)
		}
	}
}
