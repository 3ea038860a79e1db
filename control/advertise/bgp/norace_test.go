//go:build !nobgp && !race

package bgp

import "testing"

// parallel lets a test run beside others, as most of its time it waits for the timers of BGP.
func parallel(t *testing.T) { t.Parallel() }
