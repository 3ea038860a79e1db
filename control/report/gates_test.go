package report

import (
	"testing"

	"github.com/cnpgate/cnpgate/dataplane/counters"
)

// TestEveryReasonHasAGate: an explanation has a place for each reason.
func TestEveryReasonHasAGate(t *testing.T) {
	for s := counters.Suppression(1); s <= counters.Suppressions; s++ {
		if gateOf[s] == "" {
			t.Errorf("%v has no gate", s)
		}
	}
	if len(gateOf) != int(counters.Suppressions) {
		t.Errorf("%d reasons have a gate, and there are %d", len(gateOf), counters.Suppressions)
	}
}
