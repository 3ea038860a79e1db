package control

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/webserver"
	"github.com/cnpgate/cnpgate/web"
)

// page is the web server that runs.
type page struct {
	*webserver.Server
	listen string
	stop   func()
}

// prepareWeb reads the files of a configuration, and listens where it wants the page and the present one doesn't. Both results are nil without a page; the
// server is nil, too, if the address stays.
func (s *servers) prepareWeb(g *gateway, c *config.Web) (*webserver.Settings, *webserver.Server, error) {
	settings, err := webserver.Load(c)
	if err != nil || settings == nil || s.page != nil && s.page.listen == c.Listen {
		return settings, nil, err
	}
	server, err := webserver.Open(settings, webserver.NewLive(s.api.Local()), log.New(g.options.Log, "web: ", 0))
	if err != nil && !errors.Is(err, web.ErrMissing) {
		err = fmt.Errorf("%w; expected an address of this machine, and a port that nothing else listens at", err)
	}
	return settings, server, err
}

// useWeb puts into use what prepareWeb has prepared.
func (s *servers) useWeb(g *gateway, settings *webserver.Settings, server *webserver.Server, listen string) {
	if settings != nil && server == nil {
		s.page.Use(settings)
		return
	}
	if s.page != nil {
		s.page.stop()
		s.page = nil
	}
	if server == nil {
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	s.page = &page{server, listen, cancel}
	g.options.Log.Info().Str("url", server.URL()).Msg("The page is at this address.")
	s.running.Go(func() {
		if err := server.Serve(ctx); err != nil {
			g.options.Log.Error().Err(err).Str("url", server.URL()).Msg("The web server has stopped. Forwarding continues.")
		}
	})
}
