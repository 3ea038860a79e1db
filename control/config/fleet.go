package config

import (
	"net/netip"
	"strings"
	"time"

	"github.com/cnpgate/cnpgate/fleet"
	"github.com/cnpgate/cnpgate/fleet/wire"
	"github.com/cnpgate/cnpgate/internal/yamldoc"
)

// Fleet is what connects the gateway to the others of its site.
type Fleet struct {
	Site     string        `key:"site" form:"name" required:"given"`
	Name     string        `key:"name" form:"name"`
	Key      string        `key:"key" required:"given" expects:"the path of a file that 'cnpgate fleet keys' has written"` // with the gateway's nkey seed
	Members  []FleetMember `key:"members" required:"given" items:"1" most:"64" expects:"this gateway and at least one other, each with name and key"`
	Hosts    []FleetHost   `key:"hosts"`
	Embedded bool          `key:"embedded" default:"false"` // a nats-server runs in the gateway, at Listen
	Listen   string        `key:"listen" form:"socket" default:"0.0.0.0:4222"`
	Peers    []string      `key:"peers" most:"63"`   // URLs of the other gateways' servers, with Embedded
	Servers  []string      `key:"servers" most:"16"` // URLs of an external cluster, without
	TLS      *FleetTLS     `key:"tls"`
	Flows    int           // of other gateways that are known at a time
	Pairs    int           `key:"pairs" form:"count" default:"64Ki" min:"1Ki" max:"16Mi"` // of other gateways that are kept for successors
	Episodes FleetEpisodes `key:"episodes"`
	_        struct{}      `key:"flows" removed:"it is flows.paired now; remove the key"`
}

// FleetMember is a gateway of the site.
type FleetMember struct {
	Name string `key:"name" form:"name" required:"yes" unique:"the name %"`
	Key  string `key:"key" required:"yes" unique:"the key %"` // the public nkey
}

// FleetHost is a host that may send hints about its own addresses.
type FleetHost struct {
	Name      string         `key:"name" form:"name" required:"yes" unique:"the name %"`
	Key       string         `key:"key" required:"yes" unique:"the key %"`
	Addresses []netip.Prefix `key:"addresses" required:"yes" items:"1" most:"64"`
}

// FleetTLS has paths of PEM files. Cert and Key are this gateway's, as a server and as a client.
type FleetTLS struct {
	CA   string `key:"ca" required:"given" expects:"the path of a PEM file with the certificates that sign the servers'"`
	Cert string `key:"cert" with:"key"`
	Key  string `key:"key" with:"cert"`
}

// FleetEpisodes says where episodes are kept, and for how long.
type FleetEpisodes struct {
	Store    string        `key:"store"` // directory; "": with an embedded server, they are kept in memory
	Keep     time.Duration `key:"keep" default:"168h" min:"1h" max:"8760h"`
	MaxBytes uint64
	_        struct{} `key:"max_bytes" removed:"it is always 64MB now; remove the key"`
}

const episodesBytes = 64e6 // of the stream of episodes; the oldest go first

// fleetResolver resolves the fleet section.
type fleetResolver struct{ *resolver }

// resolve checks who takes part, and how they are connected.
func (r *fleetResolver) resolve(cfg *Config) {
	s := r.doc.Fleet
	if s == nil {
		for i := range r.doc.Ports {
			if p := &r.doc.Ports[i]; r.Given(&p.Bottleneck) {
				r.Problem(&p.Bottleneck, "there is no fleet section, so that no other gateway shares it; add one, or remove the key")
			}
		}
		return
	}
	s.Flows, s.Episodes.MaxBytes = cfg.Dataplane.Paired, episodesBytes
	cfg.Dataplane.PeerFlows, cfg.Dataplane.PeerAging = s.Flows, int64(fleet.FlowLifetime)
	if !r.Given(&s.Name) {
		if s.Name = cfg.Name; cfg.Name != "" && !wire.ValidName(cfg.Name) {
			r.Problem(s, "the gateway's name %s can't be a part of a subject; expected fleet.name, of a to z, 0 to 9 and -, at most %d",
				yamldoc.Quote(cfg.Name), wire.MaxName)
		}
	}
	r.checkName(&s.Site)
	r.checkName(&s.Name)
	member := false
	for i := range s.Members {
		m := &s.Members[i]
		r.checkName(&m.Name)
		r.checkKey(&m.Key)
		member = member || m.Name == s.Name
	}
	for i := range s.Hosts {
		r.checkName(&s.Hosts[i].Name)
		r.checkKey(&s.Hosts[i].Key)
	}
	if r.Valid(&s.Members) && !member {
		r.Problem(&s.Members, "has no member with this gateway's name %s; expected its name and public key, or fleet.name", yamldoc.Quote(s.Name))
	}
	r.checkConnections(s)
}

// checkConnections checks that there is one way to connect.
func (r *fleetResolver) checkConnections(s *Fleet) {
	switch {
	case r.Valid(s) && s.Embedded && r.Given(&s.Servers):
		r.Problem(&s.Servers, "embedded is true (%s), so that the gateways are the servers; expected peers in place of servers, or embedded: false", r.Position(&s.Embedded))
	case r.Valid(s) && !s.Embedded && !r.Given(&s.Servers):
		r.Problem(s, "neither embedded: true nor servers is given; expected one of them, or no fleet section")
	case !s.Embedded && r.Given(&s.Peers):
		r.Problem(&s.Peers, "needs embedded: true; the gateways are connected by servers")
	}
	if t := s.TLS; t != nil && r.Valid(t) && s.Embedded && !r.Given(&t.Cert) && !r.Given(&t.Key) {
		r.Problem(t, "has no cert and key, which the embedded server needs")
	}
	for _, list := range [...][]string{s.Peers, s.Servers} {
		for i, url := range list {
			u := &list[i]
			if s.Embedded && s.TLS == nil && r.Valid(u) && strings.HasPrefix(url, "tls://") {
				r.Problem(u, "%s has TLS, and fleet.tls is not given, without which the gateways' own servers have none; expected fleet.tls, or nats://ADDRESS:PORT", yamldoc.Quote(url))
			}
			if r.Valid(u) && !strings.HasPrefix(url, "nats://") && !strings.HasPrefix(url, "tls://") {
				r.Problem(u, "%s has no scheme; expected nats://ADDRESS:PORT or tls://ADDRESS:PORT", yamldoc.Quote(url))
			}
		}
	}
}

// checkName checks a token of the subjects.
func (r *fleetResolver) checkName(n *string) {
	if r.Given(n) && r.Valid(n) && !wire.ValidName(*n) {
		r.Problem(n, "%s can't be a part of a subject; expected a to z, 0 to 9 and -, at most %d", yamldoc.Quote(*n), wire.MaxName)
	}
}

// checkKey checks the form of a public nkey.
func (r *fleetResolver) checkKey(k *string) {
	const length = 56
	if !r.Valid(k) {
		return
	}
	if len(*k) != length || (*k)[0] != 'U' || strings.Trim(*k, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		r.Problem(k, "%s is no public nkey of a user; expected %d characters that begin with U, as `cnpgate fleet keys` prints them", yamldoc.Quote(*k), length)
	}
}
