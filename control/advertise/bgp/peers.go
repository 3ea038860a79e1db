//go:build !nobgp

package bgp

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/server"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/control/config"
)

// global are the settings that all sessions depend on.
type global struct {
	as             uint32
	routerID       netip.Addr
	ipv4, ipv6     netip.Addr
	port           uint16
	hold, retrying time.Duration
}

func (s *Settings) global() global {
	return global{s.AS, s.RouterID, s.IPv4, s.IPv6, s.Port, s.HoldTime, s.ConnectRetry}
}

// start starts GoBGP with the settings that all sessions depend on, without a peer.
func (s *Settings) start(gobgp *server.BgpServer) error {
	g := &api.Global{Asn: s.AS, RouterId: s.RouterID.String(), ListenPort: -1}
	for _, a := range []netip.Addr{s.IPv4, s.IPv6} {
		if s.Port != 0 && a.IsValid() {
			g.ListenPort, g.ListenAddresses = int32(s.Port), append(g.ListenAddresses, a.String())
		}
	}
	if err := gobgp.StartBgp(context.Background(), &api.StartBgpRequest{Global: g}); err != nil {
		return err
	}
	return onlyOwnRoutes(gobgp)
}

// onlyOwnRoutes lets the speaker announce its own prefixes, and never pass on routes from one peer to another.
func onlyOwnRoutes(gobgp *server.BgpServer) error {
	const name = "own-routes"
	own := &api.Policy{Name: name, Statements: []*api.Statement{{
		Name:       name,
		Conditions: &api.Conditions{RouteType: api.Conditions_ROUTE_TYPE_LOCAL},
		Actions:    &api.Actions{RouteAction: api.RouteAction_ROUTE_ACTION_ACCEPT},
	}}}
	err := gobgp.AddPolicy(context.Background(), &api.AddPolicyRequest{Policy: own})
	return errors.Join(err, gobgp.SetPolicyAssignment(context.Background(), &api.SetPolicyAssignmentRequest{Assignment: &api.PolicyAssignment{
		Name: "global", Direction: api.PolicyDirection_POLICY_DIRECTION_EXPORT, DefaultAction: api.RouteAction_ROUTE_ACTION_REJECT,
		Policies: []*api.Policy{{Name: name}},
	}}))
}

// peer is a peer in GoBGP's form.
func (s *Settings) peer(p *config.BGPPeer) *api.Peer {
	local := s.IPv6
	if p.Address.Is4() {
		local = s.IPv4
	}
	seconds := func(d time.Duration) uint64 { return uint64(d / time.Second) }
	peer := &api.Peer{
		Conf: &api.PeerConf{NeighborAddress: p.Address.String(), PeerAsn: p.AS, AuthPassword: s.passwords[p.Address]},
		Timers: &api.Timers{Config: &api.TimersConfig{
			ConnectRetry: seconds(s.ConnectRetry), HoldTime: seconds(s.HoldTime), KeepaliveInterval: max(seconds(s.HoldTime)/3, 1),
			IdleHoldTimeAfterReset: seconds(s.ConnectRetry),
		}},
		Transport:       &api.Transport{LocalAddress: local.String(), RemotePort: uint32(p.Port), PassiveMode: p.Passive},
		EbgpMultihop:    &api.EbgpMultihop{Enabled: p.Multihop != 0, MultihopTtl: uint32(p.Multihop)},
		TtlSecurity:     &api.TtlSecurity{Enabled: p.TTLSecurity != 0, TtlMin: 256 - uint32(p.TTLSecurity)},
		GracefulRestart: &api.GracefulRestart{Enabled: true, HelperOnly: true},
	}
	for _, afi := range []api.Family_Afi{api.Family_AFI_IP, api.Family_AFI_IP6} {
		family := &api.Family{Afi: afi, Safi: api.Family_SAFI_UNICAST}
		peer.AfiSafis = append(peer.AfiSafis, &api.AfiSafi{
			Config:            &api.AfiSafiConfig{Family: family, Enabled: true},
			PrefixLimits:      &api.PrefixLimit{Family: family, MaxPrefixes: uint32(p.MaxPrefixes)},
			MpGracefulRestart: &api.MpGracefulRestart{Config: &api.MpGracefulRestartConfig{Enabled: true}},
		})
	}
	return peer
}

// stateNames are those of the API.
var stateNames = map[api.PeerState_SessionState]string{
	api.PeerState_SESSION_STATE_IDLE: "idle", api.PeerState_SESSION_STATE_CONNECT: "connect", api.PeerState_SESSION_STATE_ACTIVE: "active",
	api.PeerState_SESSION_STATE_OPENSENT: "open-sent", api.PeerState_SESSION_STATE_OPENCONFIRM: "open-confirm",
	api.PeerState_SESSION_STATE_ESTABLISHED: advertise.Established,
}

// describe is a peer's state for the API, as far as GoBGP knows it.
func describe(p *api.Peer, now time.Time) advertise.Peer {
	d := advertise.Peer{
		Address: p.Conf.NeighborAddress, AS: p.Conf.PeerAsn, State: stateNames[p.State.SessionState], Ignored: map[string]int{},
		Stale: p.GracefulRestart.PeerRestarting,
	}
	if d.State == "" {
		d.State = "idle"
	}
	if up := p.Timers.State.Uptime; d.State == advertise.Established && up != nil {
		d.Uptime = max(now.Sub(up.AsTime()), 0).Nanoseconds()
	}
	for _, f := range p.AfiSafis {
		if f.State != nil {
			d.Announced += int(f.State.Advertised)
			d.Received += int(f.State.Received)
		}
	}
	if p.State.AdminState == api.PeerState_ADMIN_STATE_PFX_CT {
		d.Problem = "the peer sent more prefixes than max_prefixes; a reload allows it another attempt"
	}
	return d
}
