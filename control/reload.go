package control

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control/advertise/bgp"
	"github.com/cnpgate/cnpgate/control/assemble"
	"github.com/cnpgate/cnpgate/control/config"
)

// Reload applies the present configuration file, and returns the keys that have changed. If the file has mistakes or changes that need a restart,
// the error lists them, and the old configuration stays in force. Any goroutine may call it.
func (g *gateway) Reload() (changes []string, err error) {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	g.announceIfForwarding("RELOADING=1\nMONOTONIC_USEC=" + monotonicMicroseconds())
	defer g.announceIfForwarding(daemon.SdNotifyReady)
	next, err := g.load()
	var settings *bgp.Settings
	if err == nil {
		settings, err = bgpSettings(next)
	}
	if err == nil {
		changes = next.Changes(g.running.Load())
		err = g.apply(next)
	}
	if err != nil {
		g.logRefused(err)
		return nil, err
	}
	for _, w := range next.Warnings {
		g.options.Log.Warn().Stringer("at", w.Position).Msg("Warning about the configuration: " + w.Text + ".")
	}
	g.setBGP(settings)
	g.identify(g.options.Log.Info()).Strs("changes", changes).Msg("The configuration was reloaded.")
	return changes, nil
}

// load reads the configuration of a reload, and checks that it can be applied while the gateway runs.
func (g *gateway) load() (*config.Config, error) {
	if g.options.Load == nil {
		return nil, errors.New("this gateway has no configuration file to read again; start it again with another configuration")
	}
	next, err := g.options.Load()
	if err != nil {
		return nil, err
	}
	return next, next.CheckReload(g.started)
}

// apply applies a configuration, also at the start. Each worker uses the new policy from its next burst on; flows, the state of their QPs, limits and
// queues are preserved.
func (g *gateway) apply(next *config.Config) error {
	policy, err := assemble.Policy(next, g.seed)
	if err != nil {
		return err
	}
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
	setLogLevel(next.Management.LogLevel)
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

// forwards notifies the service manager that the gateway forwards from now on, or that it stops.
func (g *gateway) forwards(now bool) {
	g.announcing.Lock()
	defer g.announcing.Unlock()
	g.announced = now
	if now {
		announce(daemon.SdNotifyReady)
	} else {
		announce(daemon.SdNotifyStopping)
	}
}

// announceIfForwarding notifies the service manager of a state, unless the gateway doesn't forward yet or stops: READY=1 would then be wrong.
func (g *gateway) announceIfForwarding(state string) {
	g.announcing.Lock()
	defer g.announcing.Unlock()
	if g.announced {
		announce(state)
	}
}

func monotonicMicroseconds() string {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // every Linux has it
	return strconv.FormatInt(now.Nano()/1000, 10)
}
