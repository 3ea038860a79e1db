package control

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/metrics"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/control/webserver"
	"github.com/cnpgate/cnpgate/web"
)

// Names of the services at addresses: their configuration keys.
const (
	apiService     = "management.listen"
	metricsService = "management.metrics"
	pageService    = "management.web"
)

// servers are the API, the metrics and the page, where the configuration in force has them.
type servers struct {
	running sync.WaitGroup
	api     *api.Server
	page    atomic.Pointer[page] // nil while none is served
}

// page is the web server that runs.
type page struct {
	*webserver.Server
	listen string
}

// start makes the API, which answers requests until stop is called, once a service gives it a socket.
func (s *servers) start(ctx context.Context, g *gateway) (stop func(), err error) {
	if s.api, err = api.Open(g.started, g.plane, asked{g}, g.options.Log); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	s.running.Go(func() {
		if err := s.api.Serve(ctx); err != nil {
			g.options.Log.Error().Err(err).Msg("The API has stopped. Forwarding continues.")
		}
	})
	return func() {
		cancel()
		s.running.Wait()
		s.api.Move(nil)
		s.api.Link(g.started.File.Name)
	}, nil
}

// serveAt makes the servers answer where a configuration has them.
func (g *gateway) serveAt(c *config.Config) {
	path, address := c.Management.Socket, c.Management.Metrics
	g.services.use(apiService, path != "", path, func(ctx context.Context, note func(error)) error { return g.serveAPI(ctx, path, note) })
	if path == "" {
		g.servers.api.Move(nil)
		g.servers.api.Link(c.File.Name)
	}
	g.services.use(metricsService, address != "", address, func(ctx context.Context, note func(error)) error { return g.serveMetrics(ctx, address, note) })
	g.usePage(c.Management.Web)
}

// serveAPI gives the API a socket. The one before answers until then, and this one until another takes its place.
func (g *gateway) serveAPI(ctx context.Context, path string, note func(error)) error {
	socket, err := api.Listen(path)
	if err != nil {
		return err
	}
	g.servers.api.Move(socket)
	g.servers.api.Link(g.started.File.Name)
	g.options.Log.Info().Str("socket", path).Msg("The API listens at a Unix socket.")
	note(nil)
	<-ctx.Done()
	return nil
}

// serveMetrics serves the metrics at an address.
func (g *gateway) serveMetrics(ctx context.Context, address string, note func(error)) error {
	source := metrics.Source{
		Counters: g.Counters, Problems: g.Problems, Build: g.options.Build,
		Hash: func() string { return g.running.Load().File.Hash() }, BGP: g.BGP, RDMA: g.rdma.Latest,
	}
	if g.started.Fleet != nil {
		source.Fleet = g.fleetStatus
	}
	server, err := metrics.Open(address, source, log.New(g.options.Log, "metrics: ", 0))
	if err != nil {
		return noAddress(err)
	}
	g.options.Log.Info().Str("address", server.Address()).Msg("Prometheus can read the metrics at this address.")
	note(nil)
	return server.Serve(ctx)
}

// usePage serves the page as a configuration says. A page that stays at its address gets the present files, and keeps its connections.
func (g *gateway) usePage(c *config.Web) {
	if present := g.servers.page.Load(); c != nil && present != nil && present.listen == c.Listen {
		if settings, err := webserver.Load(c); err == nil {
			present.Use(settings)
			return
		}
	}
	g.services.use(pageService, c != nil, c, func(ctx context.Context, note func(error)) error { return g.servePage(ctx, c, note) })
}

// servePage serves the page.
func (g *gateway) servePage(ctx context.Context, c *config.Web, note func(error)) error {
	settings, err := webserver.Load(c)
	if err != nil {
		return err
	}
	server, err := webserver.Open(settings, webserver.NewLive(g.servers.api.Local()), log.New(g.options.Log, "web: ", 0))
	if err != nil {
		return noAddress(err)
	}
	g.servers.page.Store(&page{server, c.Listen})
	defer g.servers.page.Store(nil)
	g.options.Log.Info().Str("url", server.URL()).Msg("The page is at this address.")
	note(nil)
	return server.Serve(ctx)
}

// noAddress adds to the error of a server what it expects.
func noAddress(err error) error {
	if errors.Is(err, web.ErrMissing) {
		return err
	}
	return fmt.Errorf("%w; expected an address of this machine, and a port that nothing else listens at", err)
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

// setLogLevel sets the lowest level that the process logs, one of config.LogLevels.
func setLogLevel(level string) {
	if l, err := zerolog.ParseLevel(level); err == nil {
		zerolog.SetGlobalLevel(l)
	}
}

// Problems are the ports that don't forward, and why.
func (g *gateway) Problems() map[string]string { return g.health.problems() }

// Services are those that don't work, and why.
func (g *gateway) Services() map[string]string { return g.services.problems() }
