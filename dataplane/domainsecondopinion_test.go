//go:build secondopinion

package dataplane_test

import (
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane/stage"
)

// TestSecondOpinionDomain: of frames that scapy builds, with the verdicts of testdata/domainvariants.py, those that are or may hide a
// notification don't pass the filter of an empty domain, in either direction, and the others do. SCAPY_PYTHON names a Python that has scapy.
func TestSecondOpinionDomain(t *testing.T) {
	python := os.Getenv("SCAPY_PYTHON")
	if python == "" {
		python = "/usr/bin/python3" // where Debian's python3-scapy is
	}
	out, err := exec.CommandContext(t.Context(), python, filepath.Join("testdata", "domainvariants.py")).Output()
	if err != nil {
		t.Fatalf("domainvariants.py: %v (it needs scapy: install python3-scapy, or let SCAPY_PYTHON name a Python that has it)", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for _, port := range []int{fabric, wan} {
		r, count := newDomainRig(t, stage.NewDomain(nil, nil, false)), map[string]int{}
		for _, line := range lines {
			verdict, rest, _ := strings.Cut(line, " ")
			octets, name, _ := strings.Cut(rest, " ")
			frame, err := hex.DecodeString(octets)
			if err != nil || verdict != "stop" && verdict != "cross" {
				t.Fatalf("domainvariants.py said %q, expected stop or cross, a frame in hexadecimal, and a name", line)
			}
			count[verdict]++
			if r.crosses(t, port, frame) != (verdict == "cross") {
				t.Errorf("%s from port %d: expected to %s: %s", name, port, verdict, octets)
			}
		}
		if count["stop"] < 200 || count["cross"] < 100 {
			t.Errorf("only %v frames", count)
		}
		r.Close(t)
	}
}
