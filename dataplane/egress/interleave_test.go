//go:build interleave

package egress

import (
	"fmt"
	"testing"

	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/testkit/interleave"
)

// TestInterleaveLine: workers that reserve a line at the same time, and give frames back that their device refuses, never reserve the same time twice.
func TestInterleaveLine(t *testing.T) {
	const now, each = 3500, 1000 // ns a frame: one byte a ns
	interleave.Check(t, false, func() ([]func(), func() string) {
		line := NewLine(8e9)
		sent := 0
		worker := func(refuses int) func() {
			return func() {
				var fraction uint64
				frames := []burst.Frame{{Len: each - LineOverhead}, {Len: each - LineOverhead}}
				n := line.take(now, 0, frames, 2*(each-LineOverhead), &fraction)
				if refused := min(n, refuses); refused > 0 {
					line.giveBack(frames[n-refused:n], &fraction)
					n -= refused
				}
				sent += n
			}
		}
		return []func(){worker(0), worker(1), worker(0)}, func() string {
			if free := line.free.Load(); free != int64(sent)*each || sent > now/each+1 || sent < 3 {
				return fmt.Sprintf("%d frames were sent and the line is free at %d ns, expected 3 or 4, and %d ns", sent, free, sent*each)
			}
			return ""
		}
	})
}

// TestInterleavePeak: each depth that a worker publishes is in the peak of one interval, or waits for the next.
func TestInterleavePeak(t *testing.T) {
	interleave.Check(t, false, func() ([]func(), func() string) {
		p := testEgress(t, 8e9, 1)
		c := &p.Classes[0]
		depths := []uint64{5, 9, 7}
		var peaks []uint64
		return []func(){
				func() {
					for _, d := range depths {
						c.NoteDepth(d)
						p.Publish()
					}
				},
				func() { peaks = append(peaks, c.TakePeak(), c.TakePeak()) },
			}, func() string {
				peaks = append(peaks, c.TakePeak())
				if highest := max(peaks[0], peaks[1], peaks[2]); highest != 9 || c.Published().Watermark != 9 {
					return fmt.Sprintf("peaks %d and watermark %d, expected 9", peaks, c.Published().Watermark)
				}
				return ""
			}
	})
}
