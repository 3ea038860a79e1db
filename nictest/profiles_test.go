package nictest_test

import (
	"math"
	"net/netip"
	"testing"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/nictest"
	"github.com/cnpgate/cnpgate/sim/scenario"
)

var (
	senderAddr = packet.AddrFrom(netip.MustParseAddr("fd00::2"))
	peerAddr   = packet.AddrFrom(netip.MustParseAddr("fd00::1"))
	addresses  = nictest.Addresses{
		Gateway4: packet.AddrFrom(netip.MustParseAddr("192.0.2.1")), Gateway6: packet.AddrFrom(netip.MustParseAddr("2001:db8::1")), Priority: 3,
	}
)

// nicOf is the reaction point of a NIC's file.
func nicOf(t *testing.T, nic string, files scenario.Files) endpoint.ReactionConfig {
	t.Helper()
	r, err := scenario.Reaction(nic, line, files)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const line = 1_000_000_000

func measure(t *testing.T, plan []nictest.Trial, r endpoint.ReactionConfig) *nictest.Result {
	t.Helper()
	result, err := nictest.Simulate(nictest.Config{Plan: plan, Addresses: addresses},
		nictest.Simulation{Sender: endpoint.Config{Addr: senderAddr, LineRate: line, MTU: 1024, Reaction: r}, Peer: peerAddr, Delay: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// responses are the experiments of a plan that show a NIC's reaction to standard CNPs.
func responses(plan []nictest.Trial) (all []nictest.Trial) {
	for _, t := range plan {
		if t.Group != nictest.FormOf && t.Group != nictest.Pausing {
			all = append(all, t)
		}
	}
	return all
}

// TestProfiles: the profile that is measured of each NIC, simulated again from its file, has the same rates over time in each experiment: the mean
// difference is at most 5 % of the rate before.
func TestProfiles(t *testing.T) {
	plan := responses(nictest.Plan(false, true, false))
	for _, nic := range scenario.NICs() {
		t.Run(nic, func(t *testing.T) {
			t.Parallel()
			sameCurves(t, plan, nicOf(t, nic, nil))
		})
	}
}

// sameCurves measures a reaction point, and the one that the measured profile's file describes, and compares their rates.
func sameCurves(t *testing.T, plan []nictest.Trial, r endpoint.ReactionConfig) {
	t.Helper()
	a := measure(t, plan, r)
	report := nictest.NewReport(a, nictest.Identity{Name: "measured"}, "fd00::2", "test")
	again := nicOf(t, "measured.yaml", func(string) ([]byte, error) { return []byte(report.File), nil })
	b := measure(t, plan, again)
	if report.Verdict != nictest.ObeysCNPs || len(a.Trials) != len(plan) || len(b.Trials) != len(plan) {
		t.Fatalf("%s, %d and %d experiments", report.Verdict, len(a.Trials), len(b.Trials))
	}
	for i := range a.Trials {
		x, y := &a.Trials[i], &b.Trials[i]
		differs, whole := 0.0, 0.0
		for j := range min(len(x.Points), len(y.Points)) {
			p, q := x.Points[j], y.Points[j]
			differs += math.Abs(p.Rate-q.Rate) * float64(p.Width)
			whole += x.Response.Before * float64(p.Width)
		}
		if differs > 0.05*whole || whole == 0 {
			t.Errorf("%s: the rates differ by %.1f %%; measured %+v, again %+v", x.Name, 100*differs/whole, x.Response, y.Response)
		}
	}
	if t.Failed() {
		t.Logf("fit %.4f of %+v:\n%s", a.FitError, r.DCQCN, report.File)
	}
}
