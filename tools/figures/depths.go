package main

import (
	"fmt"
	"strings"

	"github.com/cnpgate/cnpgate/sim/scenario"
)

// The plot of docs/incast.svg, in pixels: where its axes are, and how far they reach.
const (
	left, right, top, bottom = 60, 920, 40, 260
	lastMS, mostMB           = 150, 70
	points                   = 300 // of a line: more can't be distinguished
)

func x(ms float64) float64 { return left + ms/lastMS*(right-left) }
func y(mb float64) float64 { return bottom - mb/mostMB*(bottom-top) }

// drawDepths draws the WAN queue over time, without and with cnpgate.
func drawDepths(ecn, cnp *scenario.Outcome) string {
	var b strings.Builder
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 300" width="960" height="300" font-family="sans-serif" font-size="13">
<title>Depth of the WAN queue over time: with ECN alone it is full most of the time, with standard CNPs from cnpgate it is short</title>
<rect width="960" height="300" fill="#fff"/>
<text x="60" y="24">WAN queue, MB. Eight senders of 100 Gbps, one WAN link of 100 Gbps and 10 ms (cnpgate sim incast-10ms)</text>
`)
	for mb := 0; mb < mostMB; mb += 20 {
		fmt.Fprintf(&b, `<path d="M%d %.0fH%d" stroke="#ddd"/><text x="52" y="%.0f" text-anchor="end">%d</text>`+"\n", left, y(float64(mb)), right, y(float64(mb))+4, mb)
	}
	for ms := 0; ms <= lastMS; ms += 25 {
		unit := ""
		if ms == lastMS {
			unit = " ms"
		}
		fmt.Fprintf(&b, `<text x="%.0f" y="280" text-anchor="middle">%d%s</text>`+"\n", x(float64(ms)), ms, unit)
	}
	for _, line := range []struct {
		of             *scenario.Outcome
		colour, title  string
		titleX, titleY float64 // where no line is: beside the first peak, and above the short queue
	}{{ecn, "#b23b2e", "ECN and the receiver's CNP", x(13), y(48)}, {cnp, "#1f6f3f", "cnpgate: standard CNP", x(14), y(8)}} {
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="`, line.colour)
		for i, depth := range longest(line.of) {
			if i > 0 {
				b.WriteByte(' ')
			}
			fmt.Fprintf(&b, "%.0f,%.0f", x(float64(i)*lastMS/points), y(float64(depth)/1e6))
		}
		fmt.Fprintf(&b, `"/>`+"\n"+`<text x="%.0f" y="%.0f" fill="%s">%s</text>`+"\n", line.titleX, line.titleY, line.colour, line.title)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// longest is the queue's greatest depth in each of the plot's intervals, in bytes, until the simulation ends.
func longest(o *scenario.Outcome) (all []int64) {
	for i := range points {
		from, to := int64(i)*lastMS*1e6/points/o.Series.Every, int64(i+1)*lastMS*1e6/points/o.Series.Every
		if to > int64(len(o.Series.Gateway)) {
			break
		}
		depth := int64(0)
		for _, d := range o.Series.Gateway[from:max(to, from+1)] {
			depth = max(depth, d)
		}
		all = append(all, depth)
	}
	return all
}
