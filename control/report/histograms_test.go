package report

import (
	"reflect"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit"
)

// TestHistograms: each has its place, and only the buckets with values.
func TestHistograms(t *testing.T) {
	r := testkit.New(t, testkit.Setup{})
	w := r.Plane.Worker(0)
	w.Step()
	for _, gap := range []int64{100, 100, 3_000_000_000} {
		r.Advance(gap)
		w.Step()
	}
	all := map[string]Histogram{}
	for _, h := range MakeHistograms(testConfig(t), r.Plane) {
		all[h.Name+" "+h.Port+h.Class+h.Worker] = h
	}
	h := all["loop_gap_nanoseconds 0"]
	if want := (Histogram{Name: "loop_gap_nanoseconds", Worker: "0", Count: 3, Sum: 3_000_000_200, Buckets: []Bucket{{128, 2}, {0, 1}}}); !reflect.DeepEqual(h, want) {
		t.Errorf("%+v, want %+v", h, want)
	}
	if len(all) != 2*2+1 {
		t.Errorf("the histograms are %v", all)
	}
	r.Close(t)
}

// TestQuantile: a bound that a part of all values does not exceed.
func TestQuantile(t *testing.T) {
	h := Histogram{Count: 100, Buckets: []Bucket{{128, 50}, {512, 49}, {0, 1}}}
	for _, c := range []struct {
		q    float64
		want uint64
		ok   bool
	}{{0, 128, true}, {0.5, 128, true}, {0.501, 512, true}, {0.99, 512, true}, {0.995, 0, false}, {1, 0, false}} {
		if got, ok := h.Quantile(c.q); got != c.want || ok != c.ok {
			t.Errorf("quantile %v is %d, %t, want %d, %t", c.q, got, ok, c.want, c.ok)
		}
	}
	if _, ok := (&Histogram{}).Quantile(0.5); ok {
		t.Error("an empty histogram has values")
	}
}
