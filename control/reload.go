package control

import (
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control/advertise/bgp"
	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/assemble"
	"github.com/cnpgate/cnpgate/control/config"
)

// Reload applies the present configuration file. If the file has mistakes or changes that need a restart, the error lists them, and the old
// configuration stays in force. While an earlier reload waits to be confirmed, it is refused: it would confirm that one, or make it unclear what to go
// back to. Any goroutine may call it.
func (g *gateway) Reload(r api.ReloadRequest) (*api.Reloaded, error) {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	if r.DryRun {
		return g.dryRun()
	}
	g.announcer.ifForwarding("RELOADING=1\nMONOTONIC_USEC=" + monotonicMicroseconds())
	defer g.announcer.ifForwarding(daemon.SdNotifyReady)
	before := g.running.Load()
	var next *config.Config
	err := g.trial.refuses()
	if err == nil {
		next, err = g.load()
	}
	if err == nil {
		err = next.CheckReload(g.started)
	}
	if err == nil {
		err = g.change(next)
	}
	if err != nil {
		g.logRefused(err)
		g.reloads.note(g, "", nil, err)
		return nil, err
	}
	for _, w := range next.Warnings {
		g.options.Log.Warn().Stringer("at", w.Position).Msg("Warning about the configuration: " + w.Text + ".")
	}
	changes := next.Changes(before)
	g.identify(g.options.Log.Info()).Strs("changes", changes).Msg("The configuration was reloaded.")
	g.reloads.note(g, "reloaded", changes, nil)
	done := g.reloadedFrom(before)
	if r.Confirm > 0 && len(changes) > 0 {
		done.ConfirmBy = g.tryFor(r.Confirm, before)
	}
	return done, nil
}

// reloadedFrom is the answer to a reload that has replaced a configuration.
func (g *gateway) reloadedFrom(before *config.Config) *api.Reloaded {
	now := g.running.Load()
	return &api.Reloaded{Changes: append([]string{}, now.Changes(before)...), ConfigHash: now.File.Hash()}
}

// dryRun reports what a reload would change.
func (g *gateway) dryRun() (*api.Reloaded, error) {
	next, err := g.load()
	if err != nil {
		return nil, err
	}
	before := g.running.Load()
	would := &api.Reloaded{Changes: append([]string{}, next.Changes(before)...), ConfigHash: before.File.Hash()}
	var stand *config.Error
	switch err := next.CheckReload(g.started); {
	case errors.As(err, &stand):
		for _, p := range stand.Problems {
			would.NeedsRestart = append(would.NeedsRestart, p.String())
		}
	case err != nil:
		return nil, err
	}
	if _, err := bgp.Load(next.BGP); err != nil {
		return nil, err
	}
	_, err = assemble.Policy(next, g.seed)
	return would, err
}

// load reads the configuration of a reload.
func (g *gateway) load() (*config.Config, error) {
	if g.options.Load == nil {
		return nil, errors.New("this gateway has no configuration file to read again; start it again with another configuration")
	}
	return g.options.Load()
}

// change makes a configuration the one in force, with all that was changed besides: modes and log level.
func (g *gateway) change(next *config.Config) error {
	settings, err := bgp.Load(next.BGP)
	if err != nil {
		return err
	}
	to, err := openPulse(next)
	if err != nil {
		return err
	}
	servers, err := g.servers.prepare(g, next)
	if err != nil {
		to.close()
		return err
	}
	modes := g.modes
	g.modes = nil
	if err := g.apply(next); err != nil {
		g.modes = modes
		servers.abandon()
		to.close()
		return err
	}
	servers.use()
	g.heartbeat.use(to)
	setLogLevel(next.Management.LogLevel)
	g.setBGP(settings)
	return nil
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
	select {
	case g.reloaded <- struct{}{}:
	default:
	}
	return nil
}

// logRefused logs each mistake of a configuration that was not applied.
func (g *gateway) logRefused(err error) {
	const message = "The configuration was not reloaded. The old one stays in force."
	var mistakes *config.Error
	if !errors.As(err, &mistakes) {
		g.options.Log.Error().Err(err).Msg(message)
		return
	}
	for _, p := range mistakes.Problems {
		g.options.Log.Error().Stringer("at", p.Position).Str("problem", p.Text).Msg(message)
	}
}

// announce sends the gateway's state to the service manager, if there is one. Errors are ignored.
func announce(state string) { _, _ = daemon.SdNotify(false, state) }

// announcer notifies the service manager of what the gateway does.
type announcer struct {
	sync.Mutex
	forwarding bool // it was notified that the gateway forwards, and not yet that it stops
}

// forwards notifies the service manager that the gateway forwards from now on, or that it stops.
func (a *announcer) forwards(now bool) {
	a.Lock()
	defer a.Unlock()
	a.forwarding = now
	if now {
		announce(daemon.SdNotifyReady)
	} else {
		announce(daemon.SdNotifyStopping)
	}
}

// ifForwarding notifies the service manager of a state, unless the gateway doesn't forward yet or stops: READY=1 would then be wrong.
func (a *announcer) ifForwarding(state string) {
	a.Lock()
	defer a.Unlock()
	if a.forwarding {
		announce(state)
	}
}

func monotonicMicroseconds() string {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // every Linux has it
	return strconv.FormatInt(now.Nano()/1000, 10)
}
