package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/telemetry"
)

func showCountersCommand() *cobra.Command {
	var f showFlags
	var sinceMark bool
	c := f.command(&cobra.Command{
		Use:   "counters [--since-mark] [-o text|json] [--socket PATH | --config FILE]",
		Short: "Print the counters of each port of the running gateway",
		Long: `One line per counter, one column per port, and the sum of all ports; counters that are 0 everywhere are left out. The names are those of the
report, the log and docs/metrics.md. Histograms follow: p50, p99 and maximum, as upper bounds of buckets. --since-mark prints what was counted since
cnpgate mark; gauges, such as queued_packets, are present values. -o json prints the API's answer unchanged, zeros included.

` + showSocket,
	}, showable{})
	c.Flags().BoolVar(&sinceMark, "since-mark", false, "what was counted since cnpgate mark")
	c.RunE = func(c *cobra.Command, _ []string) error {
		path := api.CountersPath
		if sinceMark {
			path = api.CountersSinceMark
		}
		return f.show(c, showable{path, func(ctx context.Context, client *api.Client, to io.Writer) error {
			return showCounters(ctx, client, path, to)
		}})
	}
	return c
}

func showCounters(ctx context.Context, client *api.Client, path string, to io.Writer) error {
	c, err := client.Counters(ctx, path)
	if err != nil {
		return err
	}
	if err := printCounters(to, c); err != nil {
		return err
	}
	return printHistograms(to, c.Histograms)
}

// printCounters prints a table with a line for each value that isn't 0 everywhere, in the order of the catalogue. A cell is "-" if the port doesn't
// have that counter.
func printCounters(to io.Writer, c *report.Counters) error {
	columns := []string{"COUNTER"}
	cells := map[string][]string{} // by name, a cell per port
	names := telemetry.Values{}
	for i := range c.Ports {
		p := &c.Ports[i]
		columns = append(columns, strings.ToUpper(p.Name))
		for _, values := range []telemetry.Values{p.Counters, p.Device} {
			names.Merge(values)
			values.Each(func(name string, value uint64) {
				for len(cells[name]) < i {
					cells[name] = append(cells[name], "0")
				}
				cells[name] = append(cells[name], strconv.FormatUint(value, 10))
			})
		}
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	_, err := fmt.Fprintln(w, strings.Join(append(columns, "ALL"), "\t"))
	names.Merge(onlyOfAll(c))
	names.Each(func(name string, sum uint64) {
		row := cells[name]
		missing := "0"
		if row == nil {
			missing = "-"
		}
		for len(row) < len(c.Ports) {
			row = append(row, missing)
		}
		if err == nil {
			_, err = fmt.Fprintf(w, "%s\t%s\t%d\n", name, strings.Join(row, "\t"), sum)
		}
	})
	if err != nil {
		return err
	}
	return w.Flush()
}

// onlyOfAll are the values that exist only for all ports together: those of flow tables and pairing.
func onlyOfAll(c *report.Counters) telemetry.Values {
	only := telemetry.Values{}
	for _, m := range telemetry.All() {
		if r, ok := c.Counters[m.Name]; ok && m.Scope == telemetry.Gateway {
			only[m.Name] = r
		}
	}
	return only
}
