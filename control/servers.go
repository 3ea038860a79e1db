package control

import (
	"context"
	"fmt"
	"log"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/metrics"
	"github.com/cnpgate/cnpgate/control/report"
)

// servers are the API and the metrics, where the configuration in force has them. A reload moves them.
type servers struct {
	ctx     context.Context // ends them
	running sync.WaitGroup
	api     *api.Server
	socket  string

	stopMetrics func()
	address     string

	page *page
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
	path, address, listen := c.Management.Socket, c.Management.Metrics, ""
	if c.Management.Web != nil {
		listen = c.Management.Web.Listen
	}
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
	abandon := func() {
		if socket != nil {
			socket.Close()
		}
		if server != nil {
			server.Close()
		}
	}
	settings, page, err := s.prepareWeb(g, c.Management.Web)
	if err != nil {
		abandon()
		return nil, c.Refused([]config.Fault{{Key: "management.web", Err: err}})
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
			s.useWeb(g, settings, page, listen)
		},
		abandon: func() {
			abandon()
			if page != nil {
				page.Close()
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

// Identity identifies this gateway.
func (g *gateway) Identity() report.Identity {
	i := report.Identify(g.running.Load())
	i.Version, i.StartTime = strings.TrimSpace(g.options.Build.Version+" "+g.options.Build.Commit), &g.begin
	return i
}

// identify adds the identity to a log event.
func (g *gateway) identify(e *zerolog.Event) *zerolog.Event {
	i := g.Identity()
	return e.Str("gateway", i.Gateway).Str("version", i.Version).Time("start_time", *i.StartTime).Str("config_hash", i.ConfigHash)
}

// LogLevel is the lowest level that the process logs.
func (g *gateway) LogLevel() string { return zerolog.GlobalLevel().String() }

// SetLogLevel changes it, until the next reload.
func (g *gateway) SetLogLevel(level string) {
	log := g.options.Log.Info()
	setLogLevel(level)
	if log == nil { // info was not logged before
		log = g.options.Log.Info()
	}
	log.Str("log_level", level).Msg("The log level was changed until the next reload.")
}

// setLogLevel sets the lowest level that the process logs, one of config.LogLevels.
func setLogLevel(level string) {
	if l, err := zerolog.ParseLevel(level); err == nil {
		zerolog.SetGlobalLevel(l)
	}
}

// Problems are the ports that don't forward, and why.
func (g *gateway) Problems() map[string]string { return g.health.problems() }

// Config is the configuration in force.
func (g *gateway) Config() *config.Config { return g.running.Load() }

// openMetrics listens for Prometheus at an address.
func (g *gateway) openMetrics(address string) (*metrics.Server, error) {
	source := metrics.Source{
		Counters: g.Counters, Problems: g.Problems, Build: g.options.Build,
		Hash: func() string { return g.running.Load().File.Hash() }, BGP: g.BGP, RDMA: g.rdma.Latest,
	}
	if g.fleet != nil {
		source.Fleet = g.fleet.Status
	}
	server, err := metrics.Open(address, source, log.New(g.options.Log, "metrics: ", 0))
	if err != nil {
		return nil, fmt.Errorf("%w; expected an address of this machine, and a port that nothing else listens at", err)
	}
	return server, nil
}
