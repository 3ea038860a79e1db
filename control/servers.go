package control

import (
	"context"
	"sync"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/metrics"
)

// servers are the API and the metrics, where the configuration in force has them. A reload moves them.
type servers struct {
	ctx     context.Context // ends them
	running sync.WaitGroup
	api     *api.Server
	socket  string

	stopMetrics func()
	address     string
}

// start serves what a configuration has, until stop is called, which waits for the last answer. If the gateway can't listen there, it doesn't start; if
// a server fails later, forwarding continues.
func (s *servers) start(ctx context.Context, g *gateway) (stop func(), err error) {
	if s.api, err = api.Open(g.started, g.plane, g, g.options.Log); err != nil {
		return nil, err
	}
	moved, err := s.prepare(g, g.started)
	if err != nil {
		return nil, err
	}
	var cancel func()
	s.ctx, cancel = context.WithCancel(ctx)
	moved.use()
	s.running.Go(func() {
		if err := s.api.Serve(s.ctx); err != nil {
			g.options.Log.Error().Err(err).Str("socket", s.socket).Msg("The API has stopped. Forwarding continues.")
		}
	})
	return func() {
		cancel()
		s.running.Wait()
	}, nil
}

// move is a change of the servers' addresses. Either use or abandon is called.
type move struct{ use, abandon func() }

// prepare listens where a configuration wants it and the present one doesn't.
func (s *servers) prepare(g *gateway, c *config.Config) (*move, error) {
	var socket *api.Socket
	var err error
	path, address := c.Management.Socket, c.Management.Metrics
	moves := path != s.socket
	if moves && path != "" {
		if socket, err = api.Listen(path); err != nil {
			return nil, c.Refused([]config.Fault{{Key: "management.listen", Err: err}})
		}
	}
	var server *metrics.Server
	if address != s.address && address != "" {
		if server, err = g.openMetrics(address); err != nil {
			if socket != nil {
				socket.Close()
			}
			return nil, c.Refused([]config.Fault{{Key: "management.metrics", Err: err}})
		}
	}
	return &move{
		use: func() {
			if moves {
				s.api.Move(socket)
				s.socket = path
				g.options.Log.Info().Str("socket", path).Msg("The API listens at a Unix socket.")
			}
			if address != s.address {
				s.serveMetrics(g, server, address)
			}
		},
		abandon: func() {
			if socket != nil {
				socket.Close()
			}
			if server != nil {
				server.Close()
			}
		},
	}, nil
}

// serveMetrics serves the metrics at another address, nowhere if server is nil.
func (s *servers) serveMetrics(g *gateway, server *metrics.Server, address string) {
	if s.stopMetrics != nil {
		s.stopMetrics()
	}
	s.address, s.stopMetrics = address, nil
	if server == nil {
		return
	}
	g.options.Log.Info().Str("address", server.Address()).Msg("Prometheus can read the metrics at this address.")
	ctx, cancel := context.WithCancel(s.ctx)
	s.stopMetrics = cancel
	s.running.Go(func() {
		if err := server.Serve(ctx); err != nil {
			g.options.Log.Error().Err(err).Str("address", address).Msg("The metrics server has stopped. Forwarding continues.")
		}
	})
}
