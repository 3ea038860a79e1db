package transport

import (
	"testing"

	"pgregory.net/rapid"
)

// TestHeldPackets compares what a receiver keeps behind a gap with a set. Forged packets may be anywhere ahead.
func TestHeldPackets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var held heldPackets
		expect := rapid.Uint64Range(1<<24, 1<<25).Draw(t, "expect")
		model := map[uint64]bool{}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			ahead := rapid.OneOf(rapid.Uint64Range(1, 5), rapid.Uint64Range(HeldPSNs-2, 3*HeldPSNs)).Draw(t, "ahead")
			sequence, last := expect+ahead, rapid.Bool().Draw(t, "last")
			held.keep(expect, sequence, last)
			if ahead < HeldPSNs {
				model[sequence] = model[sequence] || last
			}
			if rapid.IntRange(0, 3).Draw(t, "comes") > 0 {
				continue
			}
			expect++ // what was missing comes
			want, next := uint32(0), expect
			for last, ok := model[next]; ok; last, ok = model[next] {
				if last {
					want++
				}
				delete(model, next)
				next++
			}
			ended, more := held.release(&expect)
			if ended != want || expect != next || more != (len(model) > 0) {
				t.Fatalf("released up to %d, %d ended, more %v; want %d, %d, %v", expect, ended, more, next, want, len(model) > 0)
			}
		}
	})
}
