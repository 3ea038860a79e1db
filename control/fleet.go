package control

import (
	"context"
	"encoding/json"
	"time"

	"github.com/cnpgate/cnpgate/control/episode"
	"github.com/cnpgate/cnpgate/control/fleetlink"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/fleet"
	"github.com/cnpgate/cnpgate/fleet/attach"
)

// joinFleet takes part in the gateway's fleet, until the context ends.
func (g *gateway) joinFleet(ctx context.Context, note func(error)) error {
	c := g.started
	var queues []attach.Queue
	for i := range c.Ports {
		for class := range c.Ports[i].ClassNames {
			queues = append(queues, attach.Queue{Port: i, Class: class, Name: c.Ports[i].Name, Bottleneck: c.Ports[i].Bottleneck})
		}
	}
	p, err := fleetlink.Open(fleetlink.Options{
		Config: c.Fleet, Version: g.options.Build.Version, Log: g.options.Log, Pairing: g.plane.Pairing(), Peers: g.plane.Peers(), Seed: g.seed,
		Plane:  attach.New(g.plane, queues, func() int64 { return time.Now().UnixNano() }),
		Answer: func(path string) []byte { return g.servers.api.Get(path) },
		Hints:  func(host string, m *fleet.HintMessage) error { return g.servers.api.TakeHints(host, m) },
		Note:   note,
	})
	if err != nil {
		return err
	}
	g.fleet.Store(p)
	p.Run(ctx)
	return nil
}

// fleetStatus is the state of the fleet as this gateway sees it.
func (g *gateway) fleetStatus() fleetlink.FleetStatus {
	if p := g.fleet.Load(); p != nil {
		return p.Status()
	}
	return fleetlink.FleetStatus{}
}

// publishEpisode stores an episode that has ended in the stream of all gateways.
func (g *gateway) publishEpisode(event episode.Event, r *report.Episode) {
	p := g.fleet.Load()
	if p == nil || event == episode.Began {
		return
	}
	if b, err := json.Marshal(r); err == nil {
		p.Publish(b)
	}
}
