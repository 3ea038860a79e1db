//go:build long

package replay_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// TestHealthOfLargeSite: a million connections at the same time, and 8,100,000 frames, with exact totals and in at most 4 GB. A process of its own reads the file: what
// other tests have freed isn't counted.
func TestHealthOfLargeSite(t *testing.T) {
	const file = "CNPGATE_SITE"
	s := site{connections: 1_000_000, hosts: 1000}
	if path := os.Getenv(file); path != "" {
		s.check(t, path, 0)
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), file+"="+s.write(t), "GODEBUG=madvdontneed=1")
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	peak := child.ProcessState.SysUsage().(*syscall.Rusage).Maxrss // kB
	t.Logf("%d frames, %d connections: a peak of %d MB", s.frames(), s.connections, peak/1000)
	if peak > 4_000_000 {
		t.Errorf("a peak of %d kB of memory; want at most 4 GB", peak)
	}
}
