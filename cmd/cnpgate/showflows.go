package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/config"
)

type flowsFlags struct {
	showFlags
	filter        flowFilter
	interval      time.Duration
	sort, columns string
	limit         uint32
}

func showFlowsCommand() *cobra.Command {
	var f flowsFlags
	c := &cobra.Command{
		Use:   "flows [FILTERS] [--sort COLUMN] [--limit N] [--columns LIST] [-o text|json] [--interval TIME] [--watch TIME] [--socket PATH | --config FILE]",
		Short: "Print the flows of the running gateway: their rates, and the state of each sender's QP",
		Long: `One line per flow, with these columns:

  PORT, VLAN             port at which the flow arrives, and the VID of each VLAN tag; of a flow in a tunnel the kind of tunnel,
                         its identifier and the VID of the frame inside, as in vxlan:5000.7
  SOURCE, SOURCE_QP      the sender, and its QP if that is confirmed
  CANDIDATE_QP           a QP that may be the sender's; no notification names it
  DESTINATION, DESTINATION_QP
  RATE                   of the flow's frames without FCS, during --interval; "-" for a flow that began within it
  AGE                    time since the flow's last packet; at flows.aging the flow is removed
  PACKETS, BYTES         since the flow began
  QUEUED                 bytes of the flow in a queue now, as far as its worker tracks them
  MARKED                 packets that the gateway marked CE
  NOTIFICATIONS          sent about the flow, by kind
  REACTS                 "no" of a sender that doesn't react to notifications
  QP_STATE               of the source QP: unknown, candidate or confirmed
  ENDED                  why the flow has ended: its connection was released (dreq), or its QP was reused (reuse)
  QP_EVIDENCE            how the source QP was found
  QP_PACKETS             packets of the flow until its source QP was confirmed
  QP_CONTRADICTIONS      how often packets contradicted the source QP

Flows are sorted by their addresses, or by --sort, numbers from the largest on: --sort rate --limit 10 prints the ten fastest. -o json prints the API's answer
unchanged and unsorted.

` + showSocket,
	}
	f.command(c, showable{})
	f.filter.addFlow(c)
	wordFlag(c, f.filter.value("qp_state"), "qp-state", "", "only flows whose source QP has this state", api.QPStates...)
	wordFlag(c, f.filter.value("qp_evidence"), "qp-evidence", "", "only flows whose source QP was found so", api.QPEvidences...)
	intervalFlag(c, &f.interval)
	checkColumn := func(text string) error { return config.CheckWord(strings.ToLower(text), columnNames()) }
	c.Flags().Var(checkedText{&f.sort, checkColumn}, "sort", "sort by this column")
	complete(c, "sort", columnNames()...)
	c.Flags().Var(checkedText{&f.columns, func(text string) error { _, err := columnsOf(text); return err }}, "columns", "print these columns, joined by commas")
	complete(c, "columns", columnNames()...)
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
	values := f.filter.values()
	if f.interval != 0 {
		values.Set("interval", f.interval.String())
	}
	if f.limit > 0 && f.output == "json" { // text is limited once it is sorted
		values.Set("limit", strconv.FormatUint(uint64(f.limit), 10))
	}
	return f.show(c, showable{api.FlowsWith(values), func(ctx context.Context, client *api.Client, to io.Writer) error {
		flows, err := client.Flows(ctx, values)
		if err != nil {
			return err
		}
		return f.print(to, flows)
	}})
}

// print prints the flows in the wanted order and form.
func (f *flowsFlags) print(to io.Writer, flows []api.Flow) error {
	var by *flowColumn
	if f.sort != "" {
		columns, err := columnsOf(f.sort)
		if err != nil {
			return err
		}
		by = &columns[0]
	}
	columns := flowColumns
	if f.columns != "" {
		var err error
		if columns, err = columnsOf(f.columns); err != nil {
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
	return printFlows(to, columns, flows)
}
