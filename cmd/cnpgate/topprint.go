package main

import (
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/cnpgate/cnpgate/control/report"
)

// topSorts and topKinds are the words of top's flags.
var (
	topSorts = []string{"rate", "queue", "notified", "name"}
	topKinds = []string{"port", "queue", "sender", "flow"}
)

// narrowAddress is the longest address that is printed whole on a narrow display.
const narrowAddress = 15

// print prints a view: a line about the gateway, its ports, and the rows of one kind, at most so many. On a narrow display long addresses are cut at the front.
func (v *topView) print(to io.Writer, kind string, most int, narrow bool) error {
	suppressed := strconv.FormatUint(v.Suppressed, 10) + "/s"
	if v.Top != "" {
		suppressed += " (" + v.Top + ")"
	}
	fmt.Fprintf(to, "%s  %s  notified %d/s  suppressed %s\n\n", v.Gateway, v.Time.Local().Format(time.TimeOnly), v.Notified, suppressed)
	header, rows := v.rows(kind, narrow)
	if kind != "port" {
		h, r := v.rows("port", narrow)
		if err := printRows(to, h, r); err != nil {
			return err
		}
		fmt.Fprintln(to)
	}
	if len(rows) <= most {
		return printRows(to, header, rows)
	}
	if err := printRows(to, header, rows[:most]); err != nil {
		return err
	}
	_, err := fmt.Fprintf(to, "and %d others\n", len(rows)-most)
	return err
}

// rows are the header and the cells of one kind.
func (v *topView) rows(kind string, narrow bool) (header string, rows [][]string) {
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	address := func(a netip.Addr) string {
		text := a.String()
		if narrow && len(text) > narrowAddress {
			text = "~" + text[len(text)-narrowAddress+1:]
		}
		return text
	}
	switch kind {
	case "port":
		header = "PORT\tROLE\tRX\tTX\tLOAD\tQUEUE\tNOTIFIED/S\tMARKED/S\tDROPPED/S\tPROBLEM"
		for _, p := range v.Ports {
			problem := p.Problem
			if problem == "" {
				problem = "-"
			}
			rows = append(rows, []string{p.Name, p.Role, report.Rate(p.RX), report.Rate(p.TX), percent(p.TX, p.Rate), report.Size(p.Queued), number(p.Notified), number(p.Marked),
				number(p.Dropped), problem})
		}
	case "queue":
		header = "PORT\tCLASS\tQUEUE\tFULL\tPEAK\tCAPACITY\tNOTIFIED\tSLOWED"
		for _, q := range v.Queues {
			rows = append(rows, []string{q.Port, q.Class, report.Size(q.Queued), percent(q.Queued, q.Capacity), report.Size(q.Peak), report.Size(q.Capacity), number(q.Notified),
				part(q.Slowed, q.Senders)})
		}
	case "sender":
		header = "SOURCE\tVLAN\tFLOWS\tRATE\tQUEUED\tNOTIFIED/S\tMARKED/S\tSLOWED"
		for _, s := range v.Senders {
			rows = append(rows, []string{address(s.Source), s.Place, strconv.Itoa(s.Flows), report.Rate(s.Rate), report.Size(s.Queued), number(s.Notified), number(s.Marked),
				part(s.Slowed, s.Reacting)})
		}
	default:
		header = "SOURCE\tDESTINATION\tQP\tVLAN\tRATE\tQUEUED\tNOTIFIED/S\tREACTION"
		for _, f := range v.Flows {
			reaction := "-"
			if f.Reaction != nil {
				reaction = fmt.Sprintf("%+d%%", *f.Reaction)
			}
			rows = append(rows, []string{address(f.Source), address(f.Destination), number(uint64(f.DestinationQP)), f.Place, report.Rate(f.Rate), report.Size(f.Queued), number(f.Notified), reaction})
		}
	}
	return header, rows
}

func percent(n, of uint64) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*float64(n)/float64(of))
}

// part is n of all, "-" of none.
func part(n, all int) string {
	if all == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", n, all)
}

func printRows(to io.Writer, header string, rows [][]string) error {
	w := tabwriter.NewWriter(to, 0, 0, 1, ' ', 0)
	fmt.Fprintln(w, header)
	for _, cells := range rows {
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}
