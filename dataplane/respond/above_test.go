package respond

import (
	"testing"

	"github.com/cnpgate/cnpgate/dataplane/frames"
	"github.com/cnpgate/cnpgate/internal/burst"
)

// A packet is marked if the depth behind it is above the threshold. Frames that aren't in the queue don't count.
func TestAbove(t *testing.T) {
	rx := []burst.Frame{{Len: 100}, {Len: 0}, {Len: 200}, {Len: 50}}
	for _, c := range []struct {
		these             frames.Mask
		before, threshold uint64
		want              frames.Mask
	}{
		{0b1111, 0, 0, 0b1111},
		{0b1111, 0, 99, 0b1111},
		{0b1111, 0, 100, 0b1100},
		{0b1111, 0, 299, 0b1100},
		{0b1111, 0, 300, 0b1000},
		{0b1111, 0, 349, 0b1000},
		{0b1111, 0, 350, 0},
		{0b1111, 1000, 1000, 0b1111},
		{0b1110, 1000, 1000, 0b1100},
		{0b1110, 1001, 1000, 0b1110},
		{0b1101, 0, 100, 0b1100},
		{0b1001, 0, 100, 0b1000},
		{0b1010, 0, 49, 0b1000},
		{0, 1000, 0, 0},
	} {
		if got := above(rx, c.these, c.before, c.threshold); got != c.want {
			t.Errorf("%04b behind %d bytes: %04b above %d, expected %04b", c.these, c.before, got, c.threshold, c.want)
		}
	}
}
