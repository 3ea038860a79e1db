package synth

import (
	"testing"

	"pgregory.net/rapid"
)

// TestQueueProperty: timers come in the order of their times, and of their making where that is the same.
func TestQueueProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var now int64
		var plain []timer // in the order of their making
		for i := range rapid.IntRange(1, 400).Draw(t, "steps") {
			if rapid.IntRange(0, 2).Draw(t, "push or pop") > 0 {
				at := now + rapid.SampledFrom([]int64{0, 1, 255, 256, 300, 1000, 500_000, 2_097_151, 2_097_152, 2_100_000, 9_000_000}).Draw(t, "after")
				q.push(at, taskTap, uint32(i))
				plain = append(plain, timer{at, uint64(i)})
				continue
			}
			got, any := q.pop()
			if any != (len(plain) > 0) {
				t.Fatalf("%d timers wait, popped one: %v", len(plain), any)
			}
			if !any {
				continue
			}
			least := 0
			for j := range plain {
				if plain[j].at < plain[least].at {
					least = j
				}
			}
			want := plain[least]
			plain = append(plain[:least], plain[least+1:]...)
			if got.at != want.at || got.subject() != uint32(want.rank) || got.task() != taskTap {
				t.Fatalf("popped %d at %d, want %d at %d", got.subject(), got.at, want.rank, want.at)
			}
			now = got.at
		}
	})
}
