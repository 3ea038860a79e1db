package control

import (
	"fmt"
	"maps"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane"
)

// Modes are the ports' modes, as they are and as the configuration has them.
func (r *reloader) Modes() (all []api.PortMode) {
	c, policy := r.g.running.Load(), r.g.plane.Policy()
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
func (r *reloader) SetMode(port string, observe bool) error {
	r.reloading.Lock()
	defer r.reloading.Unlock()
	before, c := r.modes, r.g.running.Load()
	r.modes = maps.Clone(before)
	if r.modes == nil {
		r.modes = map[string]bool{}
	}
	for i := range c.Ports {
		p := &c.Ports[i]
		if port != "" && p.Name != port {
			continue
		}
		if p.Tap && !observe {
			r.modes = before
			return fmt.Errorf("port %s is a mirror port, which never transmits, so its mode is always observe", p.Name)
		}
		if r.modes[p.Name] = observe; observe == c.Dataplane.Policy.Observe {
			delete(r.modes, p.Name)
		}
	}
	if err := r.g.apply(c); err != nil {
		r.modes = before
		return err
	}
	r.g.options.Log.Warn().Str("port", port).Str("mode", modeName(observe)).Msg("The mode was changed until the next reload.")
	return nil
}

// override puts what was set at run time into a policy: the modes, and a drain.
func (r *reloader) override(p *dataplane.Policy, c *config.Config) {
	p.Drain = r.draining.Load()
	if len(r.modes) == 0 {
		return
	}
	p.Observe = false
	for i := range c.Ports {
		observe, set := r.modes[c.Ports[i].Name]
		p.Ports[i].Observe = set && observe || !set && c.Dataplane.Policy.Observe
	}
}

// SetDrain begins or ends a drain: the gateway goes on forwarding, asks no sender to slow down, resumes those that it has asked, and withdraws what it
// announces as a proxy. A reload doesn't end it.
func (r *reloader) SetDrain(on bool) {
	r.reloading.Lock()
	defer r.reloading.Unlock()
	if r.draining.Swap(on) == on {
		return
	}
	if err := r.g.apply(r.g.running.Load()); err != nil {
		r.g.options.Log.Error().Err(err).Msg("The drain can't be changed.") // the configuration is in force, so its policy is valid
		return
	}
	r.g.setForwarding(!on)
	if on {
		r.g.options.Log.Warn().Msg("The gateway is being drained: it forwards, asks no sender to slow down, and resumes those that it has asked.")
	} else {
		r.g.options.Log.Warn().Msg("The drain has ended.")
	}
}

// Drained says how far a drain is.
func (r *reloader) Drained() (d api.Drain) {
	if d.Draining = r.draining.Load(); !d.Draining {
		return d
	}
	switch senders, known := r.g.plane.Slowed(); {
	case !known:
		d.Waits = append(d.Waits, "the workers have not counted the senders yet")
	case senders > 0:
		d.Waits = append(d.Waits, fmt.Sprintf("%d senders were asked to slow down and have had no Resume", senders))
	}
	c := r.g.running.Load()
	for i := range c.Ports {
		if s := r.g.plane.Port(i); s.PacedFrames > 0 {
			d.Waits = append(d.Waits, fmt.Sprintf("port %s: pacing holds %d frames", c.Ports[i].Name, s.PacedFrames))
		}
	}
	d.Safe = len(d.Waits) == 0
	return d
}
