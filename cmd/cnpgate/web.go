package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/netip"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/webserver"
)

// defaultPage is where the page is served unless --listen says otherwise.
const defaultPage = "127.0.0.1:8420"

type webFlags struct {
	showFlags
	listen string
}

func webCommand() *cobra.Command {
	var f webFlags
	c := &cobra.Command{
		Use:   "web [FILE ...] [--listen ADDRESS:PORT] [--socket PATH | --config FILE]",
		Short: "Serve the page of a running gateway, or of the results of a run, to a browser on this machine",
		Long: `Without a FILE, the page shows the running gateway: ports and queues, senders, congestion episodes, notifications and their reasons, pairs of QPs, health
and reloads. The page only reads. With files it shows a report of run or replay (JSON), or of sim what -o json or --csv gives; "-" is standard input.

It prints the page's address, and serves until Ctrl-C. A gateway with management.web serves the page itself, also to other machines.`,
		Args: cobra.ArbitraryArgs,
		RunE: f.web,
	}
	listenFlag(c, &f.listen)
	return f.ofGateway(c)
}

// listenFlag adds where the page is served.
func listenFlag(c *cobra.Command, listen *string) {
	*listen = defaultPage
	isLoopback := func(text string) error {
		if at, err := netip.ParseAddrPort(text); err != nil || !at.Addr().IsLoopback() {
			return fmt.Errorf("%q is not known; expected a loopback address and a port, such as %s: for other machines the gateway serves the page itself, with management.web", text, defaultPage)
		}
		return nil
	}
	c.Flags().Var(checkedFlag(listen, isLoopback), "listen", "loopback address and port of the page; port 0: a free one")
}

func (f *webFlags) web(c *cobra.Command, files []string) error {
	if len(files) == 0 {
		return f.ask(c, func(ctx context.Context, client *api.Client) error {
			if _, err := api.Get[api.Version](ctx, client, api.VersionPath); err != nil {
				warn(c, err.Error()+"; the page shows it once it runs")
			}
			return serveWeb(ctx, c, f.listen, webserver.NewLive(client))
		})
	}
	for _, flag := range []string{"socket", "config"} {
		if c.Flags().Changed(flag) {
			return fmt.Errorf("--%s and files are given; expected a running gateway or files", flag)
		}
	}
	ctx, stop := untilStopped()
	defer stop()
	recording := &webserver.Recording{}
	for _, name := range files {
		if isCapture(name) {
			return fmt.Errorf("%s is a capture, and not the result of a run; did you mean cnpgate replay --health --web %s?", name, name)
		}
		if err := addFile(ctx, c, recording, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return serveWeb(ctx, c, f.listen, recording)
}

func addFile(ctx context.Context, c *cobra.Command, to *webserver.Recording, name string) error {
	from := c.InOrStdin()
	if name != "-" {
		file, err := opened(ctx, name, 0)
		if err != nil {
			return err
		}
		defer file.Close()
		from = io.Reader(file)
	}
	return to.AddFile(filepath.Base(name), from)
}

// serveWeb serves a page at an address of listenFlag until the context ends.
func serveWeb(ctx context.Context, c *cobra.Command, listen string, source webserver.Source) error {
	page, err := webserver.Open(webserver.Local(listen), source, log.New(c.ErrOrStderr(), "cnpgate: web: ", 0))
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("--listen: another program, perhaps another page of cnpgate, has %s; expected a free port, such as --listen %v:0, which finds one", listen, netip.MustParseAddrPort(listen).Addr())
	}
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(c.OutOrStdout(), "The page is at %s; Ctrl-C ends it.\n", page.Entry()); err != nil {
		return err
	}
	return page.Serve(ctx)
}
