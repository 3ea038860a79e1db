package control

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane"
)

// TestShortages: from 90 % on each table is a concern, with what happens and what to do.
func TestShortages(t *testing.T) {
	g := &gateway{}
	for table, policy := range shortages {
		if strings.HasPrefix(table, "pairing") {
			continue // asks the API who causes it
		}
		for used, short := range map[int]bool{0: false, 899: false, 900: true, 1000: true} {
			all := g.concerns.shortOf([]dataplane.Occupied{{Table: table, Used: used, Size: 1000}})
			if (len(all) == 1) != short || short && (!strings.Contains(all[0], "table "+table) || !strings.Contains(all[0], policy)) {
				t.Errorf("%s with %d of 1000: %q", table, used, all)
			}
		}
	}
}

// TestWhoFillsPairing: the source with most flows without a source QP is named, whatever others have with one.
func TestWhoFillsPairing(t *testing.T) {
	qp := uint32(7)
	flow := func(source string, qp *uint32) api.Flow {
		return api.Flow{Flow: report.Flow{SourceIP: netip.MustParseAddr(source), SourceQP: qp}}
	}
	flows := []api.Flow{flow("10.0.0.1", nil), flow("10.0.0.2", nil), flow("10.0.0.2", nil), flow("10.0.0.3", &qp), flow("10.0.0.3", &qp), flow("10.0.0.3", &qp)}
	if got := unpairedMost(flows); !strings.Contains(got, "10.0.0.2") || !strings.Contains(got, "of 3 flows") || !strings.Contains(got, "sends 2") {
		t.Errorf("it is said: %q", got)
	}
	if got := unpairedMost(flows[3:]); got != "" {
		t.Errorf("all are paired: %q", got)
	}
}
