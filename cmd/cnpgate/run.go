package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/report"
)

func runCommand() *cobra.Command {
	var path, report string
	c := &cobra.Command{
		Use:   "run --config FILE [--report R.json]",
		Short: "Forward between the configured ports until SIGTERM, SIGINT or SIGQUIT",
		Long: `Opens the configured devices and forwards until it is told to stop; then it drains the queues at the ports' rates and ends. A second
signal ends the draining. The log goes to standard error, as JSON unless that is a terminal.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := load(c, path)
			if err != nil {
				return err
			}
			return run(cfg, report)
		},
	}
	configFlag(c, &path)
	c.Flags().StringVar(&report, "report", "", "write a report (JSON) to this file at the end, with the queues' depth over time")
	return c
}

func run(cfg *config.Config, reportPath string) error {
	log := logger()
	ctx, abort, release := untilSignal(log)
	defer release()
	out := outputs{{flag: "--report", path: reportPath}}
	if err := out.open(); err != nil {
		return err
	}
	devices, err := open(cfg, log)
	if err != nil {
		out.discard()
		return err
	}
	result, err := control.Run(ctx, cfg, devices, control.Options{Log: log, Timeline: reportPath != "", Abort: abort})
	return errors.Join(err, finish(result, out, devices.close))
}

// finish writes the report and then closes the devices: that can take a NIC half a minute, and a supervisor's patience may end before.
func finish(result *report.Report, out outputs, closeDevices func() error) error {
	err := save(result, out)
	return errors.Join(err, closeDevices())
}

// save writes the report, if there is one and it was asked for.
func save(result *report.Report, out outputs) error {
	if result == nil || out[0].path == "" {
		out.discard()
		return nil
	}
	if err := result.Write(out[0].writer()); err != nil {
		out.discard()
		return err
	}
	return errors.Join(out.finish(), out.rename())
}

func logger() zerolog.Logger {
	zerolog.TimeFieldFormat = zerolog.TimeFormatUnixMs
	log := zerolog.New(os.Stderr)
	if _, err := unix.IoctlGetTermios(int(os.Stderr.Fd()), unix.TCGETS); err == nil {
		log = log.Output(zerolog.ConsoleWriter{Out: os.Stderr, TimeFormat: "15:04:05.000"})
	}
	return log.With().Timestamp().Logger()
}

// echo is how long after the first signal another one is taken for the same: some supervisors signal a process and its group.
const echo = 500 * time.Millisecond

// untilSignal ends the context at the first SIGINT, SIGTERM or SIGQUIT and closes abort at the second. A SIGHUP, which a terminal sends that
// is closed, stops nothing.
func untilSignal(log zerolog.Logger) (ctx context.Context, abort <-chan struct{}, release func()) {
	ctx, cancel := context.WithCancel(context.Background())
	stops, again := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(stops, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT)
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, unix.SIGHUP)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
				log.Warn().Msg("SIGHUP ignored: a configuration is read at the start only; stop and start the gateway to change it")
			}
		}
	}()
	go func() {
		<-stops
		cancel()
		for first := time.Now(); time.Since(first) < echo; {
			<-stops
		}
		log.Warn().Msg("second signal: what is still queued is dropped")
		close(again)
	}()
	return ctx, again, func() {
		signal.Stop(stops) // SIGHUP stays ignored until the process ends
		cancel()
	}
}
