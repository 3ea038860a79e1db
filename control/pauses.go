package control

import (
	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane/link"
	"github.com/cnpgate/cnpgate/lossless"
)

// pauses logs what the flow-control watchdog does: with the action alert, only the log shows it.
type pauses struct {
	log   zerolog.Logger
	ports []config.Port
	last  []link.Stats
}

func newPauses(c *config.Config, log zerolog.Logger) *pauses {
	return &pauses{log: log, ports: c.Ports, last: make([]link.Stats, len(c.Ports))}
}

var watchdogActions = [...]string{lossless.Drop: "drop", lossless.Forward: "forward", lossless.Alert: "alert"}

// look logs a port's events since the last look.
func (p *pauses) look(port int, s *link.Stats) {
	c, last := &p.ports[port], &p.last[port]
	for class, name := range c.ClassNames {
		if s.Detected[class] != last.Detected[class] {
			p.log.Warn().Str("port", c.Name).Str("class", name).Str("action", watchdogActions[c.FlowControl.Watchdog.Action]).
				Msg("PFC storm: the other end of the link pauses this class continuously. Find the device there that can't receive.")
		}
		if s.Restored[class] != last.Restored[class] {
			p.log.Info().Str("port", c.Name).Str("class", name).Msg("The PFC storm is over.")
		}
	}
	for priority := range s.Expired {
		if s.Expired[priority] != last.Expired[priority] {
			p.log.Warn().Str("port", c.Name).Int("priority", priority).
				Msg("The other end of the link was stopped for xoff_limit and may send again. Frames may be lost: the peer's queue does not drain.")
		}
	}
	*last = *s
}
