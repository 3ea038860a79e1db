// Package assemble makes a dataplane of a configuration snapshot: the dataplane's settings are in the snapshot, and this package adds what depends on
// the host, on the number of workers, or on a secret seed. The gateway and the replay both use it, so they run the same dataplane. It opens no device
// and starts nothing.
package assemble

import (
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/pacing"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
	"github.com/cnpgate/cnpgate/proxy"
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

// localAddress is the source of PFC frames if no device has an address: locally administered (IEEE 802 8.4).
var localAddress = [6]byte{0x02, 'p', 'f', 'c', 0, 0}

// Settings is the configuration of a dataplane with a number of workers, without backends and allocator. addresses are as in Options.
func Settings(c *config.Config, workers int, seed uint64, addresses [][6]byte) (d dataplane.Config, err error) {
	d = c.Dataplane
	d.Seed, d.Flows = seed, (d.Flows+workers-1)/workers
	for i := range c.Scopes {
		d.Scopes = append(d.Scopes, c.Scopes[i].Scopes())
	}
	for i := range c.Ports {
		p := c.Ports[i].PortConfig
		p.Paced /= uint64(workers)
		if i < len(addresses) {
			p.Address = addresses[i]
		}
		if p.FlowControl != nil {
			f := *p.FlowControl
			if f.Address = p.Address; f.Address == [6]byte{} {
				f.Address = localAddress
			}
			p.FlowControl = &f
		}
		d.Ports = append(d.Ports, p)
	}
	d.Policy, err = Policy(c, seed)
	return d, err
}

// Policy is the part of a configuration that can change between a worker's bursts. The seed keys the hash of its QP map. The caller may change it, but
// not what it points to.
func Policy(c *config.Config, seed uint64) (*dataplane.Policy, error) {
	p, err := *c.Dataplane.Policy, error(nil)
	pairs := make([]pairing.QPPair, len(c.QPMap))
	for i := range c.QPMap {
		pairs[i] = c.QPMap[i].Stated()
	}
	if p.QPMap, err = pairing.NewQPMap(pairs, seed); err != nil {
		return nil, err
	}
	if p.Who.Enabled[packet.ProxyNotification] {
		if p.Proxies, err = proxy.NewSenders(c.Senders...); err != nil {
			return nil, err
		}
	}
	for i := range c.Ports {
		port := c.Ports[i].Policy
		port.Queue = &c.Ports[i].Queue
		p.Ports = append(p.Ports, port)
	}
	return &p, nil
}

// Frames is how many frames the dataplane of a configuration can hold at once: queued data, frames that pacing holds back, queued notifications, spares,
// and frames between a device and a queue.
func Frames(c *config.Config, workers int) int {
	n := workers * dataplane.WorkerFrames(len(c.Ports), c.DPDK.Burst)
	for i := range c.Ports {
		n += c.Ports[i].Classes*c.Ports[i].Frames + pacing.Frames(c.Ports[i].Paced)
	}
	return n
}

// QueueMemory is the memory in bytes that full queues and pacing of a configuration need, without the frames' buffers.
func QueueMemory(c *config.Config) (n int) {
	const entry, share = 32, 8 // bytes of a frame in a queue, and in the flows' shares of it
	workers := len(c.DPDK.Workers)
	for i := range c.Ports {
		p := &c.Ports[i]
		if n += p.Classes * p.Frames * workers * (entry + share); p.Paced > 0 {
			n += workers * pacing.Memory(p.Paced/uint64(workers))
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
