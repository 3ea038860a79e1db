package packet

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/mutate"
)

// TestMutatedParse is FuzzParse over mutants. Some of every kind have to come up, notifications of each format among them.
func TestMutatedParse(t *testing.T) {
	seeds := parseSeeds(t)
	frames := make([][]byte, len(seeds))
	for i := range seeds {
		frames[i] = seeds[i].frame
	}
	m := mutate.Run(t, mutate.Executions, frames)
	var p Parsed
	var kinds [RoCEv2 + 1]int
	const some = mutate.Executions
	notes := [NotANotification + 1]int{LongHaulCNP: some, PPFC: some, LinkPause: some, LinkPFC: some} // Classify finds none of these
	for range mutate.Executions {
		i, b, missing := m.Next()
		length := uint32(len(b)) + missing + seeds[i].frameLen - uint32(len(seeds[i].frame))
		if m.IntN(16) == 0 {
			length = m.Uint32N(uint32(len(b)) + 1) // more was given than the frame has
		}
		parseBody(t, b, length, &p)
		kinds[p.Kind]++
		notes[Classify(b[:min(uint32(len(b)), length)], &p, &DefaultCodePoints)]++
	}
	t.Logf("by kind %v, notifications %v", kinds, notes)
	for _, n := range append(kinds[:], notes[:]...) {
		if n < mutate.Executions/1000 {
			t.Errorf("by kind %v, notifications %v, of %d: some aren't reached", kinds, notes, mutate.Executions)
		}
	}
}

// TestMutatedLists is FuzzLists over mutants.
func TestMutatedLists(t *testing.T) {
	m := mutate.Run(t, mutate.Executions, lists)
	var w listWork
	for range mutate.Executions {
		_, b, _ := m.Next()
		w.body(t, b)
	}
	t.Logf("%d Fast CNP options, %d objects, %d five-tuples", w.fast, w.objects, w.proxied)
	if min(w.fast, w.objects, w.proxied) < mutate.Executions/100 {
		t.Error("some of them aren't reached")
	}
}

// TestMutatedCM is FuzzDecodeCM over mutants.
func TestMutatedCM(t *testing.T) {
	m := mutate.Run(t, mutate.Executions, cmSeeds())
	decoded := 0
	for range mutate.Executions {
		if _, b, _ := m.Next(); cmBody(t, b) {
			decoded++
		}
	}
	t.Logf("%d messages", decoded)
	if decoded < mutate.Executions/100 || decoded > mutate.Executions*99/100 {
		t.Errorf("%d of %d are decoded", decoded, mutate.Executions)
	}
}
