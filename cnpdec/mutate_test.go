package cnpdec

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/mutate"
)

// TestMutatedDecode is FuzzDecode over mutants. Some of every kind have to be accepted: else the decoders weren't reached.
func TestMutatedDecode(t *testing.T) {
	seeds := decodeSeeds(t)
	frames := make([][]byte, len(seeds))
	for i := range seeds {
		frames[i] = seeds[i].frame
	}
	m := mutate.Run(t, mutate.Executions, frames)
	var w workspace
	var accepted [packet.Notifications]int
	for range mutate.Executions {
		i, frame, missing := m.Next()
		s := &seeds[i]
		extension, icrc := s.extension, s.icrc
		if m.IntN(8) == 0 {
			extension, icrc = extensions3[m.IntN(3)], ICRCCoverage(m.IntN(3))
		}
		if w.decode(t, frame, missing+uint32(s.missing), extension, icrc, m.IntN(4) != 0) {
			accepted[w.n.Kind]++
		}
	}
	for k := range packet.NotANotification {
		if k == packet.ExtendedCNP {
			continue // it is the receiver that says what it is
		}
		t.Logf("accepted as %v: %d", k, accepted[k])
		if accepted[k] < mutate.Executions/10_000 {
			t.Errorf("%d of %d mutants are accepted as %v", accepted[k], mutate.Executions, k)
		}
	}
}

// TestMutatedOptions is FuzzOptions over mutants.
func TestMutatedOptions(t *testing.T) {
	var w workspace
	run(t, optionLists(), w.options)
}

// TestMutatedLongHaul is FuzzLongHaul over mutants.
func TestMutatedLongHaul(t *testing.T) {
	var w workspace
	run(t, longHauls(), w.longHaul)
}

// run runs a body that wants octets only. Some have to be accepted, and some not.
func run(t *testing.T, seeds [][]byte, body func(testing.TB, []byte) bool) {
	m, accepted := mutate.Run(t, mutate.Executions, seeds), 0
	for range mutate.Executions {
		if _, b, _ := m.Next(); body(t, b) {
			accepted++
		}
	}
	t.Logf("accepted: %d", accepted)
	if accepted < mutate.Executions/100 || accepted > mutate.Executions*99/100 {
		t.Errorf("%d of %d mutants are accepted", accepted, mutate.Executions)
	}
}

// BenchmarkMutated is the cost of an execution, mutation included.
func BenchmarkMutated(b *testing.B) {
	seeds := decodeSeeds(b)
	frames := make([][]byte, len(seeds))
	for i := range seeds {
		frames[i] = seeds[i].frame
	}
	var w workspace
	m := mutate.New(1, frames)
	b.ReportAllocs()
	for b.Loop() {
		i, frame, missing := m.Next()
		w.decode(b, frame, missing, seeds[i].extension, seeds[i].icrc, true)
	}
}
