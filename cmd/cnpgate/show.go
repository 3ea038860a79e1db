package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control/api"
)

func showCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "show",
		Short: "Show the state of the running gateway",
	}
	c.AddCommand(showBGPCommand(), showConfigCommand(), showCountersCommand(), showEpisodesCommand(), showFlowsCommand(), showHealthCommand(), showHintsCommand(), showNotificationsCommand(), showPairsCommand(),
		showPortsCommand(), showProxiesCommand(), showQueuesCommand(), showVersionCommand())
	return c
}

// showable is a resource that the running gateway can show.
type showable struct {
	resource string // of the API
	print    func(ctx context.Context, client *api.Client, to io.Writer) error
}

type showFlags struct {
	output, socket, config string
	watch                  time.Duration
}

// showSocket explains the choice of the socket, in the commands' help.
const showSocket = `The gateway's socket is --socket, or management.listen of --config, or $` + socketVariable + `, or ` + api.DefaultSocket + `.`

const socketVariable = "CNPGATE_SOCKET"

// command makes c show a resource.
func (f *showFlags) command(c *cobra.Command, s showable) *cobra.Command {
	c.Args = noArguments
	c.RunE = func(c *cobra.Command, _ []string) error { return f.show(c, s) }
	outputFlag(c, &f.output)
	c.Flags().DurationVarP(&f.watch, "watch", "w", 0, "print again at this interval, such as 1s, until Ctrl-C")
	f.addSocket(c)
	return c
}

// addSocket adds the flags that select the gateway's socket.
func (f *showFlags) addSocket(c *cobra.Command) {
	c.Flags().StringVar(&f.socket, "socket", "", "Unix socket of the gateway's API")
	c.Flags().StringVarP(&f.config, "config", "c", "", "configuration file (YAML) of the gateway")
	c.MarkFlagsMutuallyExclusive("socket", "config")
}

func (f *showFlags) show(c *cobra.Command, s showable) error {
	socket, err := f.where(c)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	return f.repeat(ctx, c.OutOrStdout(), func(to io.Writer) error { return f.print(ctx, s, api.NewClient(socket), to) })
}

// repeat prints once, or repeatedly until the context ends or an error occurs. On a terminal the new text replaces the old one.
func (f *showFlags) repeat(ctx context.Context, to io.Writer, print func(io.Writer) error) error {
	if f.watch == 0 {
		return print(to)
	}
	if f.watch < leastWatch {
		return fmt.Errorf("--watch is %v, expected at least %v", f.watch, leastWatch)
	}
	tick := time.NewTicker(f.watch)
	defer tick.Stop()
	for {
		var text bytes.Buffer
		if isTerminal(to) {
			text.WriteString(clearScreen)
		}
		if err := print(&text); ctx.Err() != nil {
			return nil // it may have ended a request
		} else if err != nil && !errors.Is(err, errUnhealthy) {
			return err
		}
		if _, err := to.Write(text.Bytes()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// leastWatch is the shortest interval of --watch.
const leastWatch = 100 * time.Millisecond

func (f *showFlags) print(ctx context.Context, s showable, client *api.Client, to io.Writer) error {
	if f.output == "text" {
		return s.print(ctx, client, to)
	}
	body, err := client.JSON(ctx, s.resource)
	if err != nil {
		return err
	}
	defer body.Close()
	if s.resource == api.HealthPath {
		err = copyHealth(to, body)
	} else {
		_, err = io.Copy(to, body)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the answer is incomplete (%w): the gateway has stopped, or is too busy; try again", err)
	}
	return err
}

// where is the path of the gateway's socket.
func (f *showFlags) where(c *cobra.Command) (string, error) {
	switch {
	case f.config != "":
		cfg, err := load(c, f.config)
		if err != nil {
			return "", err
		}
		if cfg.Management.Socket == "" {
			return "", fmt.Errorf("%s has no management.listen, so its gateway has no API; expected such as unix:%s", f.config, api.DefaultSocket)
		}
		return cfg.Management.Socket, nil
	case f.socket == "" && c.Flags().Changed("socket"):
		return "", errors.New("--socket is empty; expected the path of the gateway's socket")
	}
	return strings.TrimPrefix(cmp.Or(f.socket, os.Getenv(socketVariable), api.DefaultSocket), "unix:"), nil
}
