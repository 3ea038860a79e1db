package control

import (
	"fmt"
	"maps"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane"
)

// Modes are the ports' modes, as they are and as the configuration has them.
func (g *gateway) Modes() (all []api.PortMode) {
	c, policy := g.running.Load(), g.plane.Policy()
	for i := range c.Ports {
		all = append(all, api.PortMode{
			Port: c.Ports[i].Name, Mode: modeName(policy.Observe || policy.Ports[i].Observe), Configured: modeName(c.Dataplane.Policy.Observe),
		})
	}
	return all
}

func modeName(observe bool) string {
	if observe {
		return config.ModeObserve
	}
	return config.ModeSend
}

// SetMode changes the mode of a port, or of all ports for "", until the next reload.
func (g *gateway) SetMode(port string, observe bool) error {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	before, c := g.modes, g.running.Load()
	g.modes = maps.Clone(before)
	if g.modes == nil {
		g.modes = map[string]bool{}
	}
	for i := range c.Ports {
		p := &c.Ports[i]
		if port != "" && p.Name != port {
			continue
		}
		if p.Tap && !observe {
			g.modes = before
			return fmt.Errorf("port %s is a mirror port, which never transmits, so its mode is always observe", p.Name)
		}
		if g.modes[p.Name] = observe; observe == c.Dataplane.Policy.Observe {
			delete(g.modes, p.Name)
		}
	}
	if err := g.apply(c); err != nil {
		g.modes = before
		return err
	}
	g.options.Log.Warn().Str("port", port).Str("mode", modeName(observe)).Msg("The mode was changed until the next reload.")
	return nil
}

// override puts what was set at run time into a policy: the modes, and a drain.
func (g *gateway) override(p *dataplane.Policy, c *config.Config) {
	p.Drain = g.draining.Load()
	if len(g.modes) == 0 {
		return
	}
	p.Observe = false
	for i := range c.Ports {
		observe, set := g.modes[c.Ports[i].Name]
		p.Ports[i].Observe = set && observe || !set && c.Dataplane.Policy.Observe
	}
}

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
