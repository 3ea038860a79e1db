// Package program gives tests a cnpgate that is built as users build it.
package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Variable names a program that scripts/build has made of these sources. scripts/test sets it, so that the program is linked once.
const Variable = "CNPGATE_PROGRAM"

// Put writes the program, with DPDK and its page, to path. root is the project's folder.
func Put(t testing.TB, root, path string) {
	t.Helper()
	made := os.Getenv(Variable)
	if made == "" {
		if out, err := exec.Command(filepath.Join(root, "scripts/build"), "--output", path).CombinedOutput(); err != nil {
			t.Fatalf("scripts/build: %v\n%s", err, out)
		}
		return
	}
	b, err := os.ReadFile(made) // not a link: go test notices that the file has changed, and a test may change the copy's mode
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = os.WriteFile(path, b, 0o755)
	}
	if err != nil {
		t.Fatalf("%s: %v", Variable, err)
	}
}
