package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// showTable prints a line for each interval: sent and arrived rates, the queue, lost frames out of those sent in the interval, and
// notifications.
func showTable(w io.Writer, runs []*run, l load) {
	fmt.Fprintln(w, "  sent, arrived: Mbit/s on the line; queue: the longest of samples every 50 ms, KB; lost: packets of those sent; notified: notifications")
	names, units := fmt.Sprintf("  %15s", ""), fmt.Sprintf("  %6s  %-7s", "ms", "phase")
	for _, r := range runs {
		title := r.name
		if title == off {
			title = "notifications off"
		}
		names += fmt.Sprintf(" | %-37s", title)
		units += fmt.Sprintf(" | %5s %7s %6s %7s %8s", "sent", "arrived", "queue", "lost", "notified")
	}
	fmt.Fprintf(w, "%s\n%s\n", strings.TrimRight(names, " "), units)
	for i := range intervals {
		from := time.Duration(i) * l.interval()
		to := from + l.interval()
		line := fmt.Sprintf("  %6d  %-7s", from.Milliseconds(), l.phaseAt(from))
		for _, r := range runs {
			sent, arrived := r.data.rates(from, to)
			line += fmt.Sprintf(" | %5.0f %7.0f %6d %7d %8d", sent*1e-6, arrived*1e-6, r.peak(from, to)/1000, r.data.lost(from, to), r.notified(from, to))
		}
		fmt.Fprintln(w, line)
	}
}
