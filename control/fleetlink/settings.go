// Package fleetlink connects a fleet.Member to NATS: to a server in the gateway itself and those of its peers, or to an external cluster.
//
// With embedded servers each gateway publishes at its own server, and subscribes at those of the others. There is no cluster, so that no
// gateway depends on another: who can't be reached is silent. Nothing in this package waits for anything that a worker does, or the reverse:
// one goroutine drives the member, and the connections only fill and empty queues that drop the oldest message when they are full. A build
// with the tag nofleet has none of it.
package fleetlink

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/fleet"
	"github.com/cnpgate/cnpgate/pairing"
)

// Options are what a Participant needs besides the configuration.
type Options struct {
	Config  *config.Fleet
	Version string
	Log     zerolog.Logger
	Pairing *pairing.Pairing
	Peers   *pairing.Peers
	Plane   fleet.Plane
	Seed    uint64
	// Answer answers a question of another gateway: the path of a GET request of the API.
	Answer func(path string) []byte
	// Hints takes hints of a host.
	Hints func(host string, m *fleet.HintMessage) error
	// Note gets nil when all connections are up, and else an error that says which are not.
	Note func(error)
}

// FleetStatus is the state of the fleet, as the API shows it.
type FleetStatus struct {
	Enabled     bool               `json:"enabled" doc:"The configuration has a fleet."`
	Site        string             `json:"site,omitempty" doc:"Name of the site."`
	Name        string             `json:"name,omitempty" doc:"Name of this gateway in the fleet."`
	Members     []fleet.MemberView `json:"members" doc:"The gateways that may take part, by name."`
	Connections []FleetConnection  `json:"connections" doc:"The connections to nats-servers."`
	Shares      FleetShares        `json:"shares" doc:"What is shared."`
	Counters    map[string]uint64  `json:"counters" doc:"Counters of the fleet, by name."`
	Refused     map[string]uint64  `json:"refused" doc:"Messages without effect, by reason."`
}

// FleetShares is what a gateway shares with the others.
type FleetShares struct {
	Wants       int `json:"wants" doc:"Pairs of hosts whose flows this gateway asks others for."`
	Wanted      int `json:"wanted" doc:"Pairs of hosts whose flows others ask this gateway for."`
	RemoteFlows int `json:"remote_flows" doc:"Flows of others that it knows."`
	Pairs       int `json:"pairs" doc:"Confirmed pairs of others that it keeps for successors."`
}

// Problems are the gateways from which nothing comes, and the servers that can't be reached.
func (s *FleetStatus) Problems() (all []string) {
	for i := range s.Members {
		switch m := &s.Members[i]; {
		case m.Self || m.State == "active":
		case m.State == "silent":
			all = append(all, fmt.Sprintf("the gateway %s of the fleet is silent: it has ended, or can't be reached", m.Name))
		default:
			all = append(all, fmt.Sprintf("the gateway %s of the fleet has not been heard since the start", m.Name))
		}
	}
	for _, c := range s.Connections {
		if !c.Connected {
			all = append(all, fmt.Sprintf("the fleet's server %s can't be reached: %s", c.URL, cmp.Or(c.Error, "no error is known")))
		}
	}
	return all
}

// FleetConnection is a connection to a nats-server.
type FleetConnection struct {
	URL        string `json:"url" doc:"The server." column:"SERVER,Server"`
	Connected  bool   `json:"connected" doc:"The connection is up." column:"CONNECTED,Connected"`
	Reconnects uint64 `json:"reconnects" doc:"How often it was made again." column:"RECONNECTS,Reconnects,count"`
	Error      string `json:"error,omitempty" doc:"The last error." column:"LAST ERROR,Last error,long"`
}

// Episode is a congestion episode of a gateway.
type Episode struct {
	Gateway string          `json:"gateway" doc:"Name of the gateway."`
	Episode json.RawMessage `json:"episode" doc:"The episode, as in GET /v1/episodes."`
}

// answerTime is how long a question waits for other gateways.
const answerTime = 2 * time.Second

// None is the status of a gateway without a fleet.
func None() FleetStatus {
	return FleetStatus{Members: []fleet.MemberView{}, Connections: []FleetConnection{}, Counters: map[string]uint64{}, Refused: map[string]uint64{}}
}
