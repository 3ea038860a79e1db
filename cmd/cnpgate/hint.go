package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/columns"
	"github.com/cnpgate/cnpgate/control/config"
)

type hintFlags struct {
	showFlags
	tags, tunnel string
	remove       bool
}

func hintCommand() *cobra.Command {
	var f hintFlags
	c := &cobra.Command{
		Use:   "hint [HOST,QP HOST,QP [--tags TAGS] [--tunnel TUNNEL] [--remove]] [-o text|json] [--socket PATH | --config FILE]",
		Short: "State to the running gateway that two QPs are connected, or print its hints",
		Long: `With two hosts and their QPs it states that the QPs are connected, or with --remove withdraws that. It replaces hints that contradict it, and is in force until the
gateway ends. Without --tags and --tunnel, it applies where only one VLAN or tunnel has such flows.

Without them it prints a line for each hint. Then one for each hint of a host's agent (cnpgate agent), about packets from the host only:` + columns.Help(api.HostHints.Text()) + `

One without a destination applies where exactly one flow goes from the source to that QP. -o json prints the API's answer to the request at /v1/hints.`,
		SuggestFor: []string{"hints"},
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 0 && len(args) != 2 {
				return seeHelp(c, fmt.Errorf("ends given: %d; expected two as HOST,QP, or none", len(args)))
			}
			if len(args) == 0 && (f.tags != "" || f.tunnel != "" || f.remove) {
				return seeHelp(c, errors.New("--tags, --tunnel and --remove are of a hint; expected two ends as HOST,QP"))
			}
			return nil
		},
		RunE: f.hint,
	}
	c.Flags().StringVar(&f.tags, "tags", "", "VLAN tags of the connection, such as 10, 0x88a8:10/20 or none")
	c.Flags().StringVar(&f.tunnel, "tunnel", "", "tunnel of the connection, such as vxlan:5000")
	c.Flags().BoolVar(&f.remove, "remove", false, "withdraw the hint")
	outputFlag(c, &f.output)
	return f.ofGateway(c)
}

// hintKeys are the keys of the ends of a hint.
var hintKeys = [2][2]string{{"source_ip", "source_qp"}, {"destination_ip", "destination_qp"}}

func (f *hintFlags) hint(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return f.show(c, printed(api.HintsPath, printHints))
	}
	values := map[string]string{}
	for i, arg := range args {
		host, qp, ok := strings.Cut(arg, ",")
		if !ok {
			return fmt.Errorf("%q is not an end of a connection; expected HOST,QP, such as 10.1.0.1,17", arg)
		}
		values[hintKeys[i][0]], values[hintKeys[i][1]] = host, qp
	}
	for key, text := range map[string]string{"tags": f.tags, "tunnel": f.tunnel} {
		if text != "" {
			values[key] = text
		}
	}
	pair, err := config.ParseQPPair(values)
	if err != nil {
		return err
	}
	return f.ask(c, func(ctx context.Context, client *api.Client) error {
		if !f.remove {
			a, err := api.Do[api.PutBody](ctx, client, http.MethodPut, api.HintsPath, api.Hint(pair))
			return f.answer(c, err, a, hintLines("connected", append([]api.Hint{a.Hint}, a.Replaced...)))
		}
		query := url.Values{}
		for key, text := range values {
			query.Set(key, text)
		}
		a, err := api.Do[api.DeletedBody](ctx, client, http.MethodDelete, api.Path(api.HintsPath, query), nil)
		return f.answer(c, err, a, hintLines("withdrawn", []api.Hint{a.Deleted}))
	})
}

// answer prints the answer to a change.
func (f *hintFlags) answer(c *cobra.Command, err error, answer any, text string) error {
	if err == nil && f.output == "json" {
		return json.NewEncoder(c.OutOrStdout()).Encode(answer)
	}
	return printLine(c, err, text)
}

// hintLines says what became of a hint, and which others it replaced.
func hintLines(what string, all []api.Hint) string {
	var lines []string
	for _, h := range all {
		lines = append(lines, fmt.Sprintf("%s: QP %d at %v and QP %d at %v", what, h.SourceQP, h.Source, h.DestinationQP, h.Destination))
		what = "replaced"
	}
	return strings.Join(lines, "\n")
}

func printHints(to io.Writer, all *api.HintsBody) error {
	if len(all.Hints)+len(all.HostHints) == 0 {
		_, err := fmt.Fprintln(to, "no hint is in force")
		return err
	}
	if err := printTable(to, api.StatedHints, all.Hints); err != nil || len(all.HostHints) == 0 {
		return err
	}
	fmt.Fprintln(to)
	return printTable(to, api.HostHints, all.HostHints)
}
