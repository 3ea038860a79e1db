package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/telemetry"
)

func showCountersCommand(f *showFlags) *cobra.Command {
	var mark, sinceMark bool
	c := f.command(&cobra.Command{
		Use:   "counters [--mark | --since-mark] [-o text|json] [--socket PATH | --config FILE]",
		Short: "Print the counters of each port of the running gateway",
		Long: `One line per counter, one column per port, and the sum of all ports; counters that are 0 everywhere are left out. The names are those of the
report, the log and docs/metrics.md. Histograms follow: p50, p99 and maximum, as upper bounds of buckets. --mark marks the counters, and --since-mark
prints what was counted since; a new mark replaces the one before, and the end of the gateway removes it. Gauges, such as queued_packets, are present values. -o json prints the API's answer unchanged, zeros included.`,
	}, showable{})
	c.Flags().BoolVar(&mark, "mark", false, "mark the counters, and print none")
	c.Flags().BoolVar(&sinceMark, "since-mark", false, "what was counted since the mark")
	c.MarkFlagsMutuallyExclusive("mark", "since-mark")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if mark {
			return f.ask(c, func(ctx context.Context, client *api.Client) error {
				m, err := api.Do[api.Mark](ctx, client, http.MethodPost, api.MarkPath, nil)
				return printLine(c, err, "marked at "+m.Time.Local().Format(time.TimeOnly))
			})
		}
		path := api.CountersPath
		if sinceMark {
			path = api.CountersSinceMark
		}
		return f.show(c, printed(path, func(to io.Writer, c *report.Counters) error {
			if err := printCounters(to, c); err != nil {
				return err
			}
			return printHistograms(to, c.Histograms)
		}))
	}
	return c
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
	w := newTable(to, strings.Join(append(columns, "ALL"), "\t"))
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
		w.row(name, strings.Join(row, "\t"), sum)
	})
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

// printHistograms prints a table with a line for each histogram that has values. It prints bounds of buckets, as the values themselves aren't known.
func printHistograms(to io.Writer, all []report.Histogram) error {
	w := newTable(to, "HISTOGRAM\tPORT\tCLASS\tWORKER\tVALUES\tMEAN\tP50 <=\tP99 <=\tMAX <=", "CLASS", "WORKER", "MEAN")
	for i := range all {
		h := &all[i]
		if h.Count == 0 {
			continue
		}
		print := unitOf(h.Name)
		w.row(h.Name, cmp.Or(h.Port, "-"), cmp.Or(h.Class, "-"), cmp.Or(h.Worker, "-"), h.Count,
			print(h.Sum/h.Count), bound(h, 0.5, print), bound(h, 0.99, print), bound(h, 1, print))
	}
	if len(w.rows) == 0 {
		return nil
	}
	fmt.Fprintln(to)
	return w.Flush()
}

// unitOf is how a histogram's values are printed.
func unitOf(name string) func(uint64) string {
	if strings.HasSuffix(name, "_nanoseconds") {
		return func(v uint64) string { return time.Duration(v).String() }
	}
	return func(v uint64) string { return strconv.FormatUint(v, 10) }
}

// bound is the bound that a part of the values doesn't exceed, "-" if there is none.
func bound(h *report.Histogram, part float64, print func(uint64) string) string {
	v, ok := h.Quantile(part)
	if !ok {
		return "-"
	}
	return print(v)
}
