package control

import (
	"context"
	"net/netip"
	"reflect"
	"slices"

	"github.com/cnpgate/cnpgate/control/advertise/ospfapi"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/proxy"
)

// originOSPF is the origin of senders learned by OSPF.
const originOSPF = "ospf"

// followOSPF announces and learns proxies by OSPF as the configuration in force says, until the context ends. Then it withdraws what it has announced.
func (g *gateway) followOSPF(ctx context.Context) {
	var current *config.OSPF
	stop := func() {}
	for ctx.Err() == nil {
		if wanted := wantedOSPF(g.running.Load()); !reflect.DeepEqual(wanted, current) {
			stop()
			current, stop = wanted, g.startOSPF(wanted)
		}
		select {
		case <-ctx.Done():
		case <-g.reloaded:
		}
	}
	stop()
}

// wantedOSPF returns nil, no OSPF, unless proxies are enabled.
func wantedOSPF(c *config.Config) *config.OSPF {
	if !c.Proxy.Enabled {
		return nil
	}
	return c.Proxy.OSPF
}

// startOSPF starts a client; stop stops it and waits until it has withdrawn what it announced.
func (g *gateway) startOSPF(c *config.OSPF) (stop func()) {
	if c == nil {
		return func() {}
	}
	client := ospfapi.Client{
		Server: c.API, Own: c.Proxy, Announce: c.Announce, Log: g.options.Log,
		Learned: func(senders []proxy.Sender) error { return g.SetLearned(originOSPF, senders) },
		Accepts: func(p netip.Prefix) bool {
			return slices.ContainsFunc(c.Accept, func(a config.BGPAccept) bool { return a.Accepts(p) })
		},
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := client.Run(ctx); err != nil {
			g.options.Log.Error().Err(err).Msg("OSPF neither announces nor learns proxies.")
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
