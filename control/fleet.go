package control

import (
	"encoding/json"
	"time"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/episode"
	"github.com/cnpgate/cnpgate/control/fleetlink"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/fleet"
	"github.com/cnpgate/cnpgate/fleet/attach"
)

// openFleet makes the gateway's part in its fleet, if the configuration has one. It starts nothing.
func (g *gateway) openFleet() (err error) {
	c := g.started
	if c.Fleet == nil {
		return nil
	}
	var queues []attach.Queue
	for i := range c.Ports {
		for class := range c.Ports[i].ClassNames {
			queues = append(queues, attach.Queue{Port: i, Class: class, Name: c.Ports[i].Name, Bottleneck: c.Ports[i].Bottleneck})
		}
	}
	g.fleet, err = fleetlink.Open(fleetlink.Options{
		Config: c.Fleet, Version: g.options.Build.Version, Log: g.options.Log, Pairing: g.plane.Pairing(), Peers: g.plane.Peers(), Seed: g.seed,
		Plane:  attach.New(g.plane, queues, func() int64 { return time.Now().UnixNano() }),
		Answer: func(path string) []byte { return g.servers.api.Get(path) },
		Hints:  func(host string, m *fleet.HintMessage) error { return g.servers.api.TakeHints(host, m) },
	})
	return err
}

// Fleet is the gateway's part in its fleet, nil without.
func (g *gateway) Fleet() api.Fleet {
	if g.fleet == nil {
		return nil
	}
	return g.fleet
}

// publishEpisode stores an episode that has ended in the stream of all gateways.
func (g *gateway) publishEpisode(event episode.Event, r *report.Episode) {
	if g.fleet == nil || event == episode.Began {
		return
	}
	if b, err := json.Marshal(r); err == nil {
		g.fleet.Publish(b)
	}
}
