package virtual_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/splitmix"
	"github.com/cnpgate/cnpgate/internal/virtual"
)

const sources = 23

// model is an obviously correct agenda: a time and an order for each source.
type model struct {
	at    [sources]int64
	order [sources]int
	count int
}

func (m *model) set(source int, at int64) {
	if m.at[source] != at {
		m.count++
		m.at[source], m.order[source] = at, m.count
	}
}

func (m *model) next() (source int, ok bool) {
	for s := range sources {
		if m.at[s] == virtual.Never {
			continue
		}
		if !ok || m.at[s] < m.at[source] || m.at[s] == m.at[source] && m.order[s] < m.order[source] {
			source, ok = s, true
		}
	}
	return source, ok
}

// TestAgenda: whatever is scheduled, moved and cancelled, the next event is that of the model.
func TestAgenda(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, m := virtual.NewAgenda(sources), &model{}
		for s := range sources {
			m.at[s] = virtual.Never
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			source := rapid.IntRange(0, sources-1).Draw(t, "source")
			at := rapid.Int64Range(0, 20).Draw(t, "at")
			if rapid.IntRange(0, 3).Draw(t, "cancel") == 0 {
				at = virtual.Never
			}
			a.Set(source, at)
			m.set(source, at)
			for s := range sources {
				if a.At(s) != m.at[s] {
					t.Fatalf("source %d is scheduled at %d, want %d", s, a.At(s), m.at[s])
				}
			}
			got, when, ok := a.Next()
			want, any := m.next()
			if ok != any || ok && (got != want || when != m.at[want]) {
				t.Fatalf("next is %d at %d (%t), want %d (%t)", got, when, ok, want, any)
			}
		}
	})
}

func TestAgendaDoesNotAllocate(t *testing.T) {
	a, r := virtual.NewAgenda(sources), splitmix.New(1, 1)
	if n := testing.AllocsPerRun(100, func() { a.Set(int(r.Below(sources)), int64(r.Below(100))) }); n != 0 {
		t.Errorf("%v allocations an event, want none", n)
	}
}
