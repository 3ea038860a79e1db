package main

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/webserver"
	"github.com/cnpgate/cnpgate/sim/scenario"
	"github.com/cnpgate/cnpgate/sim/scenarios"
	"github.com/cnpgate/cnpgate/web"
)

// served is the value of --web without one.
const served = "serve"

// openPlayground serves, or writes to a file, the playground with a scenario.
func (f *simFlags) openPlayground(c *cobra.Command, name string) error {
	for _, flag := range []string{"sweep", "csv", "svg", "explain", "senders", "output", "cores"} {
		if c.Flags().Changed(flag) {
			return fmt.Errorf("--%s and --web are given; expected one of them: the playground shows one scenario, with two responses", flag)
		}
	}
	state, err := f.playground(c, name)
	if err != nil {
		return err
	}
	ctx, stop := untilStopped()
	defer stop()
	if f.web == served {
		return serveWeb(ctx, c, f.listen, webserver.Playground{Entry: "index.html#" + state})
	}
	return f.writePlayground(ctx, name, state)
}

// writePlayground writes the page as one file.
func (f *simFlags) writePlayground(ctx context.Context, name, state string) error {
	files, err := web.Files()
	if err != nil {
		return err
	}
	page, err := web.SingleFile(files, state)
	if err != nil {
		return err
	}
	all := outputs{{flag: "--web", path: f.web}}
	if err := distinct([]input{{"SCENARIO.yaml", name}}, all); err != nil {
		return err
	}
	if err := all.open(ctx); err != nil {
		return err
	}
	if _, err := all[0].writer().Write(page); err != nil {
		all.discard()
		return err
	}
	return errors.Join(all.finish(), all.rename())
}

// playground is the state of the page, as it is in the address bar (web/src/play/state.js), for a scenario that can be run.
func (f *simFlags) playground(c *cobra.Command, name string) (string, error) {
	runs, err := f.runs(c, name)
	if err != nil {
		return "", err
	}
	s, q := runs[0].scenario, url.Values{}
	left, right, err := f.sides(s)
	if err != nil {
		return "", err
	}
	q.Set("left", left)
	q.Set("right", right)
	if _, builtIn := scenarios.Find(s.Name); builtIn && !isFile(name) {
		q.Set("scenario", s.Name)
		for _, one := range f.set {
			q.Add("set", one)
		}
		return q.Encode(), nil
	}
	packed, err := pack(s.Text) // has the settings
	q.Set("scenario", s.Name)
	q.Set("yaml", packed)
	return q.Encode(), err
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
}

// sides are the responses of the two panes.
func (f *simFlags) sides(s *scenario.Scenario) (left, right string, err error) {
	left, right = scenario.ECN.String(), scenario.StandardCNP.String()
	if !slices.Contains(s.Responses, scenario.StandardCNP) {
		right = s.Responses[len(s.Responses)-1].String()
	}
	switch len(f.responses) {
	case 0:
	case 1:
		right = f.responses[0]
	case 2:
		left, right = f.responses[0], f.responses[1]
	default:
		return "", "", fmt.Errorf("--response names %d responses, and the playground shows two; expected one or two", len(f.responses))
	}
	return left, right, nil
}

// pack compresses text for an address.
func pack(text []byte) (string, error) {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		return "", err
	}
	if _, err := w.Write(text); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(b.Bytes()), nil
}
