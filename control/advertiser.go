package control

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/control/advertise/bgp"
	"github.com/cnpgate/cnpgate/proxy"
)

// startBGPAgain is the time between two attempts to start the BGP speaker.
const startBGPAgain = 10 * time.Second

// advertiser runs the BGP speaker of the configuration in force, while the gateway forwards. Any goroutine may call its methods.
type advertiser struct {
	sync.Mutex
	wanted     *bgp.Settings // nil: no BGP
	speaker    *bgp.Speaker  // nil: it doesn't run
	problem    string        // why not, although it is wanted
	forwarding bool
}

// advertise runs the speaker until the context ends. If it can't start, the gateway forwards without it, and another attempt follows.
func (g *gateway) advertise(ctx context.Context) {
	g.setForwarding(true)
	again := time.NewTicker(startBGPAgain)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			g.setForwarding(false)
			return
		case <-again.C:
			g.advertiser.Lock()
			g.startBGP()
			g.advertiser.Unlock()
		}
	}
}

// setForwarding starts the speaker with the gateway, and stops it before the gateway ends.
func (g *gateway) setForwarding(now bool) {
	a := &g.advertiser
	a.Lock()
	defer a.Unlock()
	a.forwarding = now
	if now {
		g.startBGP()
	} else {
		a.stop()
	}
}

// setBGP changes the settings: nil for no BGP.
func (g *gateway) setBGP(next *bgp.Settings) {
	a := &g.advertiser
	a.Lock()
	defer a.Unlock()
	a.wanted = next
	if next == nil {
		a.stop()
		return
	}
	if a.speaker != nil {
		if err := a.speaker.Apply(next); err != nil {
			a.stop()
			g.logNoBGP(err)
		}
		return
	}
	g.startBGP()
}

// startBGP starts the speaker if it is wanted and doesn't run. The caller holds the mutex.
func (g *gateway) startBGP() {
	a := &g.advertiser
	if a.wanted == nil || a.speaker != nil || !a.forwarding {
		return
	}
	speaker, err := bgp.Start(a.wanted, g.options.Log, g.learnBGP)
	if err != nil {
		g.logNoBGP(err)
		return
	}
	a.speaker, a.problem = speaker, ""
}

// logNoBGP notes why the speaker doesn't run. The caller holds the mutex.
func (g *gateway) logNoBGP(err error) {
	g.advertiser.problem = err.Error()
	g.options.Log.Error().Err(err).Stringer("again_in", startBGPAgain).Msg("BGP can't run. Forwarding continues, and another attempt follows.")
}

// learnBGP uses the senders that the speaker has learned.
func (g *gateway) learnBGP(senders []proxy.Sender) {
	if err := g.SetLearned(advertise.OriginBGP, senders); err != nil {
		g.options.Log.Error().Err(err).Msg("The senders learned by BGP can't be used. Those before stay in use.")
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
func (g *gateway) BGP() advertise.Status {
	a := &g.advertiser
	a.Lock()
	defer a.Unlock()
	if a.speaker == nil {
		return advertise.Status{Error: a.problem, Announced: []netip.Prefix{}, Peers: []advertise.Peer{}}
	}
	return a.speaker.Status()
}
