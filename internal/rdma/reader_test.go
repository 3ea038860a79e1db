//go:build linux

package rdma

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestExplain: what the kernel's errors mean, and what to do.
func TestExplain(t *testing.T) {
	for _, c := range []struct {
		command int
		err     error
		want    string
	}{
		{cmdDevice, unix.EPROTONOSUPPORT, "load the driver"},
		{cmdDevice, unix.EPERM, "run as root"},
		{cmdQPs, unix.EINVAL, "Linux 4.17 or later"},
		{cmdCMIDs, fmt.Errorf("from netlink: %w", unix.EOPNOTSUPP), "Linux 4.17 or later"},
		{cmdDevice, unix.ENOBUFS, "no buffer space"},
	} {
		if err := explain(c.command, c.err); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("command %d, %v: %v, expected %q", c.command, c.err, err, c.want)
		}
	}
	if err := explain(cmdQPs, nil); err != nil {
		t.Error(err)
	}
}
