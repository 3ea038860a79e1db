package control

import (
	"fmt"

	"github.com/cnpgate/cnpgate/control/api"
)

// SetDrain begins or ends a drain: the gateway goes on forwarding, asks no sender to slow down, resumes those that it has asked, and withdraws what it
// announces as a proxy. A reload doesn't end it.
func (g *gateway) SetDrain(on bool) {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	if g.draining.Swap(on) == on {
		return
	}
	if err := g.apply(g.running.Load()); err != nil {
		g.options.Log.Error().Err(err).Msg("The drain can't be changed.") // the configuration is in force, so its policy is valid
		return
	}
	g.setForwarding(!on)
	if on {
		g.options.Log.Warn().Msg("The gateway is being drained: it forwards, asks no sender to slow down, and resumes those that it has asked.")
	} else {
		g.options.Log.Warn().Msg("The drain has ended.")
	}
}

// Drained says how far a drain is.
func (g *gateway) Drained() (d api.Drain) {
	if d.Draining = g.draining.Load(); !d.Draining {
		return d
	}
	switch senders, known := g.plane.Slowed(); {
	case !known:
		d.Waits = append(d.Waits, "the workers have not counted the senders yet")
	case senders > 0:
		d.Waits = append(d.Waits, fmt.Sprintf("%d senders were asked to slow down and have had no Resume", senders))
	}
	c := g.running.Load()
	for i := range c.Ports {
		if s := g.plane.Port(i); s.PacedFrames > 0 {
			d.Waits = append(d.Waits, fmt.Sprintf("port %s: pacing holds %d frames", c.Ports[i].Name, s.PacedFrames))
		}
	}
	d.Safe = len(d.Waits) == 0
	return d
}
