//go:build !nobgp

package bgp

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/effort"
)

// instead is what a process does that a test has started, in place of running tests; nil in all others.
var instead func() error

// TestMain lets more tests run at once than there are cores: most of their time they wait for the timers of BGP.
func TestMain(m *testing.M) {
	if instead != nil {
		if err := instead(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	_ = flag.Set("test.parallel", "16") // a command line's -parallel comes later
	os.Exit(m.Run())
}

// parallel lets a test run beside others, but not under the race detector: GoBGP writes variables of its packages whenever a speaker starts. That is a race only between
// speakers of one process, of which the gateway has one.
func parallel(t *testing.T) {
	if effort.Race == 0 {
		t.Parallel()
	}
}
