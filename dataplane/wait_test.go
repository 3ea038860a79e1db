package dataplane

import (
	"testing"

	"pgregory.net/rapid"
)

// TestWaitBounds: no frame that waits came before since, and since is not before the time from which on three times as many frames as
// ever waited have left.
func TestWaitBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w wait
		var queue, leftAt []int64 // when the frames that wait came, and when each of those that don't any more left
		now, longest := int64(1000), 0
		t.Repeat(map[string]func(*rapid.T){
			"come": func(t *rapid.T) {
				if len(queue) == 0 { // what hold does
					w = wait{since: now, next: now}
				}
				for range rapid.IntRange(1, 64).Draw(t, "frames") {
					queue = append(queue, now)
				}
				longest = max(longest, len(queue))
			},
			"go": func(t *rapid.T) {
				n := rapid.IntRange(0, min(len(queue), 64)).Draw(t, "frames")
				if n == 0 {
					return
				}
				for range n {
					leftAt = append(leftAt, now)
				}
				queue = queue[n:]
				w.leave(now, n, len(queue))
			},
			"time": func(t *rapid.T) { now += rapid.Int64Range(0, 1000).Draw(t, "ns") },
			"": func(t *rapid.T) {
				if len(queue) > 0 && w.since > queue[0] {
					t.Fatalf("a frame of %d waits, since %d", queue[0], w.since)
				}
				if n := len(leftAt) - 3*longest - 1; n >= 0 && w.since < leftAt[n] {
					t.Fatalf("since %d, though %d frames have left since %d, and at most %d waited", w.since, 3*longest, leftAt[n], longest)
				}
			},
		})
	})
}
