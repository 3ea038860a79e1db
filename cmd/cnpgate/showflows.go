package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/columns"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/internal/yamldoc"
)

type flowsFlags struct {
	*showFlags
	filter        flowFilter
	interval      time.Duration
	sort, columns string
	limit         uint32
}

func showFlowsCommand(shared *showFlags) *cobra.Command {
	f := flowsFlags{showFlags: shared}
	c := &cobra.Command{
		Use:   "flows [FILTERS] [--sort COLUMN] [--limit N] [--columns LIST] [-o text|json] [--interval TIME] [--watch TIME] [--socket PATH | --config FILE]",
		Short: "Print the flows of the running gateway: their rates, and the state of each sender's QP",
		Long: `One line per flow, with these columns:
` + columns.Help(api.Flows.Text()) + `

A candidate for SOURCE_QP, which no notification names, has a question mark. VLAN of a flow in a tunnel has the tunnel first, as in vxlan:5000.7. RATE is "-" for a flow that
began within --interval. Flows are sorted by their addresses, or by --sort, numbers from the largest on: --sort rate --limit 10 prints the ten fastest. -o json prints the API's answer
unchanged and unsorted.`,
	}
	f.command(c, showable{})
	f.filter.addFlow(c)
	wordFlag(c, f.filter.value("qp_state"), "qp-state", "", "only flows whose source QP has this state", api.QPStates...)
	wordFlag(c, f.filter.value("qp_evidence"), "qp-evidence", "", "only flows whose source QP was found so", api.QPEvidences...)
	intervalFlag(c, &f.interval)
	checkColumn := func(text string) error { return yamldoc.CheckWord(strings.ToLower(text), flowWords) }
	c.Flags().Var(checkedFlag(&f.sort, checkColumn), "sort", "sort by this column")
	complete(c, "sort", flowWords...)
	c.Flags().Var(checkedFlag(&f.columns, func(text string) error { _, err := columnsOf(text); return err }), "columns", "print these columns, joined by commas")
	complete(c, "columns", flowWords...)
	c.Flags().Uint32VarP(&f.limit, "limit", "n", 0, "print at most this many flows; 0: all")
	c.RunE = func(c *cobra.Command, _ []string) error { return f.run(c) }
	return c
}

func (f *flowsFlags) run(c *cobra.Command) error {
	if err := f.checkInterval(&f.interval); err != nil {
		return err
	}
	if f.output == "json" && (f.sort != "" || f.columns != "") {
		return errors.New("--sort and --columns are for text, and -o json is the API's answer unchanged; leave them out")
	}
	f.wide = f.wide || f.columns != "" // those that were asked for
	values := f.filter.values()
	if f.interval != 0 {
		values.Set("interval", f.interval.String())
	}
	sort := strings.ToLower(f.sort)
	ranked := f.limit > 0 && f.limit <= api.MaxRanked && slices.Contains([]string{"rate", "queued", "bytes"}, sort) // by the gateway
	if ranked {
		values.Set("sort", sort)
	}
	if f.limit > 0 && (ranked || f.output == "json") { // other text is limited once it is sorted
		values.Set("limit", strconv.FormatUint(uint64(f.limit), 10))
	}
	return f.show(c, printed(api.Path(api.FlowsPath, values), func(to io.Writer, all *api.FlowsBody) error { return f.print(to, all.Flows) }))
}

// print prints the flows in the wanted order and form.
func (f *flowsFlags) print(to io.Writer, flows []api.Flow) error {
	shown, err := columnsOf(cmp.Or(f.columns, strings.Join(flowWords, ",")))
	if err != nil {
		return err
	}
	var by []columns.Column
	if f.sort != "" {
		if by, err = columnsOf(f.sort); err != nil {
			return err
		}
	}
	if len(flows) == 0 {
		_, err := fmt.Fprintln(to, "no such flow")
		return err
	}
	sortFlows(flows, by)
	if n := uint64(f.limit); n > 0 && n < uint64(len(flows)) {
		flows = flows[:n]
	}
	return tableOf(to, shown, flows).Flush()
}

// flowWords are the words for the columns of flows.
var flowWords = columns.Names(api.Flows.Text())

// columnsOf reads a list of columns.
func columnsOf(list string) (some []columns.Column, err error) {
	all := api.Flows.Text()
	for _, word := range strings.Split(list, ",") {
		i := slices.Index(flowWords, strings.ToLower(word))
		if i < 0 {
			return nil, yamldoc.CheckWord(word, flowWords)
		}
		some = append(some, all[i])
	}
	return some, nil
}

// sortFlows sorts flows by a column, if there is one, and those that are equal by their addresses.
func sortFlows(flows []api.Flow, by []columns.Column) {
	slices.SortStableFunc(flows, func(a, b api.Flow) int {
		for i := range by {
			if c := columns.Compare(&by[i], &a, &b); c != 0 {
				return c
			}
		}
		return report.CompareFlows(a.Flow, b.Flow)
	})
}
