package counters

import (
	"math/bits"
	"testing"

	"github.com/cnpgate/cnpgate/telemetry"
)

// TestReasons: each reason has a name and a bit of its own, so its constant is one of the first 64.
func TestReasons(t *testing.T) {
	all := Reasons(0)
	for _, name := range ReasonNames()[1:] {
		set := ReasonsOf(name)
		if bits.OnesCount64(uint64(set)) != 1 || all&set != 0 {
			t.Errorf("%s: set %#x, and the others %#x", name, set, all)
		}
		all |= set
	}
	if ReasonsOf(allReasons) != all || ReasonsOf("no-reason") != 0 {
		t.Errorf("all reasons are %#x, expected %#x; of an unknown name %#x", ReasonsOf(allReasons), all, ReasonsOf("no-reason"))
	}
	for n := range Counters {
		if n.AtEgress() && Catalogue[n].Metric != telemetry.DroppedPackets {
			t.Errorf("%s{%s} is no drop", Catalogue[n].Name, Catalogue[n].Value)
		}
	}
}

// TestEachCounterHasARow: whatever reads the values of one without panics.
func TestEachCounterHasARow(t *testing.T) {
	for n := range Counters {
		if Catalogue[n].Metric == nil {
			t.Errorf("counter %d, behind %s, has no row in catalogue (catalogue.go)", n, Catalogue[max(n, 1)-1].Value)
		}
	}
}
