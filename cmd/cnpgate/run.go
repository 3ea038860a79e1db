package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control"
	"github.com/cnpgate/cnpgate/control/config"
)

func runCommand() *cobra.Command {
	var path, report string
	c := &cobra.Command{
		Use:   "run --config FILE [--report R.json]",
		Short: "Forward between the configured ports until SIGINT or SIGTERM",
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

func run(cfg *config.Config, report string) error {
	log := logger()
	ctx, abort, release := untilSignal()
	defer release()
	out := outputs{{flag: "--report", path: report}}
	if err := out.open(); err != nil {
		return err
	}
	devices, err := open(cfg, log)
	if err != nil {
		out.discard()
		return err
	}
	result, err := control.Run(ctx, cfg, devices, control.Options{Log: log, Timeline: report != "", Abort: abort})
	err = errors.Join(err, devices.close(log))
	if result == nil || report == "" {
		out.discard()
		return err
	}
	if writeErr := result.Write(out[0].writer()); writeErr != nil {
		out.discard()
		return errors.Join(err, writeErr)
	}
	return errors.Join(err, out.finish(), out.rename())
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

// untilSignal ends the context at the first SIGINT or SIGTERM and closes abort at the second.
func untilSignal() (ctx context.Context, abort <-chan struct{}, release func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals, again := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM)
	go func() {
		<-signals
		cancel()
		for first := time.Now(); time.Since(first) < echo; {
			<-signals
		}
		fmt.Fprintln(os.Stderr, "cnpgate: second signal: what is still queued is dropped")
		close(again)
	}()
	return ctx, again, func() {
		signal.Stop(signals)
		cancel()
	}
}
