//go:build long

package nictest_test

import (
	"math"
	"testing"

	"github.com/cnpgate/cnpgate/nictest"
	"github.com/cnpgate/cnpgate/sim/scenario"
)

// faster is a link on which a packet takes 33 ms at 1 Mbit/s, the least rate of connectx-default.
var faster = link{10_000_000_000, 4096}

// TestAllExperiments: the same with the full plan, on two links.
func TestAllExperiments(t *testing.T) {
	plan := responses(nictest.Plan(false, true, false))
	for _, nic := range scenario.NICs() {
		for name, l := range map[string]link{nic + ", 1 Gbit/s": gigabit, nic + ", 10 Gbit/s": faster} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				sameCurves(t, plan, nicOf(t, nic, l.line, nil), l)
			})
		}
	}
}

// TestOtherProfiles: the same for NICs that resemble none of those that come with cnpgate.
func TestOtherProfiles(t *testing.T) {
	plan := responses(nictest.Plan(true, true, false))
	for name, keys := range map[string]string{
		"delayed":    "reaction_delay: 300us\ndcqcn: {cut: at-once, g: 0.02, alpha_timer: 20us, rate_timer: 150us, additive_increase: 200Mbps, byte_counter: 0B}",
		"two counts": "dcqcn: {cut: period, decrease_interval: 20us, g: 0.01, alpha_timer: 10us, rate_timer: 400us, byte_counter: 1MB, fast_recovery: 3, clamp_target: false}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sameCurves(t, plan, nicOf(t, "other.yaml", gigabit.line, text("name: other\nsource: a test\nobeys: [standard-cnp]\n"+keys)), gigabit)
		})
	}
}

// TestRepeatability: the same NIC at the end of another cable has the same rates within 1 %, except in recoveries that are chance. No profile can have the
// same curve there.
func TestRepeatability(t *testing.T) {
	plan := responses(nictest.Plan(false, true, false))
	sim := faster.sender(nicOf(t, "connectx-default", faster.line, nil))
	var first []nictest.TrialResult
	most := 0.0
	for _, delay := range []int64{1000, 1300, 1700, 4000} {
		sim.Delay = delay
		trials, err := nictest.Trials(nictest.Config{Plan: plan, Addresses: addresses}, sim)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = trials
			continue
		}
		for i := range trials {
			x := &first[i]
			d := difference(x, &trials[i], math.MaxInt64)
			if faster.chance(x) {
				most = max(most, d)
			} else if !(d < 0.01) {
				t.Errorf("%s, %d ns: the rates differ by %.1f %%", x.Name, delay, 100*d)
			}
		}
	}
	if t.Logf("after a flood, recoveries of the same NIC differ by up to %.1f %%", 100*most); most < limit {
		t.Errorf("recoveries differ by %.1f %% only: compare them too", 100*most)
	}
}
