package congestion

import (
	"testing"

	"pgregory.net/rapid"
)

func TestArrivals(t *testing.T) {
	type mark struct {
		at  int64
		due bool
	}
	burst := func(first, step int64, n int) (marks []mark) {
		for i := range n {
			marks = append(marks, mark{first + int64(i)*step, false})
		}
		return marks
	}
	for name, marks := range map[string][]mark{
		"the first at once":          {{1_000_000_007, true}},
		"the first at time 0":        {{0, true}, {1, false}},
		"again after 50 us":          {{0, true}, {49_999, false}, {50_000, true}, {99_999, false}, {100_000, true}},
		"4 marks, but not in 4 us":   append(append([]mark{{0, true}}, burst(100, 100, 4)...), mark{3_999, false}, mark{4_000, true}),
		"4 us, but not with 3 marks": append(append([]mark{{0, true}}, burst(4_000, 10, 3)...), mark{5_000, true}),
		"marks count afresh":         append(append([]mark{{0, true}}, burst(4_000, 10, 3)...), append([]mark{{5_000, true}}, burst(9_000, 10, 3)...)...),
		"4.3 s later":                {{0, true}, {1<<32 + 20, true}},
	} {
		t.Run(name, func(t *testing.T) {
			var a Arrivals
			for i, m := range marks {
				var due bool
				if a, due = a.Mark(m.at); due != m.due {
					t.Errorf("mark %d at %d ns: due %v", i, m.at, due)
				}
			}
		})
	}
}

// TestArrivalsProperties: two notifications of a flow are 50 us apart, or 4 us with 4 marks between them; and no mark waits longer.
func TestArrivalsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a Arrivals
		now, last, marks := rapid.Int64Range(0, 1<<40).Draw(t, "begin"), int64(-1), 0
		for range 200 {
			now += rapid.Int64Range(0, 9_000).Draw(t, "ns")
			marks++
			expected := last < 0 || now-last >= 50_000 || marks >= 4 && now-last >= 4_000
			var due bool
			if a, due = a.Mark(now); due != expected {
				t.Fatalf("%d ns and %d marks after the last: due %v", now-last, marks, due)
			}
			if expected {
				last, marks = now, 0
			}
		}
	})
}

// TestArrivalsAnswered: a sender counts as notified from the notification until the next one is due.
func TestArrivalsAnswered(t *testing.T) {
	const first = 1<<56 + 1_000_000 // beyond the word's range
	a, _ := Arrivals(0).Mark(first)
	if a.IsAnswered() || a.AnsweredWithin(first, 100) {
		t.Error("answered before the notification")
	}
	a = a.Answered()
	for range 100 {
		a, _ = a.Mark(first + 3_999)
	}
	for _, c := range []struct {
		after, ns int64
		want      bool
	}{{0, 100, true}, {99, 100, true}, {100, 100, false}, {300e9, 301e9, true}, {0, 0, false}} {
		if got := a.AnsweredWithin(first+c.after, c.ns); got != c.want || !a.IsAnswered() {
			t.Errorf("%d ns later, within %d ns: %v", c.after, c.ns, got)
		}
	}
	if a, _ = a.Mark(first + 4_000); a.IsAnswered() || a.AnsweredWithin(first+4_000, 100) {
		t.Error("answered when the next one is due")
	}
}
