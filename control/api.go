package control

import (
	"context"
	"log"

	"github.com/cnpgate/cnpgate/control/api"
)

// startAPI begins to answer at the Unix socket of the configuration, if it names one, until the context ends or stop is called, which
// waits for the last answer. Before that, a gateway that can't be asked doesn't start; later it forwards on.
func (g *gateway) startAPI(ctx context.Context) (stop func(), err error) {
	path := g.config.Management.Socket
	if path == "" {
		return func() {}, nil
	}
	server, err := api.Open(g.config, g.plane, log.New(g.options.Log, "api: ", 0))
	if err != nil {
		return nil, err
	}
	server.WatchHealth(g.health.problems)
	g.options.Log.Info().Str("socket", path).Msg("api")
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		if err := server.Serve(ctx); err != nil {
			g.options.Log.Error().Err(err).Str("socket", path).Msg("the API has ended; forwarding goes on")
		}
	}()
	return func() {
		cancel()
		<-over
	}, nil
}
