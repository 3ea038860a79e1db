//go:build !nobgp

package bgp

import (
	"flag"
	"fmt"
	"os"
	"testing"
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
