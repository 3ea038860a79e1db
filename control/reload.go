package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/cnpgate/cnpgate/control/advertise/bgp"
	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/assemble"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/webserver"
)

// reloader replaces what is in force: the configuration, from which a trial goes back, and what was set at run time.
type reloader struct {
	g *gateway
	reloads
	reloading sync.Mutex // of trial and modes, and to change what is in force
	trial     *trial
	modes     map[string]bool // by port, whether it observes: those that were set at run time
	draining  atomic.Bool
}

// Reload applies the present configuration file. If the file has mistakes or changes that need a restart, the error lists them, and the old
// configuration stays in force. While an earlier reload waits to be confirmed, it is refused: it would confirm that one, or make it unclear what to go
// back to. Any goroutine may call it.
func (r *reloader) Reload(q api.ReloadRequest) (*api.Reloaded, error) {
	r.reloading.Lock()
	defer r.reloading.Unlock()
	if q.DryRun {
		return r.dryRun()
	}
	r.g.announcer.ifForwarding("RELOADING=1\nMONOTONIC_USEC=" + monotonicMicroseconds())
	defer r.g.announcer.ifForwarding(daemon.SdNotifyReady)
	before := r.g.running.Load()
	var next *config.Config
	err := r.trial.refuses()
	if err == nil {
		next, err = r.load()
	}
	if err == nil {
		err = next.CheckReload(r.g.started)
	}
	if err == nil {
		err = r.change(next)
	}
	if err != nil {
		r.logRefused(err)
		r.note(r.g.running.Load(), "", nil, err)
		return nil, err
	}
	for _, w := range newWarnings(next, before) {
		r.g.options.Log.Warn().Stringer("at", w.Position).Msg("Warning about the configuration: " + w.Text + ".")
	}
	changes := next.Changes(before)
	r.g.identify(r.g.options.Log.Info()).Strs("changes", changes).Msg("The configuration was reloaded.")
	r.note(r.g.running.Load(), "reloaded", changes, nil)
	done := r.reloadedFrom(before)
	if q.Confirm > 0 && len(changes) > 0 {
		done.ConfirmBy = r.tryFor(q.Confirm, before)
	}
	return done, nil
}

// newWarnings are the warnings about a configuration that the one before hasn't.
func newWarnings(next, before *config.Config) []config.Problem {
	return slices.DeleteFunc(slices.Clone(next.Warnings), func(w config.Problem) bool {
		return slices.ContainsFunc(before.Warnings, func(b config.Problem) bool { return b.Text == w.Text })
	})
}

// reloadedFrom is the answer to a reload that has replaced a configuration.
func (r *reloader) reloadedFrom(before *config.Config) *api.Reloaded {
	now := r.g.running.Load()
	return &api.Reloaded{Changes: append([]string{}, now.Changes(before)...), Values: now.ChangedValues(before), ConfigHash: now.File.Hash(), Services: r.g.Services()}
}

// dryRun reports what a reload would change.
func (r *reloader) dryRun() (*api.Reloaded, error) {
	next, err := r.load()
	if err != nil {
		return nil, err
	}
	before := r.g.running.Load()
	would := &api.Reloaded{Changes: append([]string{}, next.Changes(before)...), Values: next.ChangedValues(before), ConfigHash: before.File.Hash()}
	var stand *config.Error
	switch err := next.CheckReload(r.g.started); {
	case errors.As(err, &stand):
		for _, p := range stand.Problems {
			would.NeedsRestart = append(would.NeedsRestart, p.String())
		}
	case err != nil:
		return nil, err
	}
	if err := readable(next); err != nil {
		return nil, err
	}
	_, err = assemble.Policy(next, r.g.seed)
	return would, err
}

// load reads the configuration of a reload.
func (r *reloader) load() (*config.Config, error) {
	if r.g.options.Load == nil {
		return nil, errors.New("this gateway has no configuration file to read again; start it again with another configuration")
	}
	return r.g.options.Load()
}

// change makes a configuration the one in force, with all that was changed besides: modes and log level.
func (r *reloader) change(next *config.Config) error {
	if err := readable(next); err != nil {
		return err
	}
	modes := r.modes
	r.modes = nil
	if err := r.g.apply(next); err != nil {
		r.modes = modes
		return err
	}
	setLogLevel(next.Management.LogLevel)
	r.g.serve(next)
	select {
	case r.g.concerns.again <- struct{}{}:
	default:
	}
	return nil
}

// readable is an error if one of the files that a configuration names can't be used.
func readable(c *config.Config) error {
	_, err := bgp.Load(c.BGP)
	if err == nil {
		if _, err = webserver.Load(c.Management.Web); err != nil {
			err = c.Refused([]config.Fault{{Key: pageService, Err: err}})
		}
	}
	return err
}

// serve runs the services of the configuration in force, and waits until it is known whether they work, but not for long.
func (g *gateway) serve(c *config.Config) {
	g.serveAt(c)
	g.services.use("management.ipfix", c.Management.IPFIX != "", c.Management.IPFIX, func(ctx context.Context, note func(error)) error {
		return g.exportRecords(ctx, c.Management.IPFIX, note)
	})
	g.services.use("bypass", c.Bypass != nil, c.Bypass, func(ctx context.Context, note func(error)) error { return g.beats(ctx, c.Bypass, note) })
	g.services.use("fleet", g.started.Fleet != nil, nil, g.joinFleet)
	g.services.use("--report", g.options.Output != nil, nil, func(ctx context.Context, note func(error)) error {
		err := g.options.Output(ctx)
		if err == nil {
			note(nil)
			<-ctx.Done()
		}
		return err
	})
	g.follow(c)
	g.services.settle()
}

// apply applies a configuration's policy, with the modes that were set at run time. Each worker uses it from its next burst on; flows, the state of
// their QPs, limits and queues are preserved.
func (g *gateway) apply(next *config.Config) error {
	policy, err := assemble.Policy(next, g.seed)
	if err != nil {
		return err
	}
	g.override(policy, next)
	g.proxies.Lock()
	defer g.proxies.Unlock()
	static := policy.Proxies
	if policy.Proxies, err = g.proxies.with(static); err != nil {
		return fmt.Errorf("%s: proxy.senders: %w", next.File.Name, err)
	}
	g.adapting.Lock()
	err = g.plane.SetPolicy(policy)
	g.adapting.Unlock()
	if err != nil {
		return fmt.Errorf("%s: %w", next.File.Name, err)
	}
	g.proxies.static = static
	g.running.Store(next)
	return nil
}

// logRefused logs each mistake of a configuration that was not applied.
func (r *reloader) logRefused(err error) {
	const message = "The configuration was not reloaded. The old one stays in force."
	var mistakes *config.Error
	if !errors.As(err, &mistakes) {
		r.g.options.Log.Error().Err(err).Msg(message)
		return
	}
	for _, p := range mistakes.Problems {
		r.g.options.Log.Error().Stringer("at", p.Position).Str("problem", p.Text).Msg(message)
	}
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
func (r *reloader) tryFor(d time.Duration, before *config.Config) (until *time.Time) {
	t := &trial{before: before, until: time.Now().Add(d)}
	t.timer = time.AfterFunc(d, func() {
		r.reloading.Lock()
		defer r.reloading.Unlock()
		if r.trial == t {
			_, _ = r.goBack("The reload was not confirmed in time.") // it has logged the error
		}
	})
	r.trial = t
	r.g.options.Log.Warn().Time("confirm_by", t.until).Msg("The configuration goes back to the one before unless it is confirmed: cnpgate reload --confirmed.")
	return &t.until
}

// endTrial forgets a trial: the configuration in force stays, whichever it is. The caller holds reloading.
func (r *reloader) endTrial() {
	if r.trial != nil {
		r.trial.timer.Stop()
		r.trial = nil
	}
}

var errNoTrial = api.Conflict{Err: errors.New("no reload waits to be confirmed")}

// Confirm keeps the configuration of a trial.
func (r *reloader) Confirm() (*api.Reloaded, error) {
	r.reloading.Lock()
	defer r.reloading.Unlock()
	if r.trial == nil {
		return nil, errNoTrial
	}
	kept := r.reloadedFrom(r.trial.before)
	r.endTrial()
	r.g.options.Log.Info().Strs("changes", kept.Changes).Msg("The reload was confirmed.")
	r.note(r.g.running.Load(), "confirmed", kept.Changes, nil)
	return kept, nil
}

// Revert ends a trial before its time.
func (r *reloader) Revert() (*api.Reloaded, error) {
	r.reloading.Lock()
	defer r.reloading.Unlock()
	if r.trial == nil {
		return nil, errNoTrial
	}
	return r.goBack("The reload was reverted.")
}

// goBack applies the configuration before a trial. The file is the operator's, and stays as it is.
func (r *reloader) goBack(why string) (*api.Reloaded, error) {
	before, after := r.trial.before, r.g.running.Load()
	r.endTrial()
	if err := r.change(before); err != nil {
		r.g.options.Log.Error().Err(err).Msg(why + " The configuration before can't be applied any more, so the new one stays in force.")
		r.note(after, "", nil, err)
		return nil, err
	}
	back := r.reloadedFrom(after)
	r.note(before, "reverted", back.Changes, nil)
	r.g.identify(r.g.options.Log.Warn()).Strs("changes", back.Changes).
		Msg(why + " The configuration before it is in force again. The file still has the new one: correct it before the next start.")
	return back, nil
}
