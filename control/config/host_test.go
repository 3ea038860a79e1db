package config

import (
	"errors"
	"testing"
)

// TestRefused: an error about this host has the position of the key, or of the section that the key is missing in.
func TestRefused(t *testing.T) {
	c, err := Parse("c.yaml", []byte(twoPorts+"dpdk:\n  workers: [3, 4]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Refused(nil); err != nil {
		t.Errorf("no faults: %v", err)
	}
	no := errors.New("dpdk: no")
	err = c.Refused([]Fault{{"dpdk.workers[1]", no}, {"ports[1].device", no}, {"dpdk.eal_args", no}, {"flows.nothing", no}})
	const want = "c.yaml:1:1: flows.nothing: no\nc.yaml:4:26: ports[1].device: no\nc.yaml:6:3: dpdk.eal_args: no\nc.yaml:6:16: dpdk.workers[1]: no"
	if err == nil || err.Error() != want {
		t.Errorf("%v\nexpected\n%s", err, want)
	}
}
