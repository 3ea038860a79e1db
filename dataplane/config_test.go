package dataplane_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/burst/inmem"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// TestNewRefuses: what a worker could not run with is an error that says where.
func TestNewRefuses(t *testing.T) {
	backend := func(ports int) burst.Backend {
		b, err := inmem.New(inmem.Config{Ports: ports, Burst: 1, BufferSize: 64, Memory: make([]byte, 64)})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	full := errors.New("no memory")
	for _, c := range []struct {
		want   string
		change func(*dataplane.Config)
	}{
		{"", func(*dataplane.Config) {}},
		{"port 0: peer 4", func(c *dataplane.Config) { c.Ports[0].Peer = 4 }},
		{"port 0: peer -1", func(c *dataplane.Config) { c.Ports[0].Peer = -1 }},
		{"port 0: peer 0", func(c *dataplane.Config) { c.Ports[0].Peer = 0 }},
		{"port 0: peer 3", func(c *dataplane.Config) { c.Ports[0].Peer = 3 }},
		{"port 0: peer 1", func(c *dataplane.Config) { c.Ports[1].Role = dataplane.Fabric }},
		{"port 2: rate of 99999", func(c *dataplane.Config) { c.Ports[2].Rate = 99_999 }},
		{"port 2: 0 traffic classes", func(c *dataplane.Config) { c.Ports[2].Classes = 0 }},
		{"port 2: 9 traffic classes", func(c *dataplane.Config) { c.Ports[2].Classes = 9 }},
		{"port 3: DSCP 63 is of class 1 of 1", func(c *dataplane.Config) { c.Ports[3].ClassOf[63] = 1 }},
		{"port 3: a queue of 0 bytes", func(c *dataplane.Config) { c.Ports[3].Capacity = 0 }},
		{"port 3: a queue of 4294967296 bytes", func(c *dataplane.Config) { c.Ports[3].Capacity = 1 << 32 }},
		{"0 frames", func(c *dataplane.Config) { c.Ports[3].Frames = 0 }},
		{"a backend for each worker", func(c *dataplane.Config) { c.Backends = nil }},
		{"no ports", func(c *dataplane.Config) { c.Ports, c.Policy = nil, testkit.DefaultPolicy(0) }},
		{"a policy for each port", func(c *dataplane.Config) { c.Policy = nil }},
		{"a policy for each port", func(c *dataplane.Config) { c.Policy = testkit.DefaultPolicy(3) }},
		{"worker 1 has 5 ports", func(c *dataplane.Config) { c.Backends = append(c.Backends, backend(5)) }},
		{"worker 0 has 3 ports", func(c *dataplane.Config) { c.Backends[0] = backend(3) }},
		{"worker 0: flowtable", func(c *dataplane.Config) { c.Flows = -1 }},
		{"no memory", func(c *dataplane.Config) { c.Allocate = func(int) ([]byte, error) { return nil, full } }},
	} {
		config := dataplane.Config{Backends: []burst.Backend{backend(4)}, Flows: 16, Policy: testkit.DefaultPolicy(4), Allocate: testkit.Heap}
		for i := range 4 {
			config.Ports = append(config.Ports, dataplane.PortConfig{
				Role: dataplane.Role(i % 2), Peer: i ^ 1, Queue: egress.Queue{Rate: 100_000, Capacity: 1<<32 - 1, Frames: 1}, Classes: 1,
			})
		}
		c.change(&config)
		_, err := dataplane.New(config)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, expected %q", err, c.want)
		}
	}
}

// TestNoMemoryAnywhere: whichever of the allocations fails, New says so and doesn't panic.
func TestNoMemoryAnywhere(t *testing.T) {
	full := errors.New("no memory")
	for fail := range 100 {
		n := 0
		b, err := inmem.New(inmem.Config{Ports: 2, Burst: 1, BufferSize: 64, Memory: make([]byte, 64)})
		if err != nil {
			t.Fatal(err)
		}
		config := dataplane.Config{Backends: []burst.Backend{b}, Flows: 16, Policy: testkit.DefaultPolicy(2)}
		for i := range 2 {
			config.Ports = append(config.Ports, dataplane.PortConfig{Role: dataplane.Role(i), Peer: i ^ 1, Queue: egress.Queue{Rate: 1e9, Capacity: 1e6, Frames: 8}, Classes: 2})
		}
		config.Allocate = func(bytes int) ([]byte, error) {
			if n++; n > fail {
				return nil, full
			}
			return testkit.Heap(bytes)
		}
		if _, err = dataplane.New(config); err == nil {
			if fail != 13+2*5 { // destinations, sources of notifications to a proxy, scopes that get answers, pairing, flow table, learner, accounts, senders, the law's flows, senders and slow flows, records of notifications and of suppressed ones; of each port notifications, two classes with their shares
				t.Errorf("%d allocations", fail)
			}
			return
		}
		if !errors.Is(err, full) {
			t.Errorf("allocation %d failed: error %v", fail+1, err)
		}
	}
	t.Error("never enough")
}
