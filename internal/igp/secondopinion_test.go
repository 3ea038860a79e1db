//go:build secondopinion

// Package igp_test checks the codecs' test data against the program that made it.
package igp_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/opinion"
)

// TestSecondOpinionScapy: what scapy builds now is what the tests of the codecs read.
func TestSecondOpinionScapy(t *testing.T) {
	for _, protocol := range []string{"isis", "ospfv2", "ospfv3"} {
		got := opinion.Scapy(t, "", filepath.Join(protocol, "testdata", "build.py"))
		want, err := os.ReadFile(filepath.Join(protocol, "testdata", "scapy.txt"))
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: scapy builds\n%s, want\n%s", protocol, got, want)
		}
	}
}
