package dataplane

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/congestion"
)

// lawFar is what a worker's control law knows of flows that lose packets, by the low bits of their indexes. A flow that returns to a lost packet takes the place of another.
type lawFar []congestion.Far

const farPlaces = 4096

func lawFarSize() int { return farPlaces * int(unsafe.Sizeof(congestion.Far{})) }

func newLawFar(memory []byte) lawFar {
	return unsafe.Slice((*congestion.Far)(unsafe.Pointer(unsafe.SliceData(memory))), farPlaces)
}

// farLimit is the rate to which a flow is limited as it loses packets beyond this gateway, or 0. held reports whether its packet is not queued here.
func farLimit(w *Worker, c *congestion.LawState, f *lawFlow, i int, size uint32, held bool) float64 {
	p, x := &w.records[i], w.flow[i].Index
	if !acknowledged(p) {
		return 0
	}
	r := f.Returns(p.PSN, held)
	if r == congestion.NeverReturned {
		return 0
	}
	return w.lawFar[x%farPlaces].Limit(c, r, uint32(x), p.PSN, size)
}
