package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/report"
)

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
	{name: "SOURCE_QP", text: func(f *api.Flow) string { return orDash(f.SourceQP) }},
	{name: "CANDIDATE_QP", text: func(f *api.Flow) string { return orDash(f.CandidateQP) }},
	{name: "DESTINATION", text: func(f *api.Flow) string { return f.DestinationIP.String() }},
	numbered("DESTINATION_QP", func(f *api.Flow) uint64 { return uint64(f.DestinationQP) }),
	{"RATE", func(f *api.Flow) string { return rateOf(f.RateBPS) }, func(f *api.Flow) uint64 {
		if f.RateBPS == nil {
			return 0
		}
		return *f.RateBPS
	}},
	{"AGE", func(f *api.Flow) string { return rounded(time.Duration(f.AgeNS)).String() }, func(f *api.Flow) uint64 { return uint64(f.AgeNS) }},
	numbered("PACKETS", func(f *api.Flow) uint64 { return f.Packets }),
	numbered("BYTES", func(f *api.Flow) uint64 { return f.Bytes }),
	{"QUEUED", func(f *api.Flow) string { return report.Size(f.QueuedBytes) }, func(f *api.Flow) uint64 { return f.QueuedBytes }},
	numbered("MARKED", func(f *api.Flow) uint64 { return f.ECNMarked }),
	{"NOTIFICATIONS", func(f *api.Flow) string { return listCounts(f.Notifications) }, notificationsOf},
	{name: "REACTS", text: reacts},
	{name: "QP_STATE", text: func(f *api.Flow) string { return f.QPState }},
	{name: "ENDED", text: func(f *api.Flow) string { return cmp.Or(f.Ended, "-") }},
	{name: "QP_EVIDENCE", text: func(f *api.Flow) string { return orDash(f.QPEvidence) }},
	{"QP_PACKETS", took, func(f *api.Flow) uint64 { return f.QPPackets }},
	numbered("QP_CONTRADICTIONS", func(f *api.Flow) uint64 { return uint64(f.QPConflicts) }),
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
			return nil, config.CheckWord(word, names)
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

func printFlows(to io.Writer, columns []flowColumn, flows []api.Flow) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	cells := make([]string, len(columns))
	for i := range columns {
		cells[i] = columns[i].name
	}
	fmt.Fprintln(w, strings.Join(cells, "\t"))
	for i := range flows {
		for k := range columns {
			cells[k] = columns[k].text(&flows[i])
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

// rateOf is a rate, "-" for none.
func rateOf(bps *uint64) string {
	if bps == nil {
		return "-"
	}
	return report.Rate(*bps)
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
