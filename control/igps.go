package control

import (
	"context"
	"net/netip"
	"reflect"
	"slices"

	"github.com/cnpgate/cnpgate/control/advertise/ospf6d"
	"github.com/cnpgate/cnpgate/control/advertise/ospfapi"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/proxy"
)

// Origins of senders learned by IGPs.
const (
	originOSPF  = "ospf"
	originOSPF6 = "ospf6"
)

// followIGPs announces and learns proxies by OSPF as the configuration in force says, until the context ends. Then it withdraws what it has announced.
func (g *gateway) followIGPs(ctx context.Context) {
	var v2, v3 client
	for ctx.Err() == nil {
		c := g.running.Load()
		if ospf := c.OSPF; ospf != nil {
			v2.follow(ospf, func(ctx context.Context) { g.runOSPF(ctx, ospf) })
		} else {
			v2.end()
		}
		if ospf6 := c.OSPF6; ospf6 != nil {
			v3.follow(ospf6, func(ctx context.Context) { g.runOSPF6(ctx, ospf6) })
		} else {
			v3.end()
		}
		select {
		case <-ctx.Done():
		case <-g.reloaded:
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

// runOSPF runs a client of ospfd.
func (g *gateway) runOSPF(ctx context.Context, c *config.OSPF) {
	client := ospfapi.Client{Server: c.API, Own: c.Proxy, Announce: c.Announce, Log: g.options.Log, Learned: g.learn(originOSPF), Accepts: accepts(c.Accept)}
	if err := client.Run(ctx); err != nil {
		g.options.Log.Error().Err(err).Msg("OSPF neither announces nor learns proxies.")
	}
}

// runOSPF6 runs a client of ospf6d.
func (g *gateway) runOSPF6(ctx context.Context, c *config.OSPF6) {
	client := ospf6d.Client{Socket: c.Socket, Interval: c.Interval, Own: c.Proxy, Log: g.options.Log, Learned: g.learn(originOSPF6), Accepts: accepts(c.Accept)}
	client.Run(ctx)
}

// learn is what a client calls with all senders that it has learned.
func (g *gateway) learn(origin string) func([]proxy.Sender) error {
	return func(senders []proxy.Sender) error { return g.SetLearned(origin, senders) }
}

// accepts reports whether one of the entries accepts a prefix.
func accepts(all []config.BGPAccept) func(netip.Prefix) bool {
	return func(p netip.Prefix) bool {
		return slices.ContainsFunc(all, func(a config.BGPAccept) bool { return a.Accepts(p) })
	}
}
