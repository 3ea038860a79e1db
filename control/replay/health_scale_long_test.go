//go:build long

package replay_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"
)

// TestHealthOfLargeSite: a million connections at the same time, and 8,100,000 frames, with exact totals and in at most 4 GB.
func TestHealthOfLargeSite(t *testing.T) {
	s := site{connections: 1_000_000, hosts: 1000}
	path := s.write(t)
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // the peak from now on
		t.Skipf("the peak of the memory can't be reset: %v", err)
	}
	s.check(t, path, 0)
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	var kB int
	_, peak, _ := bytes.Cut(status, []byte("VmHWM:"))
	if _, err := fmt.Sscan(string(peak), &kB); err != nil {
		t.Fatalf("VmHWM: %v", err)
	}
	t.Logf("%d frames, %d connections: a peak of %d MB", s.frames(), s.connections, kB/1000)
	if kB > 4_000_000 {
		t.Errorf("a peak of %d kB of memory; want at most 4 GB", kB)
	}
}
