package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/cnpgate/cnpgate/control/report"
)

const (
	pictureWidth = 72
	pictureRows  = 8 // each an eighth of the capacity
)

// picture draws the WAN queue's depth over time, its capacity at the top, and names the rows whose tops are
// the thresholds.
func picture(w io.Writer, timeline []report.Depth, port *report.Port) {
	columns := depths(timeline, port.Name)
	if len(columns) == 0 {
		return
	}
	row := float64(port.CapacityBytes) / pictureRows
	blocks := []rune(" ▁▂▃▄▅▆▇█")
	const empty = '·' // of a row with a threshold at its top
	for i := pictureRows - 1; i >= 0; i-- {
		var line strings.Builder
		low := float64(i) * row
		label := threshold(port, low, low+row)
		for _, d := range columns {
			part := (float64(d) - low) / row
			block := blocks[int(8*min(max(part, 0), 1))]
			if label != "" && block == blocks[0] {
				block = empty
			}
			line.WriteRune(block)
		}
		fmt.Fprintf(w, "  %20s |%s\n", label, line.String())
	}
	fmt.Fprintf(w, "  %20s +%s\n", "0", strings.Repeat("-", len(columns)))
	fmt.Fprintf(w, "  %20s  0 s%*.1f s\n", "", max(len(columns)-5, 1), float64(timeline[len(timeline)-1].MS)/1000)
}

// threshold names the threshold whose top is in (low, high].
func threshold(p *report.Port, low, high float64) string {
	for _, t := range []struct {
		name string
		at   uint64
	}{{"capacity", p.CapacityBytes}, {"K_max", p.KMaxBytes}, {"K_min", p.KMinBytes}} {
		if at := float64(t.at); at > low && at <= high {
			return fmt.Sprintf("%s %s", t.name, kilo(t.at))
		}
	}
	return ""
}

// depths is the greatest depth of a port in each of at most pictureWidth stretches of time of one length.
func depths(timeline []report.Depth, port string) []uint64 {
	var own []uint64
	for _, d := range timeline {
		if d.Port == port {
			own = append(own, d.DepthBytes)
		}
	}
	n := min(len(own), pictureWidth)
	columns := make([]uint64, n)
	for i, d := range own {
		c := &columns[i*n/len(own)]
		*c = max(*c, d)
	}
	return columns
}
