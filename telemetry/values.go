package telemetry

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Values are readings of metrics, by name. In JSON it is an object; see Reading for its members.
type Values map[string]Reading

// Reading is the value of one metric. In JSON it is a number, or an object of numbers by label value.
type Reading struct {
	Value uint64            // of a metric without a label
	By    map[string]uint64 // of one with a label
}

// Add adds n to a metric; label is the value of its label, "" for a metric without one.
func (v Values) Add(m *Metric, label string, n uint64) {
	r := v[m.Name]
	if label == "" {
		r.Value += n
	} else {
		if r.By == nil {
			r.By = map[string]uint64{}
		}
		r.By[label] += n
	}
	v[m.Name] = r
}

// Merge adds other values to v, by metric and label.
func (v Values) Merge(other Values) {
	for name, o := range other {
		r := v[name]
		r.Value += o.Value
		if o.By != nil {
			by := maps.Clone(r.By)
			if by == nil {
				by = map[string]uint64{}
			}
			for label, n := range o.By {
				by[label] += n
			}
			r.By = by
		}
		v[name] = r
	}
}

// Subtract removes earlier values of the counters; gauges stay.
func (v Values) Subtract(old Values) {
	for _, m := range all {
		r, ok := v[m.Name]
		if !ok || m.Kind != Counter {
			continue
		}
		before := old[m.Name]
		r.Value -= min(before.Value, r.Value)
		r.By = maps.Clone(r.By)
		for label, n := range r.By {
			r.By[label] = n - min(before.By[label], n)
		}
		v[m.Name] = r
	}
}

// Sum is the value of a metric over all its label values; 0 if it has not been read.
func (v Values) Sum(m *Metric) uint64 { return v[m.Name].Sum() }

// Sum is the value over all label values.
func (r Reading) Sum() uint64 {
	sum := r.Value
	for _, n := range r.By {
		sum += n
	}
	return sum
}

// Each calls f with each value that isn't 0, under its name in `show counters`: name, or name{label value}. They come in the order of the
// catalogue.
func (v Values) Each(f func(name string, value uint64)) {
	for _, m := range all {
		r := v[m.Name]
		if r.Value != 0 {
			f(m.Name, r.Value)
		}
		for _, label := range slices.Sorted(maps.Keys(r.By)) {
			if r.By[label] != 0 {
				f(m.Name+"{"+label+"}", r.By[label])
			}
		}
	}
}

// NonZero returns the values that aren't 0.
func (v Values) NonZero() Values {
	some := Values{}
	for name, r := range v {
		by := maps.Clone(r.By)
		maps.DeleteFunc(by, func(_ string, n uint64) bool { return n == 0 })
		if r.Value != 0 || len(by) > 0 {
			some[name] = Reading{r.Value, by}
		}
	}
	return some
}

// Unaccounted is how many received frames have neither ended nor are queued, by the accounting identity (Side). If it isn't 0, there is a
// bug. v must hold the values of all ports together.
func (v Values) Unaccounted() int64 {
	n := int64(0)
	for _, m := range all {
		n += int64(m.Side) * int64(v.Sum(m))
	}
	return n
}

// Account describes the accounting identity with its numbers; the two sides are equal if Unaccounted is 0.
func (v Values) Account() string {
	var in, out []string
	for _, m := range all {
		switch part := fmt.Sprint(m.Name, " ", v.Sum(m)); m.Side {
		case In:
			in = append(in, part)
		case Out:
			out = append(out, part)
		}
	}
	return strings.Join(in, " + ") + " = " + strings.Join(out, " + ")
}

// Check returns an error if the accounting identity does not hold.
func (v Values) Check() error {
	if n := v.Unaccounted(); n != 0 {
		return fmt.Errorf("%d frames are not accounted for, expected %s: a bug in cnpgate; please report it", n, v.Account())
	}
	return nil
}

// MarshalJSON writes a number or an object.
func (r Reading) MarshalJSON() ([]byte, error) {
	if r.By != nil {
		return json.Marshal(r.By)
	}
	return json.Marshal(r.Value)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Reading) UnmarshalJSON(b []byte) error {
	*r = Reading{}
	if strings.HasPrefix(string(b), "{") {
		return json.Unmarshal(b, &r.By)
	}
	return json.Unmarshal(b, &r.Value)
}
