package control

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/link"
	"github.com/cnpgate/cnpgate/lossless"
)

// cause is a cause that keeps a port from forwarding. Each is noted by a different goroutine, and ends independently.
type cause uint8

const (
	deviceCause cause = iota // reported by Devices.Watch
	linkCause                // no link
	workerCause              // a worker has stopped stepping
	causes
)

// health has the ports that don't forward, and why. Any goroutine may read and write it.
type health struct {
	mutex sync.Mutex
	ill   map[string]*[causes]string // by port; "" if the cause doesn't apply
}

// note sets the description of a cause for a port: "" if it doesn't apply.
func (h *health) note(port string, c cause, problem string) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.ill == nil {
		h.ill = map[string]*[causes]string{}
	}
	if h.ill[port] == nil {
		h.ill[port] = &[causes]string{}
	}
	h.ill[port][c] = problem
}

// problems are the ports that don't forward, with all causes of each.
func (h *health) problems() map[string]string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	out := map[string]string{}
	for port, ill := range h.ill {
		var texts []string
		for _, text := range ill {
			if text != "" {
				texts = append(texts, text)
			}
		}
		if len(texts) > 0 {
			out[port] = strings.Join(texts, "; ")
		}
	}
	return out
}

// sentence capitalises a text and adds a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// watchDevices logs events of the devices until the context ends, and updates the ports' health.
func (w *watch) watchDevices(ctx context.Context) {
	g := w.g
	err := g.devices.Watch(ctx, func(n Notice) {
		name := g.started.Ports[n.Port].Name
		g.health.note(name, deviceCause, n.Problem)
		event := g.options.Log.Info()
		if n.Problem != "" {
			event = g.options.Log.Warn().Str("problem", n.Problem)
		}
		event.Str("port", name).Bool("healthy", n.Problem == "").Msg(sentence(n.Text))
	})
	if err != nil {
		g.options.Log.Error().Err(err).Msg("Interfaces are not watched. If one is deleted and created again, the gateway does not use it again.")
	}
}

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

// unresponsive logs senders that don't react to notifications.
type unresponsive struct {
	log    zerolog.Logger
	found  uint64
	logged time.Time
}

const (
	unresponsiveLog    = 10 * time.Second // the least time between two lines
	unresponsiveLogged = 8                // senders in a line
)

// look logs the senders that were found since the last line.
func (u *unresponsive) look(now time.Time, plane *dataplane.Dataplane) {
	if now.Sub(u.logged) < unresponsiveLog {
		return
	}
	senders, found := plane.Unresponsive()
	if found == u.found {
		return
	}
	var latest []netip.Addr
	for i := len(senders) - 1; i >= 0 && len(latest) < min(unresponsiveLogged, int(found-u.found)); i-- {
		latest = append(latest, senders[i].Host.Netip())
	}
	u.log.Warn().Uint64("count", found-u.found).Interface("senders", latest).
		Msg("Senders don't react to notifications. Configure their NICs to obey CNPs, or pace their flows: ports[].pacing.senders of the WAN port.")
	u.found, u.logged = found, now
}
