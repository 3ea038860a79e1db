package replay_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/cnpgate/cnpgate/internal/testkit/lossypath"
)

// TestHealthOfTraces: the causes in captures of Soft-RoCE over a path that lost packets, whose truth TestHealthOfSoftRoCE (internal/testkit/guest) has
// recorded. Each run gives three captures: in the middle of the path, where the packets were lost, and at either host.
func TestHealthOfTraces(t *testing.T) {
	all, err := filepath.Glob("../../testdata/health/*.trace")
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	for _, path := range all {
		name := strings.TrimSuffix(filepath.Base(path), ".trace")
		for at, place := range []string{"host0", "host1", "middle"} {
			t.Run(name+"/"+place, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "a.pcap")
				truth := captureOf(t, path, lossypath.Place(at), file)
				checkCauses(t, truth, healthOf(t, file))
			})
		}
	}
}

// captureOf makes a trace's capture at a place.
func captureOf(t *testing.T, path string, at lossypath.Place, file string) *lossypath.Truth {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	trace, err := lossypath.ReadTrace(f)
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w := pcapgo.NewWriterNanos(out)
	if err := w.WriteFileHeader(96, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	truth := trace.Replay(at, func(now int64, frame []byte) {
		cut := frame[:min(len(frame), 96)]
		if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: timeOf(now), CaptureLength: len(cut), Length: len(frame)}, cut); err != nil {
			t.Fatal(err)
		}
	})
	return truth
}
