package dataplane

import (
	"testing"

	"github.com/cnpgate/cnpgate/dataplane/stage"
)

// TestInspectorStops: a worker reads packets for the health of connections as long as its batches aren't full, and stops if many in a row are.
func TestInspectorStops(t *testing.T) {
	for _, c := range []struct {
		name    string
		packets func(n int) int
		stops   bool
	}{
		{"small batches", func(int) int { return fullBatch / 2 }, false},
		{"full ones now and then", func(n int) int { return fullBatch - n%fullBatches }, false},
		{"full ones", func(int) int { return fullBatch }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := inspector{State: &stage.State{}, left: healthTime * 1e9, latest: 1}
			inspected := 0
			for n := range 100 {
				i.Now += 1000
				if i.mayInspect(c.packets(n)) {
					inspected++
				}
			}
			if stopped := inspected < 100; stopped != c.stops || inspected < fullBatches {
				t.Errorf("%d of 100 batches were read", inspected)
			}
		})
	}
}
