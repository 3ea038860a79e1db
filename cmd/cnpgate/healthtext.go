package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/units"
)

// printRDMA prints the health of RDMA connections for a person: what there is, what is wrong and what to change, then the connections.
func printRDMA(to io.Writer, r *health.Report) error {
	if err := printRDMASummary(to, &r.Summary); err != nil {
		return err
	}
	if err := printVerdicts(to, r); err != nil {
		return err
	}
	printNotes(to, r.Notes)
	printFrames(to, r.Frames)
	if len(r.Connections) == 0 {
		return nil
	}
	fmt.Fprintln(to)
	return printConnections(to, r.Connections)
}

func printRDMASummary(to io.Writer, s *health.Summary) error {
	if s.Connections == 0 {
		_, err := fmt.Fprintln(to, "No RDMA connection was seen.")
		return err
	}
	line := fmt.Sprintf("%s between %s in %s: %s, %s of payload", plural(s.Connections, "RDMA connection"), plural(s.Hosts, "host"),
		health.Duration(s.DurationNS), plural(int(s.Packets), "packet"), units.Size(s.GoodputBytes))
	if s.NotPaired > 0 {
		line += fmt.Sprintf("; of %d only one direction is known", s.NotPaired)
	}
	if err := printHung(to, "", line); err != nil {
		return err
	}
	var rows [][2]string
	row := func(name, text string) { rows = append(rows, [2]string{name, text}) }
	row("sent again", fmt.Sprintf("%s, %s%s", cmp.Or(s.Again, plural(int(s.Retransmitted.Packets), "packet")), units.Size(s.Retransmitted.Bytes), causesText(s.Causes)))
	row("lost", fmt.Sprintf("before here %d, behind here %d, ACKs behind here %d", s.LostUpstream, s.LostDownstream, s.AcksLost))
	if s.DroppedHere > 0 {
		row("dropped by this gateway", fmt.Sprint(s.DroppedHere))
	}
	row("NAK, RNR NAK", fmt.Sprintf("%d, %d", s.NAKs, s.RNRNAKs))
	row("late, twice", fmt.Sprintf("%d, %d", s.OutOfOrder, s.Duplicates))
	row("CE, CNP", fmt.Sprintf("%d, %d", s.CE, s.CNPs))
	if s.RTT != nil {
		row("request to ACK", fmt.Sprintf("half within %s, 99 %% within %s", health.Duration(int64(s.RTT.P50NS)), health.Duration(int64(s.RTT.P99NS))))
	}
	width := 0
	for _, r := range rows {
		width = max(width, len(r[0]))
	}
	for _, r := range rows {
		if err := printHung(to, fmt.Sprintf("  %-*s  ", width, r[0]), r[1]); err != nil {
			return err
		}
	}
	return nil
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// causesText is such as ": 5 time-out, 2 rnr-nak".
func causesText(causes map[string]health.Amount) string {
	if len(causes) == 0 {
		return ""
	}
	names := slices.SortedFunc(maps.Keys(causes), func(a, b string) int {
		return cmp.Or(cmp.Compare(causes[b].Packets, causes[a].Packets), cmp.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%d %s", causes[name].Packets, name)
	}
	return ": " + strings.Join(names, ", ")
}

// printNotes prints what should be known, and isn't wrong.
func printNotes(to io.Writer, all []health.Note) {
	if len(all) > 0 {
		fmt.Fprintln(to, "\nNOTES")
	}
	for _, n := range all {
		fmt.Fprint(to, broken("  ", "    ", n.Subject+": "+n.Text, widthOf(to)))
	}
}

// printFrames prints which frames of a capture were not examined, and what to do.
func printFrames(to io.Writer, f *health.Frames) {
	if f == nil || len(f.Unread) == 0 {
		return
	}
	fmt.Fprintf(to, "\nNOT EXAMINED (of %s)\n", plural(int(f.Total), "frame"))
	advised := map[string]bool{}
	for _, u := range f.Unread {
		text := fmt.Sprintf("%s, %s, first frame %d", u.Reason, plural(int(u.Frames), "frame"), u.First)
		if u.Detail != "" {
			text += ": " + u.Detail
		}
		if u.Advice != "" && !advised[u.Advice] {
			text += "; " + u.Advice
			advised[u.Advice] = true
		}
		fmt.Fprint(to, broken("  ", "    ", text, widthOf(to)))
	}
}

func printVerdicts(to io.Writer, r *health.Report) error {
	all := r.Verdicts
	if len(all) == 0 {
		fmt.Fprint(to, "\n", broken("", "", r.Conclusion, widthOf(to)))
		return nil
	}
	fmt.Fprintf(to, "\nWHAT IS WRONG\n")
	for i, v := range all {
		more := ""
		if v.Connections > 1 {
			more = fmt.Sprintf(" (%d connections; the worst one:)", v.Connections)
		}
		title := broken(fmt.Sprintf("%d. ", i+1), "   ", fmt.Sprintf("%s (%s): %s%s", v.Title, v.Name, v.Subject, more), widthOf(to))
		evidence := broken("     ", "     ", v.Evidence+pairsText(&v), widthOf(to))
		if _, err := fmt.Fprint(to, title, evidence, broken("  -> ", "     ", v.Advice, widthOf(to)), typedText(v.Commands, widthOf(to))); err != nil {
			return err
		}
	}
	return nil
}

// typedText has a verdict's commands, as a shell takes them, each below its comment.
func typedText(commands []string, columns int) string {
	const indent = "       "
	var text strings.Builder
	for _, c := range commands {
		command, comment, _ := strings.Cut(c, "# ")
		text.WriteString(broken(indent+"# ", indent+"# ", comment, columns-4))
		if command = strings.TrimSpace(command); command != "" {
			text.WriteString(indent + strings.Join(wrapped(command, columns-4), " \\\n"+indent+"  ") + "\n")
		}
	}
	return text.String()
}

// pairsText lists the pairs of hosts that a verdict is about, if they are several.
func pairsText(v *health.Verdict) string {
	const most = 16
	if len(v.Pairs) == 0 {
		return ""
	}
	var parts []string
	for _, p := range v.Pairs[:min(len(v.Pairs), most)] {
		parts = append(parts, fmt.Sprintf("%s (%d)", p.Subject, p.Weight))
	}
	if more := len(v.Pairs) + v.Others - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return ". All, by weight: " + strings.Join(parts, "; ")
}

// connectionsHeader is the head of the table of connections: a line for the requests of each end.
const connectionsHeader = "REQUESTER\tQP\tRESPONDER\tQP\tTYPE\tOPERATIONS\tGOODPUT\tPACKETS\tAGAIN\tLOST <|>\tNAK\tRNR\tRTT\tWINDOW\tENDED\tCAUSES\tVERDICTS"

// causesColumn is the first of the columns that are lists.
const causesColumn = 14

const shownConnections = 50

func printConnections(to io.Writer, all []health.Record) error {
	t := newTable(to, connectionsHeader, "TYPE", "ENDED", "WINDOW", "RNR", "NAK", "PACKETS", "RTT", "OPERATIONS")
	t.below = causesColumn
	lines, left := 0, 0
	for i := range all {
		c := &all[i]
		if lines >= shownConnections {
			left++
			continue
		}
		for j := range c.Requests {
			connectionRow(t, c, &c.Requests[j])
			lines++
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if left > 0 {
		_, err := fmt.Fprintf(to, "and %s more; -o json lists all\n", plural(left, "connection"))
		return err
	}
	return nil
}

func connectionRow(t *table, c *health.Record, s *health.Side) {
	from, peer := &c.Ends[s.Requester&1], &c.Ends[s.Requester&1^1]
	rtt := "-"
	for _, r := range []*health.RTT{s.ReadRTT, s.RTT} {
		if r != nil {
			rtt = health.Duration(int64(r.P50NS))
		}
	}
	host := from.IP.String()
	if c.Network != "" {
		host += " (" + c.Network + ")"
	}
	t.row(host, qpText(from.QP), peer.IP, qpText(peer.QP), c.Transport, operationsText(s), goodputText(c, s), s.Packets.Packets+s.Responses.Packets,
		s.Retransmitted.Packets, lostText(s), sum(s.NAKs), s.RNRNAKs, rtt, s.WindowPackets,
		c.Ended, cmp.Or(strings.TrimPrefix(causesText(s.Causes), ": "), "-"), cmp.Or(strings.Join(c.Verdicts, ", "), "-"))
}

func lostText(s *health.Side) string { return fmt.Sprintf("%d|%d", s.LostUpstream, s.LostDownstream) }

func qpText(qp uint32) string {
	if qp == 0 {
		return "?"
	}
	return fmt.Sprint(qp)
}

// operationsText is such as "100 write of 64 kB".
func operationsText(s *health.Side) string {
	if len(s.Messages) == 0 {
		return "-"
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(s.Messages)) {
		parts = append(parts, fmt.Sprintf("%d %s", s.Messages[name], name))
	}
	return strings.Join(parts, ", ")
}

func goodputText(c *health.Record, s *health.Side) string {
	if c.DurationNS == 0 {
		return units.Size(s.GoodputBytes + s.ReadBytes)
	}
	return units.Rate(float64(s.GoodputBytes+s.ReadBytes) * 8 * float64(time.Second) / float64(c.DurationNS))
}
