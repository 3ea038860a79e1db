//go:build !linux || race

package testkit

// arena is the memory of a Rig's tables: the Go heap, which the race detector watches.
type arena struct{}

func (*arena) allocate(octets int) ([]byte, error) { return Heap(octets) }

func (*arena) release() {}
