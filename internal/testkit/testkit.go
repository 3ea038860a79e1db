// Package testkit is what the tests of several rooms share: frames made from a few words, a dataplane on in-memory backends and a
// clock that stands still until it is moved, and the sum that every such test ends with. It is for tests only, and it sleeps
// nowhere.
package testkit

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/testkit/pcap"
)

// T is what a helper needs of a *testing.T, *testing.B, *testing.F or *rapid.T.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Heap gives zeroed memory of the Go heap, 64-octet aligned, where the race detector sees what workers do with it.
func Heap(octets int) ([]byte, error) {
	const line = 64
	b := make([]byte, octets+line-1)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % line)
	return b[skip : skip+octets : skip+octets], nil
}

// Captures reads the frames of all captures of real traffic in testdata/captures.
func Captures(t T) (frames [][]byte) {
	t.Helper()
	for _, path := range pcap.Real(t) {
		frames = append(frames, pcap.Octets(pcap.Read(t, path))...)
	}
	return frames
}
