package control

import (
	"context"
	"fmt"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/rdma"
	rdmahealth "github.com/cnpgate/cnpgate/health"
)

// asked is a gateway as the API asks it; the methods that the gateway needs itself are its own.
type asked struct{ *gateway }

// LogLevel is the lowest level that the process logs.
func (g asked) LogLevel() string { return zerolog.GlobalLevel().String() }

// SetLogLevel changes it, until the next reload.
func (g asked) SetLogLevel(level string) {
	log := g.options.Log.Info()
	setLogLevel(level)
	if log == nil { // info was not logged before
		log = g.options.Log.Info()
	}
	log.Str("log_level", level).Msg("The log level was changed until the next reload.")
}

// Config is the configuration in force.
func (g asked) Config() *config.Config { return g.running.Load() }

// RDMA is the health of the RDMA connections that the workers follow.
func (g asked) RDMA(ctx context.Context) (*rdmahealth.Report, error) { return g.rdma.Report(ctx) }

// TraceRDMA records what passes of a connection.
func (g asked) TraceRDMA(ctx context.Context, q rdma.Wanted) (*rdmahealth.Trace, error) {
	return g.rdma.Trace(ctx, q)
}

// Fleet is the gateway's part in its fleet, nil without.
func (g asked) Fleet() api.Fleet {
	if p := g.fleet.Load(); p != nil {
		return p
	}
	return nil
}

// Notices say what is in force besides the configuration file, and what harms the gateway although it forwards.
func (g asked) Notices() (all []string) {
	all = append(all, g.concerns.list()...)
	for _, m := range g.Modes() {
		if m.Mode != m.Configured {
			all = append(all, fmt.Sprintf("port %s: mode %s, and %s in the configuration; a reload, or cnpgate set mode %s, puts it back", m.Port, m.Mode, m.Configured, m.Configured))
		}
	}
	g.reloading.Lock()
	if err := g.trial.refuses(); err != nil {
		all = append(all, err.Error())
	}
	g.reloading.Unlock()
	if g.draining.Load() {
		all = append(all, "the gateway is being drained: no sender is asked to slow down; cnpgate drain --off ends that")
	}
	return all
}
