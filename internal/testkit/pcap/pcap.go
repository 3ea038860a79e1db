// Package pcap reads captures for tests, and imports no other package of the project. control/replay reads an operator's captures, in all
// formats and conditions.
package pcap

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/gopacket/gopacket/pcapgo"
)

// T is the part of testing.TB that is needed.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Frame is a frame with its time in nanoseconds.
type Frame struct {
	Time   int64
	Octets []byte
}

// Read reads a classic capture of whole frames.
func Read(t T, path string) (frames []Frame) {
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
		octets, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return frames
		}
		if err != nil || info.Length != len(octets) {
			t.Fatalf("%s: frame %d: %v, %d of %d octets", path, len(frames)+1, err, len(octets), info.Length)
		}
		frames = append(frames, Frame{info.Timestamp.UnixNano(), octets})
	}
}

// Octets returns the frames without their times.
func Octets(frames []Frame) [][]byte {
	all := make([][]byte, len(frames))
	for i := range frames {
		all[i] = frames[i].Octets
	}
	return all
}

// Real returns the paths of the captures of real traffic in testdata/captures.
func Real(t T) []string {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	paths, err := filepath.Glob(filepath.Join(filepath.Dir(here), "../../../testdata/captures/*.pcap"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no captures beside the tests: %v", err)
	}
	return paths
}
