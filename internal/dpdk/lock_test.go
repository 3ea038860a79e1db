//go:build !nodpdk

package dpdk

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// TestLock: one holder at a time, whose process ID the others read however many they are; what a killed process left is taken over.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "interface-1-2.lock")
	if err := os.WriteFile(path, []byte("4194304\n"), 0o600); err != nil { // no process has that number
		t.Fatal(err)
	}
	first, err := takeLock(path, "interface eth0")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("interface eth0 is in use by the gateway with process ID %d: stop that one first", os.Getpid())
	for range 5000 {
		if _, err := takeLock(path, "interface eth0"); err == nil || err.Error()[:len(want)] != want {
			t.Fatalf("a second one: %v, expected %q", err, want)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: whoever can open the file can lock it", info.Mode(), err)
	}
	for range 2 {
		if err := first.release(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
	again, err := takeLock(path, "interface eth0")
	if err != nil {
		t.Fatal(err)
	}
	if err := again.release(); err != nil {
		t.Error(err)
	}
}

// TestLockRefusesLinks: a file that is a link would have another file written.
func TestLockRefusesLinks(t *testing.T) {
	dir := root(t, map[string]string{"victim": "text", "l.lock": "->victim"})
	_, err := takeLock(filepath.Join(dir, "l.lock"), "PCI device 0000:3b:00.0")
	says(t, err, "PCI device 0000:3b:00.0 can't be locked")
	if text, err := os.ReadFile(filepath.Join(dir, "victim")); string(text) != "text" {
		t.Errorf("the link's target has %q, %v", text, err)
	}
}

// TestLockRace: however many take and release it at once, it has one holder.
func TestLockRace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l.lock")
	var holders, taken atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				l, err := takeLock(path, "it")
				if err != nil {
					continue
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d holders", n)
				}
				taken.Add(1)
				holders.Add(-1)
				if err := l.release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if taken.Load() == 0 {
		t.Error("nobody ever held it")
	}
}

// TestLockDirectory: not one that other users can write.
func TestLockDirectory(t *testing.T) {
	dir, err := lockDirectory()
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&2 != 0 {
		t.Errorf("%s: %v, %v", dir, info, err)
	}
}
