package config

import (
	"net/netip"
	"strings"
	"time"

	"github.com/cnpgate/cnpgate/fleet"
	"github.com/cnpgate/cnpgate/fleet/wire"
)

// Fleet is what connects the gateway to the others of its site.
type Fleet struct {
	Site, Name string
	Key        string // path of the file with the gateway's nkey seed
	Members    []FleetMember
	Hosts      []FleetHost
	Embedded   bool     // a nats-server runs in the gateway, at Listen
	Listen     string   // address and port
	Peers      []string // URLs of the other gateways' servers, with Embedded
	Servers    []string // URLs of an external cluster, without
	TLS        *FleetTLS
	Flows      int // of other gateways that are known at a time
	Pairs      int // of other gateways that are kept for successors
	Episodes   FleetEpisodes
}

// FleetMember is a gateway of the site.
type FleetMember struct{ Name, Key string } // Key is the public nkey

// FleetHost is a host that may send hints about its own addresses.
type FleetHost struct {
	Name, Key string
	Addresses []netip.Prefix
}

// FleetTLS has paths of PEM files. Cert and Key are this gateway's, as a server and as a client.
type FleetTLS struct{ CA, Cert, Key string }

// FleetEpisodes says where episodes are kept, and for how long.
type FleetEpisodes struct {
	Store    string // directory; "": with an embedded server, they are kept in memory
	Keep     time.Duration
	MaxBytes uint64
}

// fleetResolver resolves the fleet section.
type fleetResolver struct{ *resolver }

// resolve checks who takes part, and how they are connected.
func (r *fleetResolver) resolve(cfg *Config) {
	s := &r.doc.Fleet
	if !s.given {
		for i := range r.doc.Ports.Items {
			if p := &r.doc.Ports.Items[i]; p.Bottleneck.given {
				r.problem(p.Bottleneck.place, "there is no fleet section, so that no other gateway shares it; add one, or remove the key")
			}
		}
		return
	}
	r.checkKeys(s)
	cfg.Dataplane.PeerFlows, cfg.Dataplane.PeerAging = cfg.Fleet.Flows, int64(fleet.FlowLifetime)
	if !s.Name.given {
		if cfg.Fleet.Name = cfg.Name; cfg.Name != "" && !wire.ValidName(cfg.Name) {
			r.problem(s.place, "the gateway's name %s can't be a part of a subject; expected fleet.name, of a to z, 0 to 9 and -, at most %d",
				quote(cfg.Name), wire.MaxName)
		}
	}
	r.checkName(&s.Site)
	r.checkName(&s.Name)
	member := false
	for i := range s.Members.Items {
		m := &s.Members.Items[i]
		r.checkName(&m.Name)
		r.checkKey(&m.Key)
		member = member || m.Name.V == cfg.Fleet.Name
	}
	for i := range s.Hosts.Items {
		r.checkName(&s.Hosts.Items[i].Name)
		r.checkKey(&s.Hosts.Items[i].Key)
	}
	if s.Members.valid && !member {
		r.problem(s.Members.place, "has no member with this gateway's name %s; expected its name and public key, or fleet.name", quote(cfg.Fleet.Name))
	}
	r.checkConnections(s)
}

// checkKeys checks that the keys are given that every fleet needs.
func (r *fleetResolver) checkKeys(s *fleetSection) {
	for _, k := range [...]struct {
		place
		missing  bool
		expected string
	}{
		{s.Site.place, !s.Site.given, s.Site.expects(rule{})},
		{s.Key.place, !s.Key.given, "the path of a file that `cnpgate agent keygen` has written"},
		{s.Members.place, !s.Members.given || s.Members.valid && len(s.Members.Items) == 0, "this gateway and at least one other, each with name and key"},
		{s.TLS.CA.place, s.TLS.given && !s.TLS.CA.given, "the path of a PEM file with the certificates that sign the servers'"},
	} {
		if s.valid && k.missing {
			r.problem(k.place, "missing; expected %s", k.expected)
		}
	}
}

// checkConnections checks that there is one way to connect.
func (r *fleetResolver) checkConnections(s *fleetSection) {
	switch {
	case s.valid && s.Embedded.V && s.Servers.given:
		r.problem(s.Servers.place, "embedded is true (%s), so that the gateways are the servers; expected peers in place of servers, or embedded: false", r.position(s.Embedded.place))
	case s.valid && !s.Embedded.V && !s.Servers.given:
		r.problem(s.place, "neither embedded: true nor servers is given; expected one of them, or no fleet section")
	case !s.Embedded.V && s.Peers.given:
		r.problem(s.Peers.place, "needs embedded: true; the gateways are connected by servers")
	}
	if t := &s.TLS; t.given && t.valid && t.Cert.given != t.Key.given {
		r.problem(t.place, "has only one of cert and key; expected both, or neither")
	} else if t.given && t.valid && s.Embedded.V && !t.Cert.given {
		r.problem(t.place, "has no cert and key, which the embedded server needs")
	}
	for _, list := range [...]*[]text{&s.Peers.Items, &s.Servers.Items} {
		for i := range *list {
			u := &(*list)[i]
			if s.Embedded.V && !s.TLS.given && u.valid && strings.HasPrefix(u.V, "tls://") {
				r.problem(u.place, "%s has TLS, and fleet.tls is not given, without which the gateways' own servers have none; expected fleet.tls, or nats://ADDRESS:PORT", quote(u.V))
			}
			if u.valid && !strings.HasPrefix(u.V, "nats://") && !strings.HasPrefix(u.V, "tls://") {
				r.problem(u.place, "%s has no scheme; expected nats://ADDRESS:PORT or tls://ADDRESS:PORT", quote(u.V))
			}
		}
	}
}

// checkName checks a token of the subjects.
func (r *fleetResolver) checkName(n *name) {
	if n.given && n.valid && !wire.ValidName(n.V) {
		r.problem(n.place, "%s can't be a part of a subject; expected a to z, 0 to 9 and -, at most %d", quote(n.V), wire.MaxName)
	}
}

// checkKey checks the form of a public nkey.
func (r *fleetResolver) checkKey(k *text) {
	const length = 56
	if !k.valid {
		return
	}
	if len(k.V) != length || k.V[0] != 'U' || strings.Trim(k.V, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		r.problem(k.place, "%s is no public nkey of a user; expected %d characters that begin with U, as `cnpgate agent keygen` prints them", quote(k.V), length)
	}
}
