package control

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/control/advertise/bgp"
	"github.com/cnpgate/cnpgate/control/advertise/ospf6d"
	"github.com/cnpgate/cnpgate/control/advertise/ospfapi"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/proxy"
)

// Names of the services that announce and learn proxies: their configuration keys.
const (
	bgpService   = "proxy.bgp"
	ospfService  = "proxy.ospf"
	ospf6Service = "proxy.ospf6"
)

// advertiser announces and learns proxies by the protocols of the configuration in force, while the gateway forwards. Any goroutine may call its methods.
type advertiser struct {
	log      *zerolog.Logger
	proxies  *proxies // that it learns
	services *services

	mutex      sync.Mutex
	wanted     *config.Config // nil: none yet
	forwarding bool
	speaker    atomic.Pointer[bgp.Speaker] // nil: it doesn't run
}

// setForwarding starts the protocols with the gateway, and ends them, which withdraws what was announced and learned, before the gateway ends.
func (a *advertiser) setForwarding(now bool) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.forwarding = now
	a.update()
}

// follow uses the settings of another configuration.
func (a *advertiser) follow(c *config.Config) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.wanted = c
	a.update()
}

// update runs the protocols that are wanted now. The caller holds the mutex.
func (a *advertiser) update() {
	var speak *config.BGP
	var ospf *config.OSPF
	var ospf6 *config.OSPF6
	if c := a.wanted; c != nil && a.forwarding {
		speak, ospf, ospf6 = c.BGP, c.OSPF, c.OSPF6
	}
	if !a.keepsSpeaking(speak) {
		a.services.use(bgpService, speak != nil, speak, func(ctx context.Context, note func(error)) error { return a.speak(ctx, speak, note) })
	}
	a.services.use(ospfService, ospf != nil, ospf, func(ctx context.Context, note func(error)) error {
		client := ospfapi.Client{Server: ospf.API, Own: ospf.Proxy, Announce: ospf.Announce, Log: *a.log, Note: note, Learned: a.learn(originOSPF), Accepts: accepts(ospf.Accept)}
		return client.Run(ctx)
	})
	a.services.use(ospf6Service, ospf6 != nil, ospf6, func(ctx context.Context, note func(error)) error {
		client := ospf6d.Client{Socket: ospf6.Socket, Interval: ospf6.Interval, Own: ospf6.Proxy, Log: *a.log, Note: note, Learned: a.learn(originOSPF6), Accepts: accepts(ospf6.Accept)}
		client.Run(ctx)
		return nil
	})
}

// keepsSpeaking gives the speaker that runs other settings, so that its sessions stay. It reports whether that is possible.
func (a *advertiser) keepsSpeaking(c *config.BGP) bool {
	speaker := a.speaker.Load()
	if speaker == nil || c == nil {
		return false
	}
	settings, err := bgp.Load(c)
	if err == nil {
		err = speaker.Apply(settings)
	}
	return err == nil
}

// speak runs the BGP speaker until the context ends.
func (a *advertiser) speak(ctx context.Context, c *config.BGP, note func(error)) error {
	settings, err := bgp.Load(c)
	if err != nil {
		return err
	}
	speaker, err := bgp.Start(settings, *a.log, a.learnBGP)
	if err != nil {
		return err
	}
	a.speaker.Store(speaker)
	note(nil)
	<-ctx.Done()
	a.speaker.Store(nil)
	speaker.Stop()
	return nil
}

// learnBGP uses the senders that the speaker has learned.
func (a *advertiser) learnBGP(senders []proxy.Sender) {
	if err := a.proxies.set(advertise.OriginBGP, senders); err != nil {
		a.log.Error().Err(err).Msg("The senders learned by BGP can't be used. Those before stay in use.")
	}
}

// BGP is the state of BGP.
func (a *advertiser) BGP() advertise.Status {
	if speaker := a.speaker.Load(); speaker != nil {
		return speaker.Status()
	}
	return advertise.Status{Error: a.services.problems()[bgpService], Announced: []netip.Prefix{}, Peers: []advertise.Peer{}}
}

// proxies are the proxies of the configuration, and those that protocols have learned. The mutex is locked before the gateway's adapting.
type proxies struct {
	sync.Mutex
	static  *proxy.Senders // nil: proxies are not enabled, and learned ones are kept for later
	learned map[string]*proxy.Senders
	use     func(*proxy.Senders) // gives the workers another map
}

// with returns the proxies of a configuration and the learned ones together, nil if static is nil. Where prefixes are equal, those of the
// configuration count first, then those of the origin whose name comes first. The caller holds the mutex.
func (p *proxies) with(static *proxy.Senders) (*proxy.Senders, error) {
	if static == nil {
		return nil, nil
	}
	inOrder := []*proxy.Senders{static}
	for _, origin := range slices.Sorted(maps.Keys(p.learned)) {
		inOrder = append(inOrder, p.learned[origin])
	}
	return proxy.Merge(inOrder...)
}

// set replaces the senders that a protocol has learned: origin is its name, such as "bgp", which the entries get as their Origin. No
// senders withdraw all. Each worker uses the new map from its next burst on. While proxies are not enabled, the senders are only kept. After
// an error, which says which entry is wrong or that there are too many, the senders before stay. Any goroutine may call it; a caller with
// many changes should collect them, since each call builds a new map.
func (p *proxies) set(origin string, senders []proxy.Sender) error {
	if origin == "" || origin == proxy.OriginStatic {
		return fmt.Errorf("the origin %q of learned senders: expected the name of a protocol", origin)
	}
	senders = slices.Clone(senders)
	for i := range senders {
		senders[i].Origin = origin
	}
	learned, err := proxy.NewSenders(senders...)
	if err != nil {
		return err
	}
	p.Lock()
	defer p.Unlock()
	before := p.learned[origin]
	if p.learned == nil {
		p.learned = map[string]*proxy.Senders{}
	}
	p.learned[origin] = learned
	all, err := p.with(p.static)
	if err != nil {
		p.learned[origin] = before // a nil one is empty
		return fmt.Errorf("%s: %w", origin, err)
	}
	if p.static != nil {
		p.use(all)
	}
	return nil
}

// Origins of senders learned by IGPs.
const (
	originOSPF  = "ospf"
	originOSPF6 = "ospf6"
)

// learn is what a client calls with all senders that it has learned.
func (a *advertiser) learn(origin string) func([]proxy.Sender) error {
	return func(senders []proxy.Sender) error { return a.proxies.set(origin, senders) }
}

// accepts reports whether one of the entries accepts a prefix.
func accepts(all []config.BGPAccept) func(netip.Prefix) bool {
	return func(p netip.Prefix) bool {
		return slices.ContainsFunc(all, func(a config.BGPAccept) bool { return a.Accepts(p) })
	}
}
