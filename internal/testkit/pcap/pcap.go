// Package pcap reads and writes captures for tests, and imports no other package of the project. control/replay reads an operator's captures, in all
// formats and conditions.
package pcap

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
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

// Whole is the snapshot length of a capture of whole frames, in bytes.
const Whole = 1 << 18

// Create makes a file for a capture of the first snap bytes of Ethernet frames, for the time of a test. write adds a frame of a length on the wire at a time, ns since 1970;
// after end the file can be read.
func Create(t testing.TB, snap int) (path string, write func(at int64, frame []byte, length int), end func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "capture.pcap")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	buffered := bufio.NewWriterSize(f, 1<<16)
	w := pcapgo.NewWriterNanos(buffered)
	if err := w.WriteFileHeader(uint32(snap), layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	write = func(at int64, frame []byte, length int) {
		cut := frame[:min(len(frame), snap)]
		if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(0, at).UTC(), CaptureLength: len(cut), Length: length}, cut); err != nil {
			t.Fatal(err)
		}
	}
	end = func() {
		if err := buffered.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	return path, write, end
}
