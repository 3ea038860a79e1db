//go:build secondopinion

// Package igp_test checks the codecs' test data against the program that made it.
package igp_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestSecondOpinionScapy: what scapy builds now is what the tests of the codecs read.
func TestSecondOpinionScapy(t *testing.T) {
	python := os.Getenv("SCAPY_PYTHON")
	if python == "" {
		python = "/usr/bin/python3" // where Debian's python3-scapy is
	}
	for _, protocol := range []string{"isis", "ospfv2", "ospfv3"} {
		cmd := exec.Command(python, filepath.Join(protocol, "testdata", "build.py"))
		got, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v (it needs scapy: install python3-scapy, or let SCAPY_PYTHON name a Python that has it)", cmd, err)
		}
		want, err := os.ReadFile(filepath.Join(protocol, "testdata", "scapy.txt"))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s: scapy builds\n%s, want\n%s", protocol, got, want)
		}
	}
}
