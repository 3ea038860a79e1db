package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/internal/units"
	"github.com/cnpgate/cnpgate/internal/yamldoc"
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
  SOURCE, SOURCE_QP      the sender and its QP; a candidate, which no notification names, has a question mark
  DESTINATION, DESTINATION_QP
  RATE                   of the flow's frames without FCS, during --interval; "-" for a flow that began within it
  AGE                    time since the flow's last packet; at flows.aging the flow is removed
  PACKETS, BYTES         since the flow began
  QUEUED                 bytes of the flow in a queue now, as far as its worker tracks them
  MARKED                 packets that the gateway marked CE
  REACTS                 "no" of a sender that doesn't react to notifications
  QP_STATE               of the source QP: unknown, candidate or confirmed
  ENDED                  why the flow has ended: its connection was released (dreq), or its QP was reused (reuse)
  QP_EVIDENCE            how the source QP was found
  QP_PACKETS             packets of the flow until its source QP was confirmed
  QP_CONTRADICTIONS      how often packets contradicted the source QP
  NOTIFICATIONS          sent about the flow, by kind; of a port in observe mode those that would have been

Flows are sorted by their addresses, or by --sort, numbers from the largest on: --sort rate --limit 10 prints the ten fastest. -o json prints the API's answer
unchanged and unsorted.`,
	}
	f.command(c, showable{})
	f.filter.addFlow(c)
	wordFlag(c, f.filter.value("qp_state"), "qp-state", "", "only flows whose source QP has this state", api.QPStates...)
	wordFlag(c, f.filter.value("qp_evidence"), "qp-evidence", "", "only flows whose source QP was found so", api.QPEvidences...)
	intervalFlag(c, &f.interval)
	checkColumn := func(text string) error { return yamldoc.CheckWord(strings.ToLower(text), columnNames()) }
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
	f.wide = f.wide || f.columns != "" // those that were asked for
	values := f.filter.values()
	if f.interval != 0 {
		values.Set("interval", f.interval.String())
	}
	if f.limit > 0 && f.output == "json" { // text is limited once it is sorted
		values.Set("limit", strconv.FormatUint(uint64(f.limit), 10))
	}
	return f.show(c, printed(api.Path(api.FlowsPath, values), func(to io.Writer, all *api.FlowsBody) error { return f.print(to, all.Flows) }))
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

// flowColumn is a column of show flows. It is sorted by its number, the largest first, if it has one, else by its text.
type flowColumn struct {
	name   string
	text   func(*api.Flow) string
	number func(*api.Flow) uint64
}

var flowColumns = []flowColumn{
	{name: "PORT", text: func(f *api.Flow) string { return f.Port }},
	{name: "VLAN", text: func(f *api.Flow) string { return vlans(f.Tunnel, f.TunnelID, f.VLAN) }},
	{name: "SOURCE", text: func(f *api.Flow) string { return f.SourceIP.String() }},
	{name: "SOURCE_QP", text: sourceQP},
	{name: "DESTINATION", text: func(f *api.Flow) string { return f.DestinationIP.String() }},
	numbered("DESTINATION_QP", func(f *api.Flow) uint64 { return uint64(f.DestinationQP) }),
	{"RATE", func(f *api.Flow) string { return rateOf(f.RateBPS) }, func(f *api.Flow) uint64 {
		if f.RateBPS == nil {
			return 0
		}
		return *f.RateBPS
	}},
	{"AGE", func(f *api.Flow) string { return report.Ago(f.AgeNS).String() }, func(f *api.Flow) uint64 { return uint64(f.AgeNS) }},
	numbered("PACKETS", func(f *api.Flow) uint64 { return f.Packets }),
	{"BYTES", func(f *api.Flow) string { return units.Size(f.Bytes) }, func(f *api.Flow) uint64 { return f.Bytes }},
	{"QUEUED", func(f *api.Flow) string { return units.Size(f.QueuedBytes) }, func(f *api.Flow) uint64 { return f.QueuedBytes }},
	numbered("MARKED", func(f *api.Flow) uint64 { return f.ECNMarked }),
	{name: "REACTS", text: reacts},
	{name: "QP_STATE", text: func(f *api.Flow) string { return f.QPState }},
	{name: "ENDED", text: func(f *api.Flow) string { return cmp.Or(f.Ended, "-") }},
	{name: "QP_EVIDENCE", text: func(f *api.Flow) string { return orDash(f.QPEvidence) }},
	{"QP_PACKETS", took, func(f *api.Flow) uint64 { return f.QPPackets }},
	numbered("QP_CONTRADICTIONS", func(f *api.Flow) uint64 { return uint64(f.QPConflicts) }),
	{"NOTIFICATIONS", func(f *api.Flow) string { return listCounts(f.Notifications) }, notificationsOf},
}

// sourceQP is the sender's QP, a candidate with a question mark.
func sourceQP(f *api.Flow) string {
	if f.CandidateQP != nil {
		return fmt.Sprint(*f.CandidateQP, "?")
	}
	return orDash(f.SourceQP)
}

// reacts is "no" of a flow whose sender doesn't react to notifications.
func reacts(f *api.Flow) string {
	if f.Unresponsive {
		return "no"
	}
	return "-"
}

// numbered is a column of a plain number.
func numbered(name string, number func(*api.Flow) uint64) flowColumn {
	return flowColumn{name, func(f *api.Flow) string { return strconv.FormatUint(number(f), 10) }, number}
}

// notificationsOf counts the notifications about a flow.
func notificationsOf(f *api.Flow) (n uint64) {
	for _, of := range f.Notifications {
		n += of
	}
	return n
}

// columnNames are the words for columns on the command line.
func columnNames() (all []string) {
	for i := range flowColumns {
		all = append(all, strings.ToLower(flowColumns[i].name))
	}
	return all
}

// columnsOf reads a list of columns.
func columnsOf(list string) (columns []flowColumn, err error) {
	names := columnNames()
	for _, word := range strings.Split(list, ",") {
		i := slices.Index(names, strings.ToLower(word))
		if i < 0 {
			return nil, yamldoc.CheckWord(word, names)
		}
		columns = append(columns, flowColumns[i])
	}
	return columns, nil
}

// sortFlows sorts flows by a column, and those that are equal by their addresses.
func sortFlows(flows []api.Flow, by *flowColumn) {
	slices.SortStableFunc(flows, func(a, b api.Flow) int {
		switch {
		case by == nil:
		case by.number != nil:
			if c := cmp.Compare(by.number(&b), by.number(&a)); c != 0 {
				return c
			}
		default:
			if c := cmp.Compare(by.text(&a), by.text(&b)); c != 0 {
				return c
			}
		}
		return report.CompareFlows(a.Flow, b.Flow)
	})
}

// leastOfFlows are the columns that are left out first on a narrow output.
var leastOfFlows = []string{"QP_CONTRADICTIONS", "QP_PACKETS", "QP_EVIDENCE", "AGE", "BYTES", "PORT", "PACKETS", "QP_STATE", "MARKED", "QUEUED", "VLAN"}

func printFlows(to io.Writer, columns []flowColumn, flows []api.Flow) error {
	cells := make([]string, len(columns))
	for i := range columns {
		cells[i] = columns[i].name
		if (cells[i] == "SOURCE_QP" || cells[i] == "DESTINATION_QP") && len(columns) == len(flowColumns) {
			cells[i] = "QP" // that of the host before it
		}
	}
	w := newTable(to, strings.Join(cells, "\t"), leastOfFlows...)
	if len(columns) == len(flowColumns) {
		w.below = len(columns) - 1
	}
	for i := range flows {
		for k := range columns {
			cells[k] = columns[k].text(&flows[i])
		}
		w.line(cells)
	}
	return w.Flush()
}

// rateOf is a rate, "-" for none.
func rateOf(bps *uint64) string {
	if bps == nil {
		return "-"
	}
	return units.Rate(*bps)
}

func orDash[T any](v *T) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(*v)
}

// vlans is a flow's tunnel, if it is in one, and its VLANs.
func vlans(tunnel string, tunnelID uint32, ids []uint16) string {
	var texts []string
	if tunnel != "" {
		texts = append(texts, fmt.Sprintf("%s:%d", tunnel, tunnelID))
	}
	for _, id := range ids {
		texts = append(texts, strconv.Itoa(int(id)))
	}
	return cmp.Or(strings.Join(texts, "."), "-")
}

func took(f *api.Flow) string {
	if f.SourceQP == nil {
		return "-"
	}
	return strconv.FormatUint(f.QPPackets, 10)
}

// listCounts lists counts by name.
func listCounts[N int | uint64](counts map[string]N) string {
	if len(counts) == 0 {
		return "-"
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("%s:%d", name, counts[name]))
	}
	return strings.Join(all, ",")
}
