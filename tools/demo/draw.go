package main

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"os"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	plotdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	plotWidth  = 24 * vg.Centimeter
	plotHeight = 8 * vg.Centimeter     // of each of the two
	step       = 50 * time.Millisecond // between the points of a rate
)

// draw draws the runs into an SVG file.
func draw(name string, runs []*run, l load) error {
	canvas := vgsvg.New(plotWidth, 2*plotHeight)
	if err := drawOn(plotdraw.New(canvas), runs, l); err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = canvas.WriteTo(f)
	return errors.Join(err, f.Close())
}

// drawOn draws the WAN queue, and below it the sender's rate, with a line for each run.
func drawOn(c plotdraw.Canvas, runs []*run, l load) error {
	queue, rate := newPlot("WAN queue, KB", l), newPlot("sent, Mbps", l)
	rate.X.Label.Text = "time, s"
	for i, r := range runs {
		var queued, sent plotter.XYs
		for _, d := range r.depths() {
			if d.at >= 0 && d.at < l.interval()*intervals {
				queued = append(queued, plotter.XY{X: d.at.Seconds(), Y: float64(d.bytes) / 1000})
			}
		}
		for at := time.Duration(0); at < l.interval()*intervals; at += step {
			bps, _ := r.data.rates(at, at+step)
			sent = append(sent, plotter.XY{X: at.Seconds(), Y: bps / 1e6})
		}
		if err := errors.Join(addLine(queue, queued, plotutil.Color(i), r.name), addLine(rate, sent, plotutil.Color(i), r.name)); err != nil {
			return err
		}
	}
	queue.Draw(plotdraw.Crop(c, 0, 0, plotHeight, 0))
	rate.Draw(plotdraw.Crop(c, 0, 0, 0, -plotHeight))
	return nil
}

func newPlot(y string, l load) *plot.Plot {
	p := plot.New()
	p.Y.Label.Text, p.Legend.Top = y, true
	p.X.Min, p.X.Max, p.Y.Min = 0, (l.interval() * intervals).Seconds(), 0
	p.Add(plotter.NewGrid())
	return p
}

func addLine(p *plot.Plot, xys plotter.XYs, c color.Color, name string) error {
	line, err := plotter.NewLine(xys)
	if err != nil {
		return err
	}
	line.Color = c
	p.Add(line)
	p.Legend.Add(name, line)
	return nil
}

// showTable prints a line for each interval: sent and arrived rates, the queue, lost frames out of those sent in the interval, and
// notifications.
func showTable(w io.Writer, runs []*run, l load) {
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
