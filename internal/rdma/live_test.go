//go:build live && linux

package rdma

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestRecord writes the kernel's messages to the folder CNPGATE_RECORD, one a file: those in testdata come from it.
func TestRecord(t *testing.T) {
	dir := os.Getenv("CNPGATE_RECORD")
	if dir == "" {
		t.Log("nothing to do: CNPGATE_RECORD names no folder")
		return
	}
	n := 0
	r := Reader{Record: func(command int, message []byte) {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("command%02d.%d", command, n)), message, 0o644); err != nil {
			t.Fatal(err)
		}
		n++
	}}
	devices, err := r.Devices()
	if err != nil {
		t.Fatal(err)
	}
	counts, err := r.Counts()
	t.Log(devices, counts, err)
	for _, d := range devices {
		t.Log(r.QPs(d.Index, func(q QP) { t.Logf("%+v", q) }))
		t.Log(r.CMIDs(d.Index, func(c CMID) { t.Logf("%+v", c) }))
		t.Log(Addresses(os.DirFS("/sys/class/infiniband"), d.Name, 1))
	}
}
