package control

import (
	"context"
	"fmt"
	"log"

	"github.com/cnpgate/cnpgate/control/metrics"
)

// startMetrics serves Prometheus at the configured address, if there is one, until the context ends or stop is called. If it can't listen, the gateway
// doesn't start; if it fails later, forwarding continues.
func (g *gateway) startMetrics(ctx context.Context) (stop func(), err error) {
	address := g.started.Management.Metrics
	if address == "" {
		return func() {}, nil
	}
	source := metrics.Source{
		Counters: g.Counters, Problems: g.Problems, Build: g.options.Build,
		Hash: func() string { return g.running.Load().File.Hash() }, BGP: g.BGP,
	}
	server, err := metrics.Open(address, source, log.New(g.options.Log, "metrics: ", 0))
	if err != nil {
		return nil, fmt.Errorf("management.metrics: %w; expected an address of this machine, and a port that nothing else listens at", err)
	}
	g.options.Log.Info().Str("address", server.Address()).Msg("Prometheus can read the metrics at this address.")
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		if err := server.Serve(ctx); err != nil {
			g.options.Log.Error().Err(err).Str("address", address).Msg("The metrics server has stopped. Forwarding continues.")
		}
	}()
	return func() {
		cancel()
		<-over
	}, nil
}
