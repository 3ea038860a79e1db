//go:build !nodpdk

package dpdk

import (
	"fmt"
	"slices"
	"testing"
)

func TestCapabilitiesAfterStart(t *testing.T) {
	for _, c := range []struct {
		device, driver string
		want           []string
	}{
		{"0000:3b:00.0", "net_ice", []string{}},
		{"3b:00.0", "mlx5_pci", []string{"CAP_NET_ADMIN", "CAP_NET_RAW"}},
		{"net_af_packet0", "net_af_packet", []string{"CAP_NET_ADMIN", "CAP_NET_RAW"}},
		{"net_vhost0", "net_vhost", []string{"CAP_DAC_OVERRIDE"}},
		{"net_null0", "net_null", []string{}},
		{"net_failsafe0", "net_failsafe", []string{"all"}},
	} {
		if got := capabilitiesAfterStart(c.device, c.driver).Names(); !slices.Equal(got, c.want) {
			t.Errorf("%s, %s: %v, want %v", c.device, c.driver, got, c.want)
		}
	}
}

// TestLimited: a thread counts as limited only if no set has more than is kept, and none can come back.
func TestLimited(t *testing.T) {
	status := func(inherited, permitted, effective, ambient uint64, fixed int) string {
		return fmt.Sprintf("Name:\tcnpgate\nCapInh:\t%016x\nCapPrm:\t%016x\nCapEff:\t%016x\nCapBnd:\t000001ffffffffff\nCapAmb:\t%016x\nNoNewPrivs:\t%d\nSeccomp:\t0\n",
			inherited, permitted, effective, ambient, fixed)
	}
	keep := netAdmin | netRaw
	all := uint64(AllCapabilities)
	for _, c := range []struct {
		name, status string
		want         bool
	}{
		{"all kept", status(0, uint64(keep), uint64(keep), 0, 1), true},
		{"none", status(0, 0, 0, 0, 1), true},
		{"inheritable", status(all, 0, 0, 0, 1), false},
		{"permitted", status(0, all, 0, 0, 1), false},
		{"effective", status(0, uint64(keep), uint64(keep|bpf), 0, 1), false},
		{"ambient", status(0, 0, 0, 1, 1), false},
		{"may gain some", status(0, 0, 0, 0, 0), false},
		{"empty", "", false},
	} {
		if got := limited(c.status, keep); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
