package dataplane

import (
	"github.com/cnpgate/cnpgate/dataplane/respond"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/pairing"
)

// Peers are the flows that other gateways have seen; nil without Config.PeerFlows.
func (d *Dataplane) Peers() *pairing.Peers { return d.peers }

// Shared is what the control laws share, also with other gateways. Its exported methods are for any goroutine.
func (d *Dataplane) Shared() *respond.Shared { return d.law }

// initPeers reserves the memory for flows that other gateways have seen.
func (d *Dataplane) initPeers(c *Config) error {
	if c.PeerFlows == 0 {
		return nil
	}
	memory, err := c.Allocate(pairing.PeersSize(c.PeerFlows, c.paired()))
	if err != nil {
		return err
	}
	d.peers, err = d.pairing.JoinPeers(memory, c.PeerFlows, c.PeerAging, c.Seed+uint64(len(c.Backends)))
	return err
}

// NotifiedElsewhere records that another gateway has notified the sender of a flow, at a Unix time in ns, where F was rate, bytes/ns. The ingress
// port in the key is not used. Any goroutine may call it. It reports whether a worker has the flow.
func (d *Dataplane) NotifiedElsewhere(k *flowtable.Key, at int64, rate float32) (found bool) {
	at -= d.wallClock.Load()
	for port := range d.ports {
		if d.ports[port].Role != Fabric {
			continue
		}
		key := *k
		key.SetScope(k.Scope().At(port))
		for i, w := range d.workers {
			if x, state, ok := w.state.Flows.Find(&key); ok {
				found = true
				d.law.NotifiedElsewhere(i, flowtable.Ref{Index: x, Generation: state.Generation()}, at, rate)
			}
		}
	}
	return found
}
