// Package dataplane is the gateway's worker: it forwards every frame from one port of a pair to the other, learns the RDMA flows, holds
// frames in egress queues, and responds to congestion by marking CE and by notifying senders. Its backend, memory and time come from the
// caller, so the gateway, the replay and the tests run the same code. It never logs, starts no goroutine, opens no device and reads no
// clock. A worker doesn't allocate.
//
// Threads: a Worker belongs to one goroutine. Workers of one Dataplane share the lines, the limits and the published values, which are all
// atomic. Any goroutine may read the published counters and replace the policy.
package dataplane

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/dataplane/link"
	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/dataplane/respond"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/dataplane/trace"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// Config describes a dataplane.
type Config struct {
	Ports     []PortConfig
	Backends  []burst.Backend // one a worker
	Flows     int             // capacity of each worker's flow table
	Followed  int             // connections of each worker whose health is followed; 0: none
	Paired    int             // flows of all workers that can be paired at a time
	PeerFlows int             // flows that other gateways have seen; 0: none
	PeerAging int64           // ns after which one of them ends that was not seen again
	Aging     int64           // ns without a packet after which a flow ends
	// Scopes and StatedScopes are as in pairing.Config.
	Scopes       [][2]packet.Scope
	StatedScopes bool
	Seed         uint64 // of the hashes, so that an attacker can't choose colliding flows
	Policy       *Policy
	// Ended is nil, or is called on the worker's goroutine for each flow that ends. The record is valid during the call.
	Ended func(*FlowRecord)
	// Allocate returns zeroed memory, 64-byte aligned; off the Go heap if the garbage collector should not scan it.
	Allocate func(bytes int) ([]byte, error)
}

// Dataplane is the shared state of the workers of one gateway.
type Dataplane struct {
	ports       []PortConfig
	workers     []*Worker
	lines       []*egress.Line
	links       []*link.Link           // nil where a port has no flow control
	base        *Policy                // the operator's
	policy      atomic.Pointer[Policy] // the present one
	adaptations []adaptation           // by port; Adapt's
	paths       []path                 // by port
	limits      *notify.Limits
	pairing     *pairing.Pairing
	flows       int // capacity of each worker's flow table
	peers       *pairing.Peers
	host        *host.Stage
	law         *respond.Shared
	trace       atomic.Pointer[trace.Trace]
	wallClock   atomic.Int64 // offset in ns from the workers' clock to Unix time
}

// New makes a dataplane and its workers.
func New(c Config) (*Dataplane, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	c.Ports = addressed(c.Ports)
	d := &Dataplane{
		flows: c.Flows, ports: c.Ports, adaptations: make([]adaptation, len(c.Ports)), paths: make([]path, len(c.Ports)),
		law: respond.NewShared(len(c.Ports), len(c.Backends)),
	}
	var err error
	if d.limits, err = notify.NewLimits(len(c.Ports), c.Seed, c.Allocate); err != nil {
		return nil, err
	}
	if d.host, err = host.New(len(c.Ports), c.Seed, c.Allocate); err != nil {
		return nil, err
	}
	if d.pairing, err = newPairing(&c); err != nil {
		return nil, err
	}
	for _, p := range c.Ports {
		d.lines = append(d.lines, egress.NewLine(p.Rate))
		d.links = append(d.links, link.New(p.FlowControl, p.Classes))
	}
	if err := d.SetPolicy(c.Policy); err != nil {
		return nil, err
	}
	for i, b := range c.Backends {
		w, err := newWorker(d, i, b, &c)
		if err != nil {
			return nil, fmt.Errorf("worker %d: %w", i, err)
		}
		d.workers = append(d.workers, w)
	}
	if err := d.initPeers(&c); err != nil {
		return nil, err
	}
	d.introduce()
	return d, nil
}

// introduce makes the workers known to each other.
func (d *Dataplane) introduce() {
	for _, w := range d.workers {
		for _, other := range d.workers {
			w.state.Peers = append(w.state.Peers, &other.state)
			w.pacer.peers = append(w.pacer.peers, &other.pacer)
			w.listener.peers = append(w.listener.peers, &other.listener)
			w.requests.peers = append(w.requests.peers, &other.requests)
			for port := range w.state.Egress {
				if other != w {
					w.state.Egress[port].Share(&other.state.Egress[port])
				}
			}
		}
	}
}

// localAddress is the MAC address of a port whose device has none: locally administered (IEEE 802 8.4), and another one for each port.
func localAddress(port int) packet.MAC { return packet.MAC{0x02, 'c', 'n', 'p', 0, uint8(port)} }

// addressed is ports, each with a MAC address.
func addressed(ports []PortConfig) []PortConfig {
	out := slices.Clone(ports)
	for i := range out {
		if (out[i].Address == packet.MAC{}) {
			out[i].Address = localAddress(i)
		}
	}
	return out
}

// paired is the number of flows that can be paired: no more than there are, and at least one, as pairing refuses fewer.
func (c *Config) paired() int { return max(min(c.Paired, c.Flows*len(c.Backends)), 1) }

// newPairing makes the workers' shared state for learning source QPs.
func newPairing(c *Config) (*pairing.Pairing, error) {
	memory, err := c.Allocate(pairing.Size(c.paired()))
	if err != nil {
		return nil, err
	}
	peers := make([]int, len(c.Ports))
	for i := range c.Ports {
		peers[i] = c.Ports[i].Peer
	}
	return pairing.New(memory, pairing.Config{Flows: c.paired(), Egress: peers, Aging: c.Aging, Seed: c.Seed, Scopes: c.Scopes, StatedScopes: c.StatedScopes})
}

// Pairing is what the workers share to learn source QPs; SetHints is for any goroutine.
func (d *Dataplane) Pairing() *pairing.Pairing { return d.pairing }

// SetWallClock sets the offset in ns from the workers' clock to Unix time, for the timestamps in notifications. Any goroutine may call it,
// at any time.
func (d *Dataplane) SetWallClock(ahead int64) { d.wallClock.Store(ahead) }

// Unresponsive returns the senders that don't react to notifications, and how many were found so far. Any goroutine may call it.
func (d *Dataplane) Unresponsive() (senders []respond.UnresponsiveSender, found uint64) {
	return d.law.UnresponsiveSenders()
}

func (c *Config) validate() error {
	for i, p := range c.Ports {
		switch {
		case p.Peer < 0 || p.Peer >= len(c.Ports) || p.Peer == i || c.Ports[p.Peer].Peer != i || c.Ports[p.Peer].Role == p.Role:
			return fmt.Errorf("port %d: peer %d is not the other end of a fabric and WAN pair", i, p.Peer)
		case p.Classes < 1 || p.Classes > account.MaxClasses:
			return fmt.Errorf("port %d: %d traffic classes, expected 1 to %d", i, p.Classes, account.MaxClasses)
		}
		if err := p.Validate(p.Classes); err != nil {
			return fmt.Errorf("port %d: %w", i, err)
		}
		if err := p.FlowControl.Validate(p.Classes, c.Ports[p.Peer].Classes, &c.Ports[p.Peer].Queue); err != nil {
			return fmt.Errorf("port %d: %w", i, err)
		}
	}
	if len(c.Backends) == 0 || len(c.Ports) == 0 {
		return fmt.Errorf("no ports or no backends, expected at least one pair of ports and a backend for each worker")
	}
	if err := c.Policy.Validate(c.Ports); err != nil {
		return err
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

// WorkerFrames is the number of frames that one worker can hold besides those in its data queues: notifications, spares, and for every port
// a burst in each direction and a PFC frame.
func WorkerFrames(ports, burstSize int) int {
	return ports*(egress.NotificationFrames+2*burstSize+1) + burst.MaxSize
}

// Worker returns worker n, with the backend n of Config.Backends.
func (d *Dataplane) Worker(i int) *Worker { return d.workers[i] }

// StartTrace begins a trace; false if there is another one. Any goroutine may call it.
func (d *Dataplane) StartTrace(t *trace.Trace) bool {
	t.Init(len(d.workers))
	return d.trace.CompareAndSwap(nil, t)
}

// EndTrace ends a trace. Any goroutine may call it.
func (d *Dataplane) EndTrace(t *trace.Trace) { d.trace.CompareAndSwap(t, nil) }

// Parts of a Config that the stages share.
type (
	// PortConfig describes a port.
	PortConfig = stage.PortConfig
	// Role is what a port is connected to.
	Role = stage.Role
	// Policy is what a reload can change.
	Policy = stage.Policy
	// PortPolicy is what of it is about a port.
	PortPolicy = stage.PortPolicy
	// Domain is the domain filter.
	Domain = stage.Domain
)

// Roles of a port.
const (
	Fabric = stage.Fabric
	WAN    = stage.WAN
)
