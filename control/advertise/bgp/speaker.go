//go:build !nobgp

package bgp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
	"github.com/osrg/gobgp/v4/pkg/server"
	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/proxy"
)

// available reports whether this build has BGP.
const available = true

// Speaker is a BGP speaker. Any goroutine may call its methods.
type Speaker struct {
	log     zerolog.Logger
	learned func([]proxy.Sender)

	applying  sync.Mutex // guards these
	settings  *Settings
	gobgp     *server.BgpServer
	announced map[netip.Prefix]announcement
	keyed     map[netip.Addr]bool // peers for which the listening sockets have had a password
	stop      context.CancelFunc  // ends the goroutines that read gobgp's events
	stopped   bool
	watching  sync.WaitGroup

	reading sync.Mutex // guards these
	rules   advertise.Rules
	result  advertise.Result
	reasons map[netip.Addr]string // why the latest session of a peer ended
}

// Start starts a speaker. It calls learned with all senders learned whenever they have changed, from one goroutine, and with none when it stops.
func Start(s *Settings, log zerolog.Logger, learned func([]proxy.Sender)) (*Speaker, error) {
	x := &Speaker{log: log, learned: learned}
	if err := x.open(s); err != nil {
		return nil, err
	}
	return x, nil
}

// open starts GoBGP with all settings. The caller holds applying, or is alone.
func (x *Speaker) open(s *Settings) error {
	x.gobgp = server.NewBgpServer(server.LoggerOption(newLogger(x.log), &slog.LevelVar{}))
	go x.gobgp.Serve()
	x.announced, x.keyed, x.settings = map[netip.Prefix]announcement{}, map[netip.Addr]bool{}, &Settings{}
	x.reading.Lock()
	x.reasons = map[netip.Addr]string{}
	x.reading.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	x.stop = cancel
	err := s.start(x.gobgp)
	if err == nil {
		err = x.watch(ctx)
	}
	if err == nil {
		err = x.change(s)
	}
	if err != nil {
		x.close()
		x.stopped = true
		return fmt.Errorf("BGP: %w", err)
	}
	x.log.Info().Uint32("as", s.AS).Stringer("router_id", s.RouterID).Int("peers", len(s.Peers)).Int("prefixes", len(s.Announce)).Msg("BGP has started.")
	return nil
}

// close ends all sessions with a NOTIFICATION, by which peers forget the prefixes announced.
func (x *Speaker) close() {
	x.stop()
	x.watching.Wait()
	x.gobgp.Stop()
}

// Stop ends all sessions, which withdraws all prefixes announced. The senders learned are no longer in use.
func (x *Speaker) Stop() {
	x.applying.Lock()
	defer x.applying.Unlock()
	if x.stopped {
		return
	}
	x.stopped = true
	x.close()
	x.use(nil)
	x.log.Info().Msg("BGP has stopped.")
}

// Apply changes the settings. Sessions with peers whose settings are the same continue, unless a setting changes that all depend on. After Stop it does
// nothing.
func (x *Speaker) Apply(s *Settings) error {
	x.applying.Lock()
	defer x.applying.Unlock()
	if x.stopped {
		return nil
	}
	if x.settings.global() != s.global() || x.losesPassword(s) {
		x.close()
		x.use(nil)
		return x.open(s)
	}
	return x.change(s)
}

// losesPassword reports whether a peer is to have no password after it had one: GoBGP doesn't remove it from the listening sockets.
func (x *Speaker) losesPassword(s *Settings) bool {
	return slices.ContainsFunc(s.Peers, func(p config.BGPPeer) bool { return x.keyed[p.Address] && s.passwords[p.Address] == "" })
}

// change applies settings that don't concern all sessions.
func (x *Speaker) change(s *Settings) error {
	announced, err := s.announcements()
	if err != nil {
		return err
	}
	x.setRules(s)
	return errors.Join(x.changeAnnounced(announced), x.changePeers(s))
}

func (x *Speaker) setRules(s *Settings) {
	rules := advertise.Rules{Characteristic: s.Characteristic, Accept: s.Accept}
	for _, own := range []netip.Addr{s.ProxyIPv4, s.ProxyIPv6} {
		if own.IsValid() {
			rules.Own = append(rules.Own, own)
		}
	}
	x.reading.Lock()
	x.rules = rules
	x.reading.Unlock()
	x.refresh()
}

// changeAnnounced withdraws prefixes that are no longer announced, and announces those that are new or have changed.
func (x *Speaker) changeAnnounced(next map[netip.Prefix]announcement) error {
	for p, a := range x.announced {
		if _, stays := next[p]; stays {
			continue
		}
		path, err := a.path(p)
		if err == nil {
			err = x.gobgp.DeletePath(apiutil.DeletePathRequest{Paths: []*apiutil.Path{path}})
		}
		if err != nil {
			return fmt.Errorf("the prefix %s can't be withdrawn: %w", p, err)
		}
		delete(x.announced, p)
	}
	for p, a := range next {
		if x.announced[p] == a {
			continue
		}
		path, err := a.path(p)
		if err == nil {
			_, err = x.gobgp.AddPath(apiutil.AddPathRequest{Paths: []*apiutil.Path{path}})
		}
		if err != nil {
			return fmt.Errorf("the prefix %s can't be announced: %w", p, err)
		}
		x.announced[p] = a
	}
	return nil
}

// changePeers removes peers that are gone or have changed, and adds those that are new or have changed. A peer that was disconnected because of its
// prefixes gets another attempt.
func (x *Speaker) changePeers(s *Settings) error {
	ctx, before := context.Background(), x.settings
	same := func(a, b *Settings, p config.BGPPeer) bool {
		return slices.ContainsFunc(a.Peers, func(of config.BGPPeer) bool { return reflect.DeepEqual(of, p) }) && a.passwords[p.Address] == b.passwords[p.Address]
	}
	for _, p := range before.Peers {
		if same(s, before, p) {
			continue
		}
		if err := x.gobgp.DeletePeer(ctx, &api.DeletePeerRequest{Address: p.Address.String()}); err != nil {
			return fmt.Errorf("the peer %s can't be removed: %w", p.Address, err)
		}
	}
	for i, p := range s.Peers {
		if same(before, s, p) {
			continue
		}
		if err := x.gobgp.AddPeer(ctx, &api.AddPeerRequest{Peer: s.peer(&s.Peers[i])}); err != nil {
			return fmt.Errorf("the peer %s can't be added: %w", p.Address, err)
		}
		if s.passwords[p.Address] != "" {
			x.keyed[p.Address] = true
		}
	}
	x.settings = s
	return x.gobgp.ListPeer(ctx, &api.ListPeerRequest{}, func(p *api.Peer) {
		if p.State.AdminState == api.PeerState_ADMIN_STATE_PFX_CT {
			_ = x.gobgp.EnablePeer(ctx, &api.EnablePeerRequest{Address: p.Conf.NeighborAddress}) // it exists
		}
	})
}

// watch reads GoBGP's events until the context ends.
func (x *Speaker) watch(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	callbacks := server.WatchEventMessageCallbacks{
		OnBestPath: func([]*apiutil.Path, time.Time) {
			select {
			case changed <- struct{}{}:
			default: // one is pending, and it reads all routes
			}
		},
		OnPeerUpdate: func(e *apiutil.WatchEventMessage_PeerEvent, _ time.Time) { x.logPeer(e) },
	}
	if err := x.gobgp.WatchEvent(ctx, callbacks, server.WatchBestPath(true), server.WatchPeer()); err != nil {
		return err
	}
	x.watching.Go(func() { x.learn(ctx, changed) })
	return nil
}

// learn reads the routes after each change, once they have settled.
func (x *Speaker) learn(ctx context.Context, changed <-chan struct{}) {
	settling := advertise.NewSettling()
	defer settling.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			settling.Change()
		case <-settling.C:
			settling.Used()
			x.refresh()
		}
	}
}

// refresh learns from the routes that GoBGP has now.
func (x *Speaker) refresh() {
	x.reading.Lock()
	defer x.reading.Unlock()
	routes, err := bestRoutes(x.gobgp)
	if err != nil {
		x.log.Error().Err(err).Msg("The routes of BGP can't be read. The senders learned before stay in use.")
		return
	}
	x.used(x.rules.Learn(routes))
}

// use replaces what was learned by what the routes lead to.
func (x *Speaker) use(routes []advertise.Route) {
	x.reading.Lock()
	defer x.reading.Unlock()
	x.used(x.rules.Learn(routes))
}

// used replaces what was learned, and calls learned if the senders differ.
func (x *Speaker) used(next advertise.Result) {
	differs := !slices.Equal(next.Senders, x.result.Senders)
	x.result = next
	if differs {
		x.log.Info().Int("prefixes", len(next.Senders)).Msg("The senders learned by BGP have changed.")
		x.learned(next.Senders)
	}
}

// logPeer logs sessions that are established or end.
func (x *Speaker) logPeer(e *apiutil.WatchEventMessage_PeerEvent) {
	peer, state := e.Peer.Conf.NeighborAddress, e.Peer.State.SessionState
	x.reading.Lock()
	defer x.reading.Unlock()
	reason, was := x.reasons[peer]
	switch {
	case e.Type != apiutil.PEER_EVENT_STATE:
	case state == bgp.BGP_FSM_ESTABLISHED:
		x.reasons[peer] = ""
		x.log.Info().Stringer("peer", peer).Uint32("as", e.Peer.State.PeerASN).Msg("The BGP session is established.")
	case was && reason == "" && state < bgp.BGP_FSM_ESTABLISHED:
		x.reasons[peer] = max(e.Peer.State.DisconnectMessage, "the session has ended")
		x.log.Warn().Stringer("peer", peer).Str("reason", x.reasons[peer]).Msg("The BGP session has ended.")
	}
}

// Status is the state of the speaker and its sessions.
func (x *Speaker) Status() advertise.Status {
	x.applying.Lock()
	defer x.applying.Unlock()
	if x.stopped {
		return advertise.Status{Announced: []netip.Prefix{}, Peers: []advertise.Peer{}}
	}
	s := advertise.Status{Running: true, AS: x.settings.AS, RouterID: x.settings.RouterID.String(), Peers: []advertise.Peer{}}
	s.Announced = slices.SortedFunc(maps.Keys(x.announced), netip.Prefix.Compare)
	if s.Announced == nil {
		s.Announced = []netip.Prefix{}
	}
	now := time.Now()
	err := x.gobgp.ListPeer(context.Background(), &api.ListPeerRequest{EnableAdvertised: true}, func(p *api.Peer) { s.Peers = append(s.Peers, describe(p, now)) })
	if err != nil {
		s.Error = err.Error()
	}
	x.reading.Lock()
	defer x.reading.Unlock()
	s.PrefixesLearned = len(x.result.Senders)
	for i := range s.Peers {
		x.addLearned(&s.Peers[i])
	}
	slices.SortFunc(s.Peers, func(a, b advertise.Peer) int { return x.settings.order(a.Address) - x.settings.order(b.Address) })
	return s
}

// order is the place of a peer in the configuration.
func (s *Settings) order(address string) int {
	return slices.IndexFunc(s.Peers, func(p config.BGPPeer) bool { return p.Address.String() == address })
}

// addLearned adds what the gateway has learned from a peer, and why its latest session ended.
func (x *Speaker) addLearned(p *advertise.Peer) {
	address, err := netip.ParseAddr(p.Address)
	if err != nil {
		return
	}
	if p.Problem == "" && p.State != advertise.Established {
		p.Problem = x.reasons[address]
	}
	routes := x.result.ByPeer[address]
	if routes == nil {
		return
	}
	p.Learned = routes[advertise.Learned]
	for reason := advertise.Learned + 1; reason < advertise.Reasons; reason++ {
		if routes[reason] > 0 {
			p.Ignored[reason.String()] = routes[reason]
		}
	}
}
