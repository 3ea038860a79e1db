package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/metrics"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/internal/sandbox"
)

func runCommand() *cobra.Command {
	var path, reportPath string
	var standby bool
	var flows int
	c := &cobra.Command{
		Use:   "run [--config] FILE [--report R.json [--flows N]] [--standby]",
		Short: "Forward between the configured ports until SIGTERM, SIGINT or SIGQUIT",

		SuggestFor: []string{"start"},

		Long: `Opens the configured devices and forwards until a signal stops it; then it drains the queues at the ports' rates and ends. A second
signal ends the draining. SIGHUP, like cnpgate reload, makes it read the configuration again. The log goes to standard error: text with priorities in
the journal, text at a terminal, else JSON, or as management.log_format says. With --standby it waits while another gateway uses one of the devices, and takes over when that one ends.`,
		RunE: func(*cobra.Command, []string) error {
			load := func() (*config.Config, error) { return config.Load(path) }
			cfg, err := load()
			if mistakes := (*config.Error)(nil); errors.As(err, &mistakes) {
				err = &exitError{err, refused}
			}
			if err != nil {
				return err
			}
			if err := checkListed(flows); err != nil {
				return err
			}
			return run(cfg, load, reportPath, flows, standby)
		},
	}
	configArgument(c, &path)
	c.Flags().StringVar(&reportPath, "report", "", "write a report (JSON) to this file at the end, with the queues' depth over time")
	flowsFlag(c, &flows)
	c.Flags().BoolVar(&standby, "standby", false, "wait while another gateway uses the devices, and take over when it ends")
	return c
}

// flowsFlag is the number of flows that a report lists.
func flowsFlag(c *cobra.Command, flows *int) {
	c.Flags().IntVar(flows, "flows", report.DefaultListed, "flows that the report lists, of 400 bytes each: those with most notifications, then bytes; the others are in its sums (flows_left_out)")
}

func checkListed(flows int) error {
	if flows < 1 {
		return fmt.Errorf("--flows %d: expected 1 or more flows that the report lists", flows)
	}
	return nil
}

// run forwards as cfg describes. A reload reads the configuration with load.
func run(cfg *config.Config, load func() (*config.Config, error), reportPath string, flows int, standby bool) error {
	lines := newPatientLog(logOutput(cfg.Management.LogFormat))
	defer lines.flush()
	log := loggerTo(lines).Hook(&repeats{now: time.Now})
	logWarnings(cfg, log)
	if err := sandbox.KeepFromCores(); err != nil {
		log.Warn().Err(err).Msg("A core dump would have the process's memory in it, with its keys.")
	}
	ctx, abort, release := untilSignal(log)
	defer release()
	hangups := make(chan struct{}, 1)
	forwardHangups(hangups)
	opening, alive := func() (*devices, error) { return open(cfg, log) }, func() {}
	if standby {
		s, err := standBy(ctx, cfg, load, log, lines.flush)
		if s == nil {
			return err
		}
		alive = keepAlive(takeOverLimit)
		defer alive()
		cfg, opening = s.cfg, s.open
	}
	devices, err := opening()
	if err != nil {
		return err
	}
	joinOperators(cfg.Management.Socket, log)
	out := outputs{{flag: "--report", path: reportPath}}
	result, err := control.Run(ctx, cfg, devices, control.Options{
		Log: log, Timeline: reportPath != "", Flows: flows, Abort: abort, Addresses: devices.addresses(), Load: load, Hangups: hangups, Output: out.open, Concerns: hostConcerns, LogLines: lines.usage,
		Build: metrics.Build{Version: version, Commit: revision(), DPDK: devicesVersion()}, Started: func() {
			devices.confine(cfg, reportPath)
			alive() // from now on the workers' steps count
		},
	})
	return errors.Join(err, finish(result, out, devices.close))
}

func logWarnings(c *config.Config, log zerolog.Logger) {
	for _, w := range c.Warnings {
		log.Warn().Stringer("at", w.Position).Msg("Warning about the configuration: " + w.Text + ".")
	}
}

// finish writes the report before it closes the devices: closing a NIC can take half a minute, and a supervisor may kill the process before that.
func finish(result *report.Report, out outputs, closeDevices func() error) error {
	err := save(result, out)
	return errors.Join(err, closeDevices())
}

// reportTime is how long the end of a run waits for the reader of a report that is a named pipe.
const reportTime = time.Second

// save writes the report, if there is one and it is wanted.
func save(result *report.Report, out outputs) error {
	if result == nil || out[0].path == "" {
		out.discard()
		return nil
	}
	if out[0].file == nil { // it couldn't be opened so far
		ctx, cancel := context.WithTimeout(context.Background(), reportTime)
		defer cancel()
		if err := out.open(ctx); err != nil {
			return err
		}
	}
	if err := result.Write(out[0].writer()); err != nil {
		out.discard()
		return err
	}
	return errors.Join(out.finish(), out.rename())
}

// echo is the time after the first signal in which a second one counts as the same: some supervisors signal a process and its group.
const echo = 500 * time.Millisecond

// untilSignal ends the context at the first SIGINT, SIGTERM or SIGQUIT and closes abort at the second.
func untilSignal(log zerolog.Logger) (ctx context.Context, abort <-chan struct{}, release func()) {
	ctx, cancel := context.WithCancel(context.Background())
	stops, again := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(stops, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT)
	go func() {
		<-stops
		cancel()
		for first := time.Now(); time.Since(first) < echo; {
			<-stops
		}
		log.Warn().Msg("A second signal arrived. Frames that are still queued are dropped.")
		close(again)
	}()
	return ctx, again, func() {
		signal.Stop(stops)
		cancel()
	}
}

// forwardHangups asks for a reload at each SIGHUP; those that arrive while a reload is pending count as one. SIGHUP never ends the process, not even
// before it forwards or while it stops: closing a terminal also sends it.
func forwardHangups(reload chan<- struct{}) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGHUP)
	go func() {
		for range signals {
			select {
			case reload <- struct{}{}:
			default:
			}
		}
	}()
}

const (
	// takeOverLimit is how long a gateway that stood by may take until it forwards: as long as systemd lets a service start (DefaultTimeoutStartSec).
	takeOverLimit = 90 * time.Second
	// keepAlives is how many times within its timeout the service manager's watchdog is fed.
	keepAlives = 4
)

// keepAlive feeds the service manager's watchdog until stop is called, or for limit at most. A gateway that stood by has said READY=1, so the watchdog
// already runs while it opens its devices, which can take a NIC far longer than WatchdogSec. stop may be called more than once.
func keepAlive(limit time.Duration) (stop func()) {
	timeout, err := daemon.SdWatchdogEnabled(false)
	if err != nil || timeout < keepAlives {
		return func() {} // no watchdog; control warns of a timeout that is not a number
	}
	ctx, stop := context.WithTimeout(context.Background(), limit)
	go func() {
		for ctx.Err() == nil {
			_, _ = daemon.SdNotify(false, daemon.SdNotifyWatchdog)
			select {
			case <-ctx.Done():
			case <-time.After(timeout / keepAlives):
			}
		}
	}()
	return stop
}

// followed is a configuration whose file may change while a gateway stands by.
type followed struct {
	cfg  *config.Config // that was read last
	load func() (*config.Config, error)
	log  zerolog.Logger
	at   time.Time   // of the last look at the file
	file os.FileInfo // as it was then
}

// changed reads the file again if it is another one, and returns the new configuration, nil if there is none. If the file has a mistake now, the
// configuration stays.
func (f *followed) changed() *config.Config {
	f.at = time.Now()
	info, err := os.Stat(f.cfg.File.Name)
	if err != nil || !info.Mode().IsRegular() ||
		f.file != nil && os.SameFile(f.file, info) && info.ModTime().Equal(f.file.ModTime()) && info.Size() == f.file.Size() {
		return nil
	}
	f.file = info
	next, err := f.load()
	switch {
	case err != nil:
		f.log.Error().Err(err).Msg("The configuration file has changed and can't be used. The gateway uses the one that it read before.")
		return nil
	case next.File.Hash() == f.cfg.File.Hash():
		return nil
	}
	logWarnings(next, f.log)
	return next
}
