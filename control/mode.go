package control

import (
	"errors"
	"fmt"
	"maps"
	"time"

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

// Notices say what is in force besides the configuration file.
func (g *gateway) Notices() (all []string) {
	for _, m := range g.Modes() {
		if m.Mode != m.Configured {
			all = append(all, fmt.Sprintf("port %s: mode %s, and %s in the configuration; a reload, or cnpgate mode %s, puts it back", m.Port, m.Mode, m.Configured, m.Configured))
		}
	}
	g.reloading.Lock()
	if err := g.trial.refuses(); err != nil {
		all = append(all, err.Error())
	}
	g.reloading.Unlock()
	if problem := g.heartbeat.notice(); problem != "" {
		all = append(all, "bypass: the heartbeat has stopped: "+problem)
	}
	if g.draining.Load() {
		all = append(all, "the gateway is being drained: no sender is asked to slow down; cnpgate drain --off ends that")
	}
	return all
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

// trial is a reload that goes back unless it is confirmed in time, whether its client still lives or not. A nil trial is none.
type trial struct {
	before *config.Config // to go back to
	until  time.Time
	timer  *time.Timer
}

// refuses is the error of another reload meanwhile.
func (t *trial) refuses() error {
	if t == nil {
		return nil
	}
	return api.Conflict{Err: fmt.Errorf("the last reload waits until %s to be confirmed; keep it with cnpgate reload --confirmed, or go back with cnpgate reload --revert, and reload then",
		t.until.UTC().Format(time.RFC3339))}
}

// tryFor begins a trial. The caller holds reloading.
func (g *gateway) tryFor(d time.Duration, before *config.Config) (until *time.Time) {
	t := &trial{before: before, until: time.Now().Add(d)}
	t.timer = time.AfterFunc(d, func() {
		g.reloading.Lock()
		defer g.reloading.Unlock()
		if g.trial == t {
			_, _ = g.goBack("The reload was not confirmed in time.") // it has logged the error
		}
	})
	g.trial = t
	g.options.Log.Warn().Time("confirm_by", t.until).Msg("The configuration goes back to the one before unless it is confirmed: cnpgate reload --confirmed.")
	return &t.until
}

// endTrial forgets a trial: the configuration in force stays, whichever it is. The caller holds reloading.
func (g *gateway) endTrial() {
	if g.trial != nil {
		g.trial.timer.Stop()
		g.trial = nil
	}
}

var errNoTrial = api.Conflict{Err: errors.New("no reload waits to be confirmed")}

// Confirm keeps the configuration of a trial.
func (g *gateway) Confirm() (*api.Reloaded, error) {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	if g.trial == nil {
		return nil, errNoTrial
	}
	kept := g.reloadedFrom(g.trial.before)
	g.endTrial()
	g.options.Log.Info().Strs("changes", kept.Changes).Msg("The reload was confirmed.")
	g.reloads.note(g, "confirmed", kept.Changes, nil)
	return kept, nil
}

// Revert ends a trial before its time.
func (g *gateway) Revert() (*api.Reloaded, error) {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	if g.trial == nil {
		return nil, errNoTrial
	}
	return g.goBack("The reload was reverted.")
}

// goBack applies the configuration before a trial. The file is the operator's, and stays as it is.
func (g *gateway) goBack(why string) (*api.Reloaded, error) {
	before, after := g.trial.before, g.running.Load()
	g.endTrial()
	if err := g.change(before); err != nil {
		g.options.Log.Error().Err(err).Msg(why + " The configuration before can't be applied any more, so the new one stays in force.")
		g.reloads.note(g, "", nil, err)
		return nil, err
	}
	back := g.reloadedFrom(after)
	g.reloads.note(g, "reverted", back.Changes, nil)
	g.identify(g.options.Log.Warn()).Strs("changes", back.Changes).
		Msg(why + " The configuration before it is in force again. The file still has the new one: correct it before the next start.")
	return back, nil
}
