package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// longestRun is the largest number of used slots in a row, which a lookup may have to scan.
func longestRun(m *QPMap) int {
	most, run := 0, 0
	for i := range 2 * len(m.slots) { // round the end
		if m.slots[i%len(m.slots)].destinationQP == 0 {
			run = 0
			continue
		}
		run++
		most = max(most, min(run, len(m.slots)))
	}
	return most
}

// aimed returns pairs whose directions from their source all begin at one of two slots of a map with this seed and as many pairs.
func aimed(t *testing.T, pairs int, seed uint64) []QPPair {
	t.Helper()
	empty, err := NewQPMap(make([]QPPair, 0), seed)
	if err != nil {
		t.Fatal(err)
	}
	empty.mask = 8*uint64(pairs) - 1 // at most this many slots; collisions modulo more are also collisions modulo fewer
	var out []QPPair
	dst := packet.Addr{Lo: 2}
	for n := uint64(1); len(out) < pairs; n++ {
		src := packet.Addr{Hi: 0xfd00 << 48, Lo: n}
		if empty.hash(noScope, src, dst, 9)&empty.mask < 2 {
			out = append(out, QPPair{Source: src, Destination: dst, SourceQP: 5 + uint32(len(out)), DestinationQP: 9})
		}
	}
	return out
}

// Pairs that collide in a map with one seed are spread over a map with another.
func TestAimedPairs(t *testing.T) {
	const pairs = 1000
	p := aimed(t, pairs, 1)
	known, err := NewQPMap(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	if n := longestRun(known); n < pairs {
		t.Fatalf("the pairs take %d slots in a row with the seed they are aimed at: not what was to be tested", n)
	}
	for seed := range uint64(20) {
		m, err := NewQPMap(p, seed+2)
		if err != nil {
			t.Fatal(err)
		}
		if n := longestRun(m); n > 100 {
			t.Errorf("seed %d: %d slots in a row are taken", seed+2, n)
		}
	}
}

// No change of one part of the key cancels that of another, whatever the seed.
func TestKeyPartsDoNotCancel(t *testing.T) {
	const a, b = 1, 2 // host parts of the source and the destination
	for _, shift := range []int{0, 8, 16, 24, 32, 40} {
		var p []QPPair
		for n := range uint64(1000) {
			qp := uint32(2 + n)
			high, low := packet.Addr{Hi: 1<<63 | uint64(qp)<<shift, Lo: b}, packet.Addr{Hi: 1 << 63, Lo: b<<32 ^ uint64(qp)<<shift}
			p = append(p, QPPair{packet.Addr{Lo: a}, high, qp, qp, false, 0, false}, QPPair{packet.Addr{Hi: 1, Lo: a}, low, qp, qp, false, 0, false})
		}
		m, err := NewQPMap(p, 3)
		if err != nil {
			t.Fatal(err)
		}
		if n := longestRun(m); n > 100 {
			t.Errorf("parts shifted by %d: %d slots in a row are taken", shift, n)
		}
	}
}
