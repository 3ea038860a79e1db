// Package assemble turns a configuration snapshot into a dataplane: ports, queues, tables and the policy. The gateway and the
// replay assemble theirs here, so that both run the same thing. It opens no device and starts nothing.
package assemble

import (
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// Options are what a configuration doesn't say.
type Options struct {
	Backends []burst.Backend // one a worker
	Memory   *Memory         // for queues and tables, released after the dataplane's last use; nil: never
	Seed     uint64          // of the hashes
	Ended    func(*dataplane.FlowRecord)
}

// Dataplane makes the dataplane of a configuration.
func Dataplane(c *config.Config, o Options) (*dataplane.Dataplane, error) {
	static, err := qpMap(c.QPMap, o.Seed)
	if err != nil {
		return nil, err
	}
	if o.Memory == nil {
		o.Memory = &Memory{}
	}
	return dataplane.New(dataplane.Config{
		Ports: ports(c), Backends: o.Backends, Seed: o.Seed, Ended: o.Ended,
		Flows: (c.Flows.Capacity + len(o.Backends) - 1) / len(o.Backends), Paired: c.Flows.Paired, Aging: int64(c.Flows.Aging),
		Static: static, Policy: Policy(c), Allocate: o.Memory.Allocate,
	})
}

// Frames is how many frames the dataplane of a configuration can hold at once: queued data, queued notifications, spares, and
// what is on its way between the device and a queue.
func Frames(c *config.Config, workers int) int {
	n := 0
	for i := range c.Ports {
		n += len(c.Ports[i].Classes) * c.Ports[i].QueueFrames
	}
	return n + workers*dataplane.WorkerFrames(len(c.Ports), c.DPDK.Burst)
}

// QueueMemory is how many bytes the queues of a configuration take when they are full, less the frames' buffers.
func QueueMemory(c *config.Config) int {
	const entry, share = 28, 8 // bytes of a frame in a queue, and in the flows' shares of it
	n := 0
	for i := range c.Ports {
		n += len(c.Ports[i].Classes) * c.Ports[i].QueueFrames
	}
	return n * len(c.DPDK.Workers) * (entry + share)
}

// Room is the octets of the largest frame that a port of the configuration takes: its MTU, Ethernet and two VLAN tags.
func Room(c *config.Config) int {
	mtu := 0
	for i := range c.Ports {
		mtu = max(mtu, c.Ports[i].MTU)
	}
	return mtu + packet.EthernetLen + packet.MaxTags*packet.VLANTagLen
}

func ports(c *config.Config) []dataplane.PortConfig {
	out := make([]dataplane.PortConfig, len(c.Ports))
	for i := range c.Ports {
		p := &c.Ports[i]
		out[i] = dataplane.PortConfig{
			Role: dataplane.Role(p.Role), Peer: p.Peer, Rate: p.Rate,
			Capacity: p.QueueCapacity, Frames: p.QueueFrames, Classes: len(p.Classes),
		}
		for class := range p.Classes {
			for dscp := range 64 {
				if p.Classes[class].DSCP>>dscp&1 == 1 {
					out[i].ClassOf[dscp] = uint8(class)
				}
			}
		}
	}
	return out
}

func qpMap(pairs []config.QPPair, seed uint64) (*pairing.QPMap, error) {
	out := make([]pairing.QPPair, len(pairs))
	for i, p := range pairs {
		out[i] = pairing.QPPair{
			Source: packet.AddrFrom(p.Source), Destination: packet.AddrFrom(p.Destination),
			SourceQP: p.SourceQP, DestinationQP: p.DestinationQP,
		}
	}
	return pairing.NewQPMap(out, seed)
}
