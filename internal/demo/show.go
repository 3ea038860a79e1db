package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/cnpgate/cnpgate/cnpdec"
)

// show prints what happened and the verdicts, and tells whether all of them are good. offered is the hosts' greatest rate in Mbit/s,
// tolerance of the WAN port's rate in percent.
func show(w io.Writer, hosts []host, dir string, offered, tolerance float64) (bool, error) {
	r, err := readReport(filepath.Join(dir, "report.json"))
	if err != nil {
		return false, err
	}
	o, err := observe(hosts, dir)
	if err != nil {
		return false, err
	}
	rate := float64(r.wan.RateBps)
	fmt.Fprintf(w, "\nFLOWS, as captured before and behind the gateway (QPs: sender's -> receiver's; ECT: ECN-capable)\n")
	showFlows(w, o)
	fmt.Fprintf(w, "\nWAN QUEUE, as the gateway reports it: up to %g Mbit/s offered to a port of %g Mbit/s\n", offered, rate*1e-6)
	showQueue(w, r)
	picture(w, r.Timeline, r.wan)
	fmt.Fprintf(w, "\nFRAMES\n")
	showFrames(w, o, r)
	fmt.Fprintf(w, "\nNOTIFICATIONS, as captured on the hosts' side\n")
	showNotifications(w, o)
	fmt.Fprintf(w, "\nVERDICT\n")
	good := true
	for _, v := range judge(o, r, hosts, rate, tolerance) {
		word := "PASS"
		if !v.ok {
			word, good = "FAIL", false
		}
		fmt.Fprintf(w, "  %s  %s: %s\n", word, v.what, v.got)
	}
	return good, nil
}

func showFlows(w io.Writer, o *observed) {
	slices.SortFunc(o.flows, func(a, b *flow) int {
		return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.destQP, b.destQP))
	})
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "  host\tsender\treceiver\tQPs\ttype\tECT\tsent\tforwarded\tdropped\tCE\ttold\tby\t")
	for _, f := range o.flows {
		ect, by, told := "no", "nobody may tell it", 0
		if f.ect {
			ect = "yes"
		}
		if f.accepts != "" {
			by, told = f.accepts, f.told[f.accepts]
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\t%d -> %d\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\t\n", f.host, f.src, f.dst, f.sourceQP, f.destQP, f.transport, ect,
			f.sent, f.forwarded, f.sent-f.forwarded, f.ce, told, by)
	}
	_ = t.Flush()
}

func showQueue(w io.Writer, r *gatewayReport) {
	fmt.Fprintf(w, "  K_min %s   K_max %s   capacity %s   peak %s   at the end %s\n\n", kilo(r.wan.KMinBytes), kilo(r.wan.KMaxBytes),
		kilo(r.wan.CapacityBytes), kilo(r.wan.WatermarkBytes), kilo(r.wan.DepthBytes))
}

func showFrames(w io.Writer, o *observed, r *gatewayReport) {
	var reasons []string
	by, _ := r.wan.Counters["dropped_packets_total"].(map[string]any)
	for _, reason := range slices.Sorted(maps.Keys(by)) {
		if n := number(r.wan.Counters, "dropped_packets_total", reason); n > 0 {
			reasons = append(reasons, fmt.Sprintf("%s %d", reason, n))
		}
	}
	fmt.Fprintf(w, "  sent by the hosts %d   arrived on the WAN side %d   dropped %d (%s)   still queued %d\n", o.sent, len(o.forwarded), r.dropped(),
		strings.Join(reasons, ", "), number(r.Counters, "queued_packets", ""))
	ect := 0
	for _, f := range o.flows {
		if f.ect {
			ect += f.forwarded
		}
	}
	fmt.Fprintf(w, "  on the WAN side: %d from ECN-capable senders, %d of them with CE; %d Not-ECT\n", ect, o.ceMarked, len(o.forwarded)-ect)
}

// showNotifications counts them by kind and decodes the first of each kind.
func showNotifications(w io.Writer, o *observed) {
	first := map[string]*notification{}
	count := map[string]int{}
	for i := range o.notifications {
		n := &o.notifications[i]
		what := n.kind()
		switch {
		case n.reason != cnpdec.Accepted:
			what = "refused: " + n.reason.Explain()
		case n.flow == nil:
			what += " about no flow"
		}
		count[what]++
		if first[what] == nil {
			first[what] = n
		}
	}
	if len(first) == 0 {
		fmt.Fprintln(w, "  none")
	}
	for _, what := range slices.Sorted(maps.Keys(first)) {
		n := first[what]
		fmt.Fprintf(w, "  %s: %d. The first, at %.0f ms:\n", what, count[what], float64(n.at-o.first)*1e-6)
		if n.flow != nil {
			decode(w, n)
		}
	}
}
