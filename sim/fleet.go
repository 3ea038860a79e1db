package sim

import (
	"crypto/ed25519"
	"encoding/binary"
	"fmt"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/fleet"
	"github.com/cnpgate/cnpgate/fleet/attach"
	"github.com/cnpgate/cnpgate/fleet/bus"
)

// Fleet makes the gateways of a network a fleet: they share what they know over a simulated bus.
type Fleet struct {
	Bus bus.Config
	// Bottleneck says that all WAN ports are in front of one bottleneck.
	Bottleneck bool
}

// FleetResult is what a fleet has done.
type FleetResult struct {
	Messages uint64 `json:"messages"` // that were delivered
	Bytes    uint64 `json:"bytes"`
	Lost     uint64 `json:"lost"`
}

// team is the gateways' members and the bus between them.
type team struct {
	bus     *bus.Bus
	members []*fleet.Member
	next    int64
}

// teamEvery is the time between two looks at the bus, ns.
const teamEvery = 100_000

// formFleet makes the gateways a fleet.
func (s *Sim) formFleet() error {
	c := s.network.Fleet
	if c == nil {
		return nil
	}
	t := &team{bus: bus.New(c.Bus)}
	var parties []fleet.Party
	var keys []ed25519.PrivateKey
	for i := range s.gateways {
		seed := make([]byte, ed25519.SeedSize)
		binary.BigEndian.PutUint64(seed, uint64(i)+1)
		key := ed25519.NewKeyFromSeed(seed)
		keys = append(keys, key)
		parties = append(parties, fleet.Party{Name: fmt.Sprintf("gw-%d", i), Key: key.Public().(ed25519.PublicKey)})
	}
	for i, g := range s.gateways {
		trust, err := fleet.NewTrust("sim", parties)
		if err != nil {
			return err
		}
		var queues []attach.Queue
		for port := range g.ports {
			if g.wan(s, port) {
				queues = append(queues, attach.Queue{Port: port, Name: s.name(g.node)})
				if c.Bottleneck {
					queues[len(queues)-1].Bottleneck = "wan"
				}
			}
		}
		m := fleet.NewMember(fleet.Config{
			Site: "sim", Name: parties[i].Name, Version: "sim", Trust: trust, Pairing: g.plane.Pairing(), Peers: g.plane.Peers(), Pairs: 1 << 16,
			Started: epoch, Seed: s.network.Seed, Plane: attach.New(g.plane, queues, func() int64 { return s.now }),
			Sign: func(b []byte) ([]byte, error) { return ed25519.Sign(keys[i], b), nil },
			Send: func(subject string, b []byte) { t.bus.Send(i, subject, b, s.now) },
		})
		t.members = append(t.members, m)
		t.bus.Attach(m.Receive)
	}
	s.team = t
	return nil
}

// withPeers gives a gateway's dataplane memory for what others see.
func (f *Fleet) withPeers(c *dataplane.Config) {
	if f != nil {
		c.PeerFlows, c.PeerAging = max(c.Paired, 1024), int64(fleet.FlowLifetime)
	}
}

// meet delivers what has arrived at the members, and lets them do what is due.
func (t *team) meet(now int64) {
	if now < t.next {
		return
	}
	t.next = now + teamEvery
	t.bus.Deliver(now)
	for _, m := range t.members {
		m.Tick(now)
	}
}

// result is what the fleet has done; nil without one.
func (t *team) result() *FleetResult {
	if t == nil {
		return nil
	}
	return &FleetResult{t.bus.Messages, t.bus.Bytes, t.bus.Lost}
}
