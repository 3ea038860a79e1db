// Package testkit is what the tests of several rooms share: frames made from a few words, a dataplane on in-memory backends and a
// clock that stands still until it is moved, and the sum that every such test ends with. It is for tests only, and it sleeps
// nowhere.
package testkit

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"unsafe"

	"github.com/gopacket/gopacket/pcapgo"
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
func Captures(t T) [][]byte {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	paths, err := filepath.Glob(filepath.Join(filepath.Dir(here), "../../testdata/captures/*.pcap"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no captures beside the tests: %v", err)
	}
	var frames [][]byte
	for _, path := range paths {
		frames = append(frames, capture(t, path)...)
	}
	return frames
}

func capture(t T, path string) (frames [][]byte) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatalf("%v", err)
	}
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for {
		frame, _, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return frames
		}
		if err != nil {
			t.Fatalf("%s: frame %d: %v", path, len(frames)+1, err)
		}
		frames = append(frames, frame)
	}
}
