//go:build interleave

package mailbox

import (
	"fmt"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/interleave"
)

// TestInterleaveBox: of an empty box, and of one with one free place, messages come out whole, in order, each once; put refuses one only if the box is full.
func TestInterleaveBox(t *testing.T) {
	const put, take = 2, 2
	for _, filled := range []int{0, Size - 1} {
		interleave.Check(t, true, func() ([]func(), func() string) {
			var box Box[int]
			for i := range filled {
				box.Put(i + 1)
			}
			accepted, taken, wrong := filled, 0, ""
			read := func() {
				m, ok := box.Take()
				if ok {
					if taken++; m != taken {
						wrong = fmt.Sprintf("message %d, expected %d", m, taken)
					}
				}
			}
			return []func(){
					func() {
						for range put {
							if box.Put(accepted + 1) {
								accepted++
							}
						}
					},
					func() {
						for range take {
							read()
						}
					},
				}, func() string {
					if filled > 0 && taken != take || accepted < min(filled+put, Size) {
						return fmt.Sprintf("%d messages were taken, %d accepted: expected %d, and at least %d", taken, accepted, take, min(filled+put, Size))
					}
					for range Size + put {
						read()
					}
					if taken != accepted {
						return fmt.Sprintf("%d of %d messages came out", taken, accepted)
					}
					return wrong
				}
		})
	}
}
