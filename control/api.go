package control

import (
	"strings"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/report"
)

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
