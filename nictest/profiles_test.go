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

// nicOf is the reaction point of a NIC's file at a line rate.
func nicOf(t *testing.T, nic string, line int64, files scenario.Files) endpoint.ReactionConfig {
	t.Helper()
	r, err := scenario.Reaction(nic, line, files)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// text is a file of the NIC of that content.
func text(content string) scenario.Files {
	return func(string) ([]byte, error) { return []byte(content), nil }
}

// link is what a test's sender is connected to.
type link struct {
	line int64
	mtu  int
}

var gigabit = link{1_000_000_000, 1024}

func (l link) sender(r endpoint.ReactionConfig) nictest.Simulation {
	const delay = 1000
	return nictest.Simulation{Sender: endpoint.Config{Addr: senderAddr, LineRate: l.line, MTU: l.mtu, Reaction: r}, Peer: peerAddr, Delay: delay}
}

func measure(t *testing.T, plan []nictest.Trial, r endpoint.ReactionConfig, l link) *nictest.Result {
	t.Helper()
	result, err := nictest.Simulate(nictest.Config{Plan: plan, Addresses: addresses}, l.sender(r))
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
// difference is at most limit of the rate before. TestAllExperiments has the full plan.
func TestProfiles(t *testing.T) {
	plan := responses(nictest.Plan(true, true, false))
	for _, nic := range scenario.NICs() {
		t.Run(nic, func(t *testing.T) {
			t.Parallel()
			sameCurves(t, plan, nicOf(t, nic, gigabit.line, nil), gigabit)
		})
	}
}

// limit is how much the rates of an experiment may differ, in proportion to the rate before.
const limit = 0.05

// sameCurves measures a reaction point, and the one that the measured profile's file describes, and compares their rates.
func sameCurves(t *testing.T, plan []nictest.Trial, r endpoint.ReactionConfig, l link) {
	t.Helper()
	a := measure(t, plan, r, l)
	report := nictest.NewReport(a, nictest.Identity{Name: "measured"}, "fd00::2", "test")
	again, err := nictest.Trials(nictest.Config{Plan: plan, Addresses: addresses}, l.sender(nicOf(t, "measured.yaml", l.line, text(report.File))))
	if err != nil {
		t.Fatal(err)
	}
	if report.Verdict != nictest.ObeysCNPs || len(a.Trials) != len(plan) || len(again) != len(plan) {
		t.Fatalf("%s, %d and %d experiments", report.Verdict, len(a.Trials), len(again))
	}
	largest := 0.0
	for i := range a.Trials {
		x, y := &a.Trials[i], &again[i]
		until := int64(math.MaxInt64)
		if l.chance(x) {
			until = x.Last
			wait := l.wait(x.Response.Lowest)
			if late := y.Response.Recovered - x.Response.Recovered; late > wait || late < -wait {
				t.Errorf("%s: the rate is back %d ns later, expected at most the %d ns for one packet; measured %+v, again %+v", x.Name, late, wait, x.Response, y.Response)
			}
		}
		d := difference(x, y, until)
		if largest = max(largest, d); !(d <= limit) {
			t.Errorf("%s: the rates differ by %.1f %%; measured %+v, again %+v", x.Name, 100*d, x.Response, y.Response)
		}
	}
	t.Logf("the rates differ by at most %.1f %%", 100*largest)
	if t.Failed() {
		t.Logf("fit %.4f of %+v:\n%s", a.FitError, r.DCQCN, report.File)
	}
}

// wait is how long one packet takes at a rate, ns.
func (l link) wait(rate float64) int64 { return int64(float64(l.mtu) * 8 * 1e9 / rate) }

// chance reports whether the recovery of an experiment is chance: it goes on after the wait for one packet, which takes more than limit of the experiment,
// and began whenever the packet before was sent. TestRepeatability shows how much that is.
func (l link) chance(t *nictest.TrialResult) bool {
	end := t.Points[len(t.Points)-1]
	return t.Group == nictest.Flood && t.Response.Reduced && float64(l.wait(t.Response.Lowest)) > limit*float64(end.At+end.Width)
}

// difference is the mean difference of two trials' rates until a time, in proportion to the rate before; NaN without any.
func difference(x, y *nictest.TrialResult, until int64) float64 {
	differs, whole := 0.0, 0.0
	for j := range min(len(x.Points), len(y.Points)) {
		p, q := x.Points[j], y.Points[j]
		if p.At >= until {
			break
		}
		differs += math.Abs(p.Rate-q.Rate) * float64(p.Width)
		whole += x.Response.Before * float64(p.Width)
	}
	return differs / whole
}
