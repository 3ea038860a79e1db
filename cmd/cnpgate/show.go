package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/config"
)

func showCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "show",
		Short: "Show the state of the running gateway",
	}
	f := &showFlags{} // of all of them
	c.Flags().DurationVarP(&f.watch, "watch", "w", 0, "print again at this interval, such as 1s, until Ctrl-C")
	outputFlag(c, &f.output)
	wideFlag(c, &f.wide)
	f.socketFlags(c)
	c.PersistentFlags().AddFlagSet(c.Flags())
	c.AddCommand(showTechCommand(f), showConfigCommand(f), showCountersCommand(f), showFlowsCommand(f), showNotificationsCommand(f), showPortsCommand(f), showSendersCommand(f))
	for i := range lists {
		c.AddCommand(lists[i].command(f))
	}
	group(c, showGroups)
	return c
}

// showable is a resource that the running gateway can show.
type showable struct {
	resource string // of the API
	print    func(ctx context.Context, client *api.Client, to io.Writer) error
	verdict  func(answer []byte) error               // of the answer as JSON, which decides the exit status; nil: none
	render   func(to io.Writer, answer []byte) error // as print, for an answer of another gateway; nil: not of others
}

// printed is a resource whose answer, an A, a function prints as text.
func printed[A any](path string, print func(to io.Writer, answer *A) error) showable {
	render := func(to io.Writer, text []byte) error {
		return unmarshal(text, func(answer *A) error { return print(to, answer) })
	}
	return showable{resource: path, render: render, print: func(ctx context.Context, client *api.Client, to io.Writer) error {
		answer, err := api.Get[A](ctx, client, path)
		if err != nil {
			return err
		}
		return print(to, answer)
	}}
}

// judged is such a resource, whose answer decides the exit status, too.
func judged[A any](path string, print func(to io.Writer, answer *A) error, verdict func(answer *A) error) showable {
	s := printed(path, func(to io.Writer, answer *A) error {
		if err := print(to, answer); err != nil {
			return err
		}
		return verdict(answer)
	})
	s.verdict = func(text []byte) error { return unmarshal(text, verdict) }
	return s
}

// unmarshal calls do with an answer, an A, that is JSON.
func unmarshal[A any](text []byte, do func(answer *A) error) error {
	answer := new(A)
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("the answer of the gateway: %w; expected that of a gateway of this version", err)
	}
	return do(answer)
}

// reads are several resources that are read one after the other, until one fails.
type reads []func(ctx context.Context, client *api.Client) error

func (all reads) from(ctx context.Context, client *api.Client) error {
	for _, read := range all {
		if err := read(ctx, client); err != nil {
			return err
		}
	}
	return nil
}

// as reads a resource, an A, to a variable.
func as[A any](to **A, path string) func(ctx context.Context, client *api.Client) error {
	return func(ctx context.Context, client *api.Client) (err error) {
		*to, err = api.Get[A](ctx, client, path)
		return err
	}
}

// showFlags select the running gateway, and how its answer is printed.
type showFlags struct {
	output, socket, config string
	watch                  time.Duration
	fleet, wide            bool // of all gateways of the fleet; all columns
}

// showSocket explains the choice of the socket, in the commands' help.
const showSocket = `

The gateway's socket is --socket, or management.listen of --config, or $` + socketVariable + `, or ` + api.DefaultSocket + `.`

const socketVariable = "CNPGATE_SOCKET"

// command makes c show a resource.
func (f *showFlags) command(c *cobra.Command, s showable) *cobra.Command {
	c.RunE = func(c *cobra.Command, _ []string) error { return f.show(c, s) }
	if s.render != nil {
		c.Flags().BoolVar(&f.fleet, "fleet", false, "of all gateways of the fleet (docs/fleet.md)")
	}
	return asksGateway(c)
}

// ofGateway adds what commands have that ask the running gateway: the flags that select its socket, and their help.
func (f *showFlags) ofGateway(c *cobra.Command) *cobra.Command {
	f.socketFlags(c)
	return asksGateway(c)
}

// asksGateway adds the help about the socket.
func asksGateway(c *cobra.Command) *cobra.Command {
	c.Long += showSocket
	if c.Args == nil {
		c.Args = noArguments
	}
	return c
}

// socketFlags adds the flags that select the socket.
func (f *showFlags) socketFlags(c *cobra.Command) {
	c.Flags().StringVar(&f.socket, "socket", "", "Unix socket of the gateway's API")
	c.Flags().StringVarP(&f.config, "config", "c", "", "configuration file (YAML) of the gateway")
	c.MarkFlagsMutuallyExclusive("socket", "config")
}

// ask calls do with a client of the running gateway, and a context that SIGINT and SIGTERM end.
func (f *showFlags) ask(c *cobra.Command, do func(ctx context.Context, client *api.Client) error) error {
	socket, err := f.where(c)
	if err != nil {
		return err
	}
	ctx, stop := untilStopped()
	defer stop()
	return do(ctx, api.NewClient(socket))
}

// untilStopped is a context that SIGINT and SIGTERM end.
func untilStopped() (ctx context.Context, stop func()) {
	return signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
}

func (f *showFlags) show(c *cobra.Command, s showable) error {
	return f.ask(c, func(ctx context.Context, client *api.Client) error {
		return f.repeat(ctx, c.OutOrStdout(), func(to io.Writer) error {
			if f.fleet {
				return f.printFleet(ctx, s, client, to)
			}
			return f.print(ctx, s, client, to)
		})
	})
}

// repeat prints once, or repeatedly until the context ends or an error occurs. On a terminal the new text replaces the old one.
func (f *showFlags) repeat(ctx context.Context, to io.Writer, print func(io.Writer) error) error {
	on := paperOf(to, f.wide)
	if f.watch == 0 {
		return print(on)
	}
	if f.watch < leastWatch {
		return fmt.Errorf("--watch is %v, expected at least %v", f.watch, leastWatch)
	}
	tick := time.NewTicker(f.watch)
	defer tick.Stop()
	for {
		var text bytes.Buffer
		if isScreen(to) {
			text.WriteString(clearScreen)
		}
		on.Writer = &text
		if err := print(on); ctx.Err() != nil {
			return nil // it may have ended a request
		} else if err != nil && !errors.As(err, new(*exitError)) {
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

// withMode are the resources whose counts of notifications have those that ports in observe mode would have sent.
var withMode = []string{api.CountersPath, api.FlowsPath, api.SendersPath, api.NotificationsPath, api.EpisodesPath}

// printMode says above such a resource which ports only observe, if any.
func printMode(ctx context.Context, client *api.Client, resource string, to io.Writer) error {
	if path, _, _ := strings.Cut(resource, "?"); !slices.Contains(withMode, path) {
		return nil
	}
	m, err := api.Get[api.Modes](ctx, client, api.ModePath)
	if err != nil {
		return err
	}
	if ports := observing(m); len(ports) > 0 {
		return printHung(to, "", "Observe mode of "+ofPorts(ports)+": nobody is notified; notifications and marks are those that would have been.")
	}
	return nil
}

// ofPorts names ports.
func ofPorts(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return "port " + names[0]
	}
	return "ports " + strings.Join(names[:last], ", ") + " and " + names[last]
}

// observing are the names of the ports that only observe.
func observing(m *api.Modes) (ports []string) {
	for _, p := range m.Ports {
		if p.Mode == config.ModeObserve {
			ports = append(ports, p.Port)
		}
	}
	return ports
}

// leastWatch is the shortest interval of --watch.
const leastWatch = 100 * time.Millisecond

func (f *showFlags) print(ctx context.Context, s showable, client *api.Client, to io.Writer) error {
	if f.output == "text" {
		var text bytes.Buffer
		on, _ := to.(paper)
		on.Writer = &text
		failed := s.print(ctx, client, on)
		if text.Len() == 0 {
			return failed
		}
		if err := printMode(ctx, client, s.resource, to); err != nil {
			return err
		}
		_, err := to.Write(text.Bytes())
		return errors.Join(failed, err)
	}
	body, err := client.JSON(ctx, s.resource)
	if err != nil {
		return err
	}
	defer body.Close()
	var text bytes.Buffer
	from := io.Reader(body)
	if s.verdict != nil {
		from = io.TeeReader(body, &text)
	}
	_, err = io.Copy(to, from)
	switch {
	case err == nil && s.verdict != nil:
		return s.verdict(text.Bytes())
	case errors.Is(err, io.ErrUnexpectedEOF):
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
		link := api.LinkOf(f.config)
		if _, err := os.Stat(link); err == nil { // of the running gateway, which may not have read the file again
			return link, nil
		}
		if cfg.Management.Socket == "" {
			return "", fmt.Errorf("%s has no management.listen, so its gateway has no API; expected one such as unix:%s", f.config, api.DefaultSocket)
		}
		return cfg.Management.Socket, nil
	case f.socket == "" && c.Flags().Changed("socket"):
		return "", errors.New("--socket is empty; expected the path of the gateway's socket")
	}
	return strings.TrimPrefix(cmp.Or(f.socket, os.Getenv(socketVariable), api.DefaultSocket), "unix:"), nil
}

// writeIndented writes a value as JSON for people.
func writeIndented(to io.Writer, value any) error {
	e := json.NewEncoder(to)
	e.SetIndent("", "  ")
	return e.Encode(value)
}
