package control

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/control/advertise/bgp"
	"github.com/cnpgate/cnpgate/control/advertise/ospf6d"
	"github.com/cnpgate/cnpgate/control/advertise/ospfapi"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/proxy"
)

// startBGPAgain is the time between two attempts to start the BGP speaker.
const startBGPAgain = 10 * time.Second

// advertiser announces and learns proxies by the protocols of the configuration in force, while the gateway forwards. Any goroutine may call its methods.
type advertiser struct {
	log     *zerolog.Logger
	proxies *proxies // that it learns
	// running is the configuration in force, and reloaded gets a value when another one is.
	running  *atomic.Pointer[config.Config]
	reloaded <-chan struct{}

	mutex      sync.Mutex
	wanted     *bgp.Settings // nil: no BGP
	speaker    *bgp.Speaker  // nil: it doesn't run
	problem    string        // why not, although it is wanted
	forwarding bool
}

// advertise runs the speaker until the context ends. If it can't start, the gateway forwards without it, and another attempt follows.
func (a *advertiser) advertise(ctx context.Context) {
	a.setForwarding(true)
	again := time.NewTicker(startBGPAgain)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			a.setForwarding(false)
			return
		case <-again.C:
			a.mutex.Lock()
			a.startBGP()
			a.mutex.Unlock()
		}
	}
}

// setForwarding starts the speaker with the gateway, and stops it before the gateway ends.
func (a *advertiser) setForwarding(now bool) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.forwarding = now
	if now {
		a.startBGP()
	} else {
		a.stop()
	}
}

// setBGP changes the settings: nil for no BGP.
func (a *advertiser) setBGP(next *bgp.Settings) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.wanted = next
	if next == nil {
		a.stop()
		return
	}
	if a.speaker != nil {
		if err := a.speaker.Apply(next); err != nil {
			a.stop()
			a.logNoBGP(err)
		}
		return
	}
	a.startBGP()
}

// startBGP starts the speaker if it is wanted and doesn't run. The caller holds the mutex.
func (a *advertiser) startBGP() {
	if a.wanted == nil || a.speaker != nil || !a.forwarding {
		return
	}
	speaker, err := bgp.Start(a.wanted, *a.log, a.learnBGP)
	if err != nil {
		a.logNoBGP(err)
		return
	}
	a.speaker, a.problem = speaker, ""
}

// logNoBGP notes why the speaker doesn't run. The caller holds the mutex.
func (a *advertiser) logNoBGP(err error) {
	a.problem = err.Error()
	a.log.Error().Err(err).Stringer("again_in", startBGPAgain).Msg("BGP can't run. Forwarding continues, and another attempt follows.")
}

// learnBGP uses the senders that the speaker has learned.
func (a *advertiser) learnBGP(senders []proxy.Sender) {
	if err := a.proxies.set(advertise.OriginBGP, senders); err != nil {
		a.log.Error().Err(err).Msg("The senders learned by BGP can't be used. Those before stay in use.")
	}
}

// stop ends the speaker. The caller holds the mutex.
func (a *advertiser) stop() {
	a.problem = ""
	if a.speaker != nil {
		a.speaker.Stop()
		a.speaker = nil
	}
}

// BGP is the state of BGP.
func (a *advertiser) BGP() advertise.Status {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.speaker == nil {
		return advertise.Status{Error: a.problem, Announced: []netip.Prefix{}, Peers: []advertise.Peer{}}
	}
	return a.speaker.Status()
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

// followIGPs announces and learns proxies by OSPF as the configuration in force says, until the context ends. Then it withdraws what it has announced.
func (a *advertiser) followIGPs(ctx context.Context) {
	var v2, v3 client
	for ctx.Err() == nil {
		c := a.running.Load()
		if ospf := c.OSPF; ospf != nil {
			v2.follow(ospf, func(ctx context.Context) {
				client := ospfapi.Client{Server: ospf.API, Own: ospf.Proxy, Announce: ospf.Announce, Log: *a.log, Learned: a.learn(originOSPF), Accepts: accepts(ospf.Accept)}
				if err := client.Run(ctx); err != nil {
					a.log.Error().Err(err).Msg("OSPF neither announces nor learns proxies.")
				}
			})
		} else {
			v2.end()
		}
		if ospf6 := c.OSPF6; ospf6 != nil {
			v3.follow(ospf6, func(ctx context.Context) {
				client := ospf6d.Client{Socket: ospf6.Socket, Interval: ospf6.Interval, Own: ospf6.Proxy, Log: *a.log, Learned: a.learn(originOSPF6), Accepts: accepts(ospf6.Accept)}
				client.Run(ctx)
			})
		} else {
			v3.end()
		}
		select {
		case <-ctx.Done():
		case <-a.reloaded:
		}
	}
	v2.end()
	v3.end()
}

// client is a client that runs with some settings, or none.
type client struct {
	settings any
	cancel   context.CancelFunc // nil: none runs
	done     chan struct{}
}

// follow lets a client run with these settings: if one runs with others, it ends first.
func (c *client) follow(settings any, run func(context.Context)) {
	if c.cancel != nil && reflect.DeepEqual(settings, c.settings) {
		return
	}
	c.end()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	c.settings, c.cancel, c.done = settings, cancel, done
	go func() {
		defer close(done)
		run(ctx)
	}()
}

// end ends the client, if one runs, and waits until it has withdrawn what it announced.
func (c *client) end() {
	if c.cancel != nil {
		c.cancel()
		<-c.done
		c.cancel = nil
	}
}

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
