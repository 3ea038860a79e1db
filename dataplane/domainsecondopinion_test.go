//go:build secondopinion

package dataplane_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/internal/testkit/opinion"
)

// TestSecondOpinionDomain: of frames that scapy builds, with the verdicts of testdata/domainvariants.py, those that are or may hide a
// notification don't pass the filter of an empty domain, in either direction, and the others do.
func TestSecondOpinionDomain(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(opinion.Scapy(t, "", "testdata/domainvariants.py")), "\n")
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
