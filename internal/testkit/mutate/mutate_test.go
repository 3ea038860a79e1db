package mutate

import (
	"bytes"
	"slices"
	"testing"
)

var frames = [][]byte{bytes.Repeat([]byte{1}, 60), bytes.Repeat([]byte{2}, 200), bytes.Repeat([]byte{3}, 5000), {4}, {}}

// TestRepeats: the same number makes the same mutants, another number others.
func TestRepeats(t *testing.T) {
	a, b, other := New(7, frames), New(7, frames), New(8, frames)
	differ := false
	for i := range 10_000 {
		seed, octets, missing := a.Next()
		seed2, octets2, missing2 := b.Next()
		if seed != seed2 || missing != missing2 || !bytes.Equal(octets, octets2) {
			t.Fatalf("mutant %d differs: % x and % x", i, octets, octets2)
		}
		_, octets, _ = other.Next()
		differ = differ || !bytes.Equal(octets, octets2)
	}
	if !differ {
		t.Error("the number changes nothing")
	}
}

// TestAnyAccident: mutants are shorter, longer, cut, spliced and changed; seeds stay as they are; nothing is allocated.
func TestAnyAccident(t *testing.T) {
	before := make([][]byte, len(frames))
	for i := range frames {
		before[i] = bytes.Clone(frames[i])
	}
	m := New(1, frames)
	var shorter, longer, captured, spliced, changed, seeds [5]int
	allocs := testing.AllocsPerRun(100_000, func() {
		i, b, missing := m.Next()
		seed := frames[i][:min(len(frames[i]), MaxLen)]
		seeds[i]++
		switch {
		case len(b) > MaxLen:
			t.Fatalf("%d octets", len(b))
		case len(b) < len(seed) && missing == uint32(len(seed)-len(b)):
			captured[i]++
		case len(b) < len(seed):
			shorter[i]++
		case len(b) > len(seed):
			longer[i]++
		case bytes.IndexByte(b, 1) >= 0 && bytes.IndexByte(b, 2) >= 0:
			spliced[i]++
		case !bytes.Equal(b, seed):
			changed[i]++
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations a mutant", allocs)
	}
	for _, seen := range [][5]int{shorter, longer, captured, spliced, changed} {
		if seen[0] == 0 || seen[1] == 0 {
			t.Errorf("an accident never happens: %v %v %v %v %v", shorter, longer, captured, spliced, changed)
		}
	}
	if slices.Contains(seeds[:], 0) {
		t.Errorf("a seed is never taken: %v", seeds)
	}
	for i := range frames {
		if !bytes.Equal(before[i], frames[i]) {
			t.Errorf("seed %d was changed", i)
		}
	}
}

// TestSeed: the environment's number, or one of its own.
func TestSeed(t *testing.T) {
	t.Setenv("CNPGATE_SEED", "18446744073709551615")
	if Seed() != 1<<64-1 {
		t.Error("CNPGATE_SEED isn't taken")
	}
	t.Setenv("CNPGATE_SEED", "")
	if one, other := Seed(), Seed(); one == other {
		t.Error("two runs start alike")
	}
}

func BenchmarkNext(b *testing.B) {
	m := New(1, frames[:2])
	b.ReportAllocs()
	for b.Loop() {
		m.Next()
	}
}
