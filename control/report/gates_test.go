package report

import (
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
)

// TestEveryReasonHasAGate: an explanation has a place for each reason.
func TestEveryReasonHasAGate(t *testing.T) {
	for s := dataplane.Suppression(1); s <= dataplane.Suppressions; s++ {
		if gateOf[s] == "" {
			t.Errorf("%v has no gate", s)
		}
	}
	if len(gateOf) != int(dataplane.Suppressions) {
		t.Errorf("%d reasons have a gate, and there are %d", len(gateOf), dataplane.Suppressions)
	}
}
