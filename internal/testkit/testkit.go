// Package testkit is what the tests of several packages share: frames made from short descriptions, a dataplane on in-memory backends with
// a clock that only the test advances, and the final check that every frame is accounted for. It is for tests only, and never sleeps.
package testkit

import (
	"os"
	"path/filepath"

	"github.com/cnpgate/cnpgate/internal/testkit/pcap"
	"github.com/cnpgate/cnpgate/internal/virtual"
)

// T is the part of *testing.T, *testing.B, *testing.F or *rapid.T that helpers need.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Heap allocates zeroed memory on the Go heap, aligned to 64 bytes, where the race detector sees accesses by workers.
func Heap(octets int) ([]byte, error) { return virtual.Heap(octets) }

// Captures reads the frames of all captures of real traffic in testdata/captures.
func Captures(t T) (frames [][]byte) {
	t.Helper()
	for _, path := range pcap.Real(t) {
		frames = append(frames, pcap.Octets(pcap.Read(t, path))...)
	}
	return frames
}

// Cache is the folder in which scripts/setup stores downloads.
func Cache() string {
	if dir := os.Getenv("CNPGATE_CACHE"); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = "/root/.cache"
	}
	return filepath.Join(dir, "cnpgate")
}
