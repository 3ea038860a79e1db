// Package assemble turns a configuration snapshot into a dataplane: ports, queues, tables and the policy. The gateway and the
// replay both use it, so they run the same dataplane. It opens no device and starts nothing.
package assemble

import (
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// Options are the settings that are not in a configuration.
type Options struct {
	Backends []burst.Backend // one per worker
	Memory   *Memory         // for queues and tables, released after the dataplane's last use; nil: never
	Seed     uint64          // of the hashes
	Ended    func(*dataplane.FlowRecord)
	// Addresses are the ports' MAC addresses, the sources of PFC frames and of answers to ARP and Neighbor Discovery; nil or zero: a locally
	// administered address.
	Addresses [][6]byte
}

// Dataplane makes the dataplane of a configuration.
func Dataplane(c *config.Config, o Options) (*dataplane.Dataplane, error) {
	d, err := Settings(c, len(o.Backends), o.Seed, o.Addresses)
	if err != nil {
		return nil, err
	}
	if o.Memory == nil {
		o.Memory = &Memory{}
	}
	d.Backends, d.Ended, d.Allocate = o.Backends, o.Ended, o.Memory.Allocate
	return dataplane.New(d)
}

// Settings is the configuration of a dataplane with a number of workers, without backends and allocator. addresses are as in Options.
func Settings(c *config.Config, workers int, seed uint64, addresses [][6]byte) (dataplane.Config, error) {
	policy, err := Policy(c, seed)
	return dataplane.Config{
		Ports: ports(c, workers, addresses), Seed: seed, Flows: (c.Flows.Capacity + workers - 1) / workers, Paired: c.Flows.Paired,
		Aging: int64(c.Flows.Aging), Policy: policy,
	}, err
}

// Frames is how many frames the dataplane of a configuration can hold at once: queued data, frames that pacing holds back, queued notifications, spares,
// and frames between a device and a queue.
func Frames(c *config.Config, workers int) int {
	n := 0
	for i := range c.Ports {
		n += len(c.Ports[i].Classes)*c.Ports[i].QueueFrames + dataplane.PacedFrames(c.Ports[i].Paced)
	}
	return n + workers*dataplane.WorkerFrames(len(c.Ports), c.DPDK.Burst)
}

// QueueMemory is the memory in bytes that full queues of a configuration need, without the frames' buffers.
func QueueMemory(c *config.Config) int {
	const entry, share = 32, 8 // bytes of a frame in a queue, and in the flows' shares of it
	n := 0
	for i := range c.Ports {
		n += len(c.Ports[i].Classes) * c.Ports[i].QueueFrames
	}
	return n*len(c.DPDK.Workers)*(entry+share) + pacers(c)
}

// pacers is the memory in bytes that the workers need for pacing.
func pacers(c *config.Config) (n int) {
	for i := range c.Ports {
		if workers := len(c.DPDK.Workers); c.Ports[i].Paced > 0 {
			n += workers * dataplane.PacerMemory(c.Ports[i].Paced/uint64(workers))
		}
	}
	return n
}

// LargestFrame is the size in bytes of the largest frame that a port of the configuration accepts: its MTU, Ethernet and two VLAN tags.
func LargestFrame(c *config.Config) int {
	mtu := 0
	for i := range c.Ports {
		mtu = max(mtu, c.Ports[i].MTU)
	}
	return mtu + packet.EthernetLen + packet.MaxTags*packet.VLANTagLen
}

func ports(c *config.Config, workers int, addresses [][6]byte) []dataplane.PortConfig {
	out := make([]dataplane.PortConfig, len(c.Ports))
	for i := range c.Ports {
		p := &c.Ports[i]
		out[i] = dataplane.PortConfig{
			Role: dataplane.Role(p.Role), Tap: p.Tap, Peer: p.Peer, Queue: queue(p), Classes: len(p.Classes), Paced: p.Paced / uint64(workers),
			FlowControl: flowControl(c, i, addresses),
		}
		if i < len(addresses) {
			out[i].Address = addresses[i]
		}
	}
	return out
}

// queue is the configuration of a port's queue.
func queue(p *config.Port) egress.Queue {
	q := egress.Queue{Rate: p.Rate, Capacity: p.QueueCapacity, Frames: p.QueueFrames}
	for class := range p.Classes {
		for dscp := range q.ClassOf {
			if p.Classes[class].DSCP>>dscp&1 == 1 {
				q.ClassOf[dscp] = uint8(class)
			}
		}
	}
	return q
}

// qpMap is the operator's map of QPs. The seed is that of its hash.
func qpMap(c *config.Config, seed uint64) (*pairing.QPMap, error) {
	out := make([]pairing.QPPair, len(c.QPMap))
	for i, p := range c.QPMap {
		out[i] = pairing.QPPair{
			Source: packet.AddrFrom(p.Source), Destination: packet.AddrFrom(p.Destination),
			SourceQP: p.SourceQP, DestinationQP: p.DestinationQP,
		}
		out[i].Scope, out[i].InScope = p.Scope()
	}
	return pairing.NewQPMap(out, seed)
}
