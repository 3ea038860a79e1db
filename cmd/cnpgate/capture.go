package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/capture"
)

type captureFlags struct {
	showFlags
	filter   notificationFilter
	file     string
	count    uint64
	duration time.Duration
}

func captureCommand() *cobra.Command {
	var f captureFlags
	c := &cobra.Command{
		Use:   "capture [-w FILE|-] [--count N] [--duration TIME] [FILTERS] [--socket PATH | --config FILE]",
		Short: "Capture the notifications that the running gateway sends, as pcapng with the reason in a comment",
		Long: `Writes each notification that the gateway sends from now on, until Ctrl-C, --count or --duration, as a packet of a pcapng file. The packet's comment
gives the threshold that the queue exceeded, and the flow that caused it. Wireshark and tshark show it (frame.comment); with deploy/wireshark/cnpgate.lua
they also dissect the notification. "-" is standard output: cnpgate capture -w - | tshark -r -. In observe mode the capture has the notifications that
would have been sent, and their comments say so. At the end the command prints how many notifications it captured, and how many were overwritten before
it could read them; the file's interface statistics also have the latter. ` + showSocket,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return f.capture(c) },
	}
	c.Flags().StringVarP(&f.file, "write", "w", "", `file to write to; "-" for standard output`)
	c.Flags().Uint64Var(&f.count, "count", 0, "end after this many notifications")
	c.Flags().DurationVar(&f.duration, "duration", 0, "end after this time, such as 10s")
	f.filter.add(c)
	f.addSocket(c)
	return c
}

func (f *captureFlags) capture(c *cobra.Command) error {
	socket, err := f.where(c)
	if err != nil {
		return err
	}
	switch {
	case f.file == "":
		return errors.New("no file to write to; expected --write FILE, or --write - for standard output")
	case f.filter.values().Get("outcome") == "suppressed":
		return errors.New("--outcome is suppressed, expected sent or observed: a suppressed notification has no frame; cnpgate show notifications prints why it was not sent")
	case f.file == "-" && isTerminal(c.OutOrStdout()):
		return errors.New("--write - would write pcapng to a terminal; expected a pipe or a file")
	case f.duration < 0:
		return fmt.Errorf("--duration is %v, expected more than 0", f.duration)
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	return f.write(ctx, c, api.NewClient(socket))
}

// open makes the file. It comes after the gateway's first answer: a capture of before stays where there is none.
func (f *captureFlags) open(ctx context.Context, c *cobra.Command) (to io.Writer, finish func() error, err error) {
	if f.file == "-" {
		return c.OutOrStdout(), func() error { return nil }, nil
	}
	if err := ownLink(f.file); err != nil {
		return nil, nil, fmt.Errorf("--write: %w", err)
	}
	file, err := opened(ctx, f.file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return nil, nil, err
	}
	return file, file.Close, nil
}

var errEnough = errors.New("as many notifications as were asked for")

// write captures until the context ends, and always finishes the file.
func (f *captureFlags) write(ctx context.Context, c *cobra.Command, client *api.Client) error {
	var out *capture.Writer
	var finish func() error
	ctx, end := context.WithCancel(ctx)
	defer end()
	begun := func() error {
		to, whenDone, err := f.open(ctx, c)
		if err != nil {
			return err
		}
		out, finish = capture.NewWriter(to, "cnpgate "+describe()), whenDone
		if f.duration > 0 {
			time.AfterFunc(f.duration, end)
		}
		fmt.Fprintln(c.ErrOrStderr(), "capturing notifications")
		return out.Begin()
	}
	err := client.Stream(ctx, f.filter.values(), begun, func(s *api.Streamed) error {
		if s.Notification == nil {
			out.Lost(s.Lost)
			return nil
		}
		if err := out.Write(s.Notification); err != nil {
			return err
		}
		if f.count > 0 && out.Written() == f.count {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	if out == nil {
		return err
	}
	err = errors.Join(err, out.End(), finish())
	fmt.Fprintf(c.ErrOrStderr(), "%d notifications captured, %d lost\n", out.Written(), out.Losses())
	return err
}
