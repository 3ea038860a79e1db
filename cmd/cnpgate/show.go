package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/report"
)

func showCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "show",
		Short: "Ask the running gateway",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return fmt.Errorf("show what? Expected %s flows", c.CommandPath())
		},
	}
	c.AddCommand(showFlowsCommand())
	return c
}

type showFlags struct{ output, socket, config string }

func showFlowsCommand() *cobra.Command {
	var f showFlags
	c := &cobra.Command{
		Use:   "flows [-o text|json] [--socket PATH | --config FILE]",
		Short: "Print the flows of the running gateway, and how sure it is of each sender's QP",
		Long: `A flow a line: the port and VLANs it comes in by, who sends from which QP to whom, how sure the QP is (unknown, candidate or confirmed,
and why the record has ended if it has), the evidence, how many of the flow's packets it took and how often it was contradicted; packets,
octets, packets marked CE here, and notifications sent about it. QP is "-" unless it is confirmed. Sorted, unless -o json: that is the
answer of the API as it comes. The socket is the management.listen of --config, or --socket, or ` + api.DefaultSocket + `.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.show(c) },
	}
	c.Flags().StringVarP(&f.output, "output", "o", "text", `"text" or "json"`)
	c.Flags().StringVar(&f.socket, "socket", "", "Unix socket of the gateway's API")
	c.Flags().StringVarP(&f.config, "config", "c", "", "configuration file (YAML) of the gateway")
	c.MarkFlagsMutuallyExclusive("socket", "config")
	return c
}

func (f *showFlags) show(c *cobra.Command) error {
	if f.output != "text" && f.output != "json" {
		return fmt.Errorf(`--output is %q, expected "text" or "json"`, f.output)
	}
	socket, err := f.where(c)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	client := api.NewClient(socket)
	if f.output == "json" {
		return copyFlows(ctx, client, c.OutOrStdout())
	}
	flows, err := client.Flows(ctx)
	if err != nil {
		return err
	}
	slices.SortStableFunc(flows, func(a, b api.Flow) int { return report.CompareFlows(a.Flow, b.Flow) })
	return printFlows(c.OutOrStdout(), flows)
}

// where is the socket to ask at.
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
	case f.socket != "":
		return strings.TrimPrefix(f.socket, "unix:"), nil
	case c.Flags().Changed("socket"):
		return "", errors.New("--socket is empty; expected the path of the gateway's socket")
	}
	return api.DefaultSocket, nil
}

func copyFlows(ctx context.Context, client *api.Client, to io.Writer) error {
	body, err := client.FlowsJSON(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	if _, err = io.Copy(to, body); errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the answer is not whole (%w): the gateway has stopped, or is too busy; try again", err)
	}
	return err
}

const flowColumns = "PORT\tVLAN\tSOURCE\tQP\tDESTINATION\tQP\tSTATE\tEVIDENCE\tTOOK\tCONTRADICTIONS\tPACKETS\tBYTES\tMARKED\tNOTIFICATIONS\n"

func printFlows(to io.Writer, flows []api.Flow) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(w, flowColumns); err != nil {
		return err
	}
	for i := range flows {
		f := &flows[i]
		_, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\n", f.Port, vlans(f.VLAN), f.SourceIP, orDash(f.SourceQP),
			f.DestinationIP, f.DestinationQP, flowState(f), orDash(f.QPEvidence), took(f), f.QPConflicts, f.Packets, f.Bytes, f.ECNMarked,
			sent(f.Notifications))
		if err != nil {
			return err
		}
	}
	return w.Flush()
}

func orDash[T any](v *T) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(*v)
}

func vlans(ids []uint16) string {
	if len(ids) == 0 {
		return "-"
	}
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.Itoa(int(id))
	}
	return strings.Join(texts, ".")
}

func flowState(f *api.Flow) string {
	if f.Ended != "" {
		return f.QPState + " (" + f.Ended + ")"
	}
	return f.QPState
}

func took(f *api.Flow) string {
	if f.SourceQP == nil {
		return "-"
	}
	return strconv.FormatUint(f.QPPackets, 10)
}

// sent lists the notifications by kind.
func sent(kinds map[string]uint64) string {
	if len(kinds) == 0 {
		return "-"
	}
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		all = append(all, fmt.Sprintf("%s %d", kind, kinds[kind]))
	}
	return strings.Join(all, ", ")
}
