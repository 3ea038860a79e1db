package dataplane_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/dataplane"
)

// onPages gives a dataplane memory of the kernel's, which costs time only where it is used: a fuzz target makes a dataplane for each input, and zeroing its tables would take
// most of the time.
func onPages(t *testing.T) func(*dataplane.Config) {
	return func(c *dataplane.Config) {
		c.Allocate = func(n int) ([]byte, error) {
			b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
			if err == nil {
				t.Cleanup(func() { _ = unix.Munmap(b) })
			}
			return b, err
		}
	}
}
