// Package dataplane is the gateway's worker: it takes every frame from one port of a pair to the other, learns the RDMA flows
// among them, keeps the egress queues, and responds to congestion by marking CE and by notifying senders. It works on a burst
// backend and on memory and time from its caller, so the gateway, the replay and the tests run the same code. It never logs,
// starts no goroutine, opens no device and reads no clock, and in a worker nothing allocates.
//
// Threads: a Worker belongs to one goroutine. Workers of one Dataplane share the lines, the limits and what they publish, all of
// it atomic. Any goroutine may read the published counters and replace the policy.
package dataplane

import (
	"fmt"
	"sync/atomic"

	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/pairing"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// MaxClasses bounds the traffic classes of a port.
const MaxClasses = 8

// notificationFrames bounds the notifications that wait for a port, a worker.
const notificationFrames = 256

// Role of a port.
type Role uint8

const (
	Fabric Role = iota // the data centre's side
	WAN                // the other side
)

// PortConfig describes a port.
type PortConfig struct {
	Role     Role
	Peer     int       // the port its frames go to
	Rate     uint64    // bit/s on the line, where a frame takes 24 bytes more than its length; at least 100,000
	Capacity uint64    // bytes of frames that may wait in a class; less than 4 GiB
	Frames   int       // frames that may wait in a class
	Classes  int       // 1 to MaxClasses; class 0 goes first
	ClassOf  [64]uint8 // class of a DSCP; frames without one go by DSCP 0
}

// Config describes a dataplane.
type Config struct {
	Ports    []PortConfig
	Backends []burst.Backend // one a worker
	Flows    int             // capacity of each worker's flow table
	Paired   int             // flows of all workers that can be paired at a time
	Aging    int64           // ns without a packet after which a flow is forgotten
	Seed     uint64          // of the hashes, so that nobody outside can aim at a bucket
	Static   *pairing.QPMap  // the operator's pairs, or nil
	Policy   *Policy
	// Ended is nil, or is called on the worker's goroutine for each flow that ends. The record is valid during the call.
	Ended func(*FlowRecord)
	// Allocate gives zeroed memory, 64-byte aligned; off the heap where the collector is not to see it.
	Allocate func(bytes int) ([]byte, error)
}

// Dataplane is what the workers of one gateway have in common.
type Dataplane struct {
	ports         []PortConfig
	workers       []*Worker
	lines         []*line
	policy        atomic.Pointer[Policy]
	toPort        []atomic.Int64 // limit of notifications, by port
	toDestination *ratelimit.Destinations
	pairing       *pairing.Pairing
}

// New makes a dataplane and its workers.
func New(c Config) (*Dataplane, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	d := &Dataplane{ports: c.Ports, toPort: make([]atomic.Int64, len(c.Ports))}
	d.policy.Store(c.Policy)
	memory, err := c.Allocate(ratelimit.Size(destinations))
	if err != nil {
		return nil, err
	}
	if d.toDestination, err = ratelimit.New(memory, destinations, c.Seed); err != nil {
		return nil, err
	}
	if d.pairing, err = newPairing(&c); err != nil {
		return nil, err
	}
	for _, p := range c.Ports {
		d.lines = append(d.lines, newLine(p.Rate))
	}
	for i, b := range c.Backends {
		w, err := newWorker(d, i, b, &c)
		if err != nil {
			return nil, fmt.Errorf("worker %d: %w", i, err)
		}
		d.workers = append(d.workers, w)
	}
	return d, nil
}

// newPairing makes what the workers share to learn source QPs.
func newPairing(c *Config) (*pairing.Pairing, error) {
	flows := max(min(c.Paired, c.Flows*len(c.Backends)), 1) // a worker refuses fewer
	memory, err := c.Allocate(pairing.Size(flows))
	if err != nil {
		return nil, err
	}
	peers := make([]int, len(c.Ports))
	for i := range c.Ports {
		peers[i] = c.Ports[i].Peer
	}
	return pairing.New(memory, pairing.Config{Flows: flows, Peers: peers, Aging: c.Aging, Seed: c.Seed, Static: c.Static})
}

// Pairing is what the workers share to learn source QPs; SetHints and SetStatic are for any goroutine.
func (d *Dataplane) Pairing() *pairing.Pairing { return d.pairing }

// destinations is how many senders' limits are kept at once.
const destinations = 65536

func (c *Config) validate() error {
	for i, p := range c.Ports {
		switch {
		case p.Peer < 0 || p.Peer >= len(c.Ports) || p.Peer == i || c.Ports[p.Peer].Peer != i || c.Ports[p.Peer].Role == p.Role:
			return fmt.Errorf("port %d: peer %d is not the other end of a fabric and WAN pair", i, p.Peer)
		case p.Rate < 100_000:
			return fmt.Errorf("port %d: rate of %d bit/s, expected at least 100000", i, p.Rate)
		case p.Classes < 1 || p.Classes > MaxClasses:
			return fmt.Errorf("port %d: %d traffic classes, expected 1 to %d", i, p.Classes, MaxClasses)
		case p.Frames < 1 || p.Capacity < 1 || p.Capacity >= 1<<32:
			return fmt.Errorf("port %d: a queue of %d bytes and %d frames, expected at least 1 of each and less than 4 GiB", i, p.Capacity, p.Frames)
		}
		for dscp, class := range p.ClassOf {
			if int(class) >= p.Classes {
				return fmt.Errorf("port %d: DSCP %d is of class %d of %d", i, dscp, class, p.Classes)
			}
		}
	}
	if len(c.Backends) == 0 || len(c.Ports) == 0 || c.Policy == nil || len(c.Policy.Ports) != len(c.Ports) {
		return fmt.Errorf("a dataplane needs ports, a backend a worker and a policy for each port")
	}
	for i, b := range c.Backends {
		if n := len(b.Batch().Ports); n != len(c.Ports) {
			return fmt.Errorf("the backend of worker %d has %d ports, expected %d", i, n, len(c.Ports))
		}
	}
	return nil
}

// Workers is the number of workers.
func (d *Dataplane) Workers() int { return len(d.workers) }

// WorkerFrames is how many frames one worker can hold besides those in its data queues: notifications, spares, and a burst each
// way on every port.
func WorkerFrames(ports, burstSize int) int {
	return ports*(notificationFrames+2*burstSize) + burst.MaxSize
}

// Worker is the worker of a number, as in Config.Backends.
func (d *Dataplane) Worker(i int) *Worker { return d.workers[i] }

// SetPolicy replaces the policy, which must be for the same ports; each worker uses it from its next burst on.
func (d *Dataplane) SetPolicy(p *Policy) error {
	if len(p.Ports) != len(d.ports) {
		return fmt.Errorf("a policy for %d ports, expected %d", len(p.Ports), len(d.ports))
	}
	d.policy.Store(p)
	return nil
}
