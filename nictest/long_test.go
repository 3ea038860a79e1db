//go:build long

package nictest_test

import (
	"testing"

	"github.com/cnpgate/cnpgate/nictest"
)

// TestOtherProfiles: the same for NICs that resemble none of those that come with cnpgate.
func TestOtherProfiles(t *testing.T) {
	plan := responses(nictest.Plan(true, true, false))
	for name, keys := range map[string]string{
		"delayed":    "reaction_delay: 300us\ndcqcn: {cut: at-once, g: 0.02, alpha_timer: 20us, rate_timer: 150us, additive_increase: 200Mbps, byte_counter: 0B}",
		"two counts": "dcqcn: {cut: period, decrease_interval: 20us, g: 0.01, alpha_timer: 10us, rate_timer: 400us, byte_counter: 1MB, fast_recovery: 3, clamp_target: false}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := "name: other\nsource: a test\nobeys: [standard-cnp]\n" + keys
			sameCurves(t, plan, nicOf(t, "other.yaml", func(string) ([]byte, error) { return []byte(text), nil }))
		})
	}
}
