package main

import (
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/columns"
)

type sendersFlags struct {
	*showFlags
	interval time.Duration
	sort     string
	limit    uint32
}

func showSendersCommand(shared *showFlags) *cobra.Command {
	f := sendersFlags{showFlags: shared, sort: api.Sorts[0]}
	c := &cobra.Command{
		Use:   "senders [--sort VALUE] [--limit N] [--interval TIME] [-o text|json] [--watch TIME] [--socket PATH | --config FILE]",
		Short: "Print the senders of the running gateway's flows, those with the highest rates first",
		Long: `One line for each host that sends, by VLAN or tunnel, with the sums of its flows:
` + columns.Help(api.Senders.Text()) + `

-o json prints the API's answer to GET /v1/senders.`,
	}
	f.command(c, showable{})
	wordFlag(c, &f.sort, "sort", "", "what comes first", api.Sorts...)
	f.sort = api.Sorts[0]
	intervalFlag(c, &f.interval)
	c.Flags().Uint32VarP(&f.limit, "limit", "n", 20, fmt.Sprintf("print at most this many senders, up to %d", api.MaxRanked))
	c.RunE = func(c *cobra.Command, _ []string) error { return f.run(c) }
	return c
}

func (f *sendersFlags) run(c *cobra.Command) error {
	if err := f.checkInterval(&f.interval); err != nil {
		return err
	}
	values := url.Values{"sort": {f.sort}, "limit": {strconv.FormatUint(uint64(f.limit), 10)}}
	if f.interval != 0 {
		values.Set("interval", f.interval.String())
	}
	return f.show(c, printed(api.Path(api.SendersPath, values), printSenders))
}

func printSenders(to io.Writer, all *api.SendersBody) error {
	if len(all.Senders) == 0 {
		_, err := fmt.Fprintln(to, "no sender has a flow")
		return err
	}
	if err := printTable(to, api.Senders, all.Senders); err != nil || !all.More {
		return err
	}
	_, err := fmt.Fprintf(to, "and %d others\n", all.Total-uint64(len(all.Senders)))
	return err
}
