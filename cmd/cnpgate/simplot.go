package main

import (
	"errors"
	"image/color"
	"io"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/cnpgate/cnpgate/sim/scenario"
)

const (
	plotWidth  = 24 * vg.Centimeter
	plotHeight = 8 * vg.Centimeter // of each of the two
	plotted    = 1500              // points of a line: more can't be distinguished
)

// writeSVG draws the results of a run.
func writeSVG(w io.Writer, o *scenario.Outcome) error {
	canvas := vgsvg.New(plotWidth, 2*plotHeight)
	if err := drawOutcome(draw.New(canvas), o); err != nil {
		return err
	}
	_, err := canvas.WriteTo(w)
	return err
}

// drawOutcome draws the queues with the thresholds and a mark for each notification, and below them the senders' rates.
func drawOutcome(c draw.Canvas, o *scenario.Outcome) error {
	queues, rates := newPlot(o.Scenario+": "+o.Response, "queue, MB"), newPlot("", "rate of each sender, Gbps")
	rates.X.Label.Text = "time, ms"
	last := float64(len(o.Series.Gateway)) * float64(o.Series.Every) / 1e6
	queues.X.Max, rates.X.Max = last, last
	if err := drawQueues(queues, o, last); err != nil {
		return err
	}
	for i, series := range o.Series.Rates {
		if err := drawLine(rates, points(series, o.Series.Every, 1e9), plotutil.Color(i), ""); err != nil {
			return err
		}
	}
	queues.Draw(draw.Crop(c, 0, 0, plotHeight, 0))
	rates.Draw(draw.Crop(c, 0, 0, 0, -plotHeight))
	return nil
}

func newPlot(title, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.Y.Label.Text = title, y
	p.X.Min, p.Y.Min = 0, 0
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	return p
}

// drawQueues draws the queues, the thresholds of the first gateway or, without one, of the slowest switch ports, and the notifications below.
func drawQueues(p *plot.Plot, o *scenario.Outcome, last float64) error {
	for i, q := range []struct {
		name   string
		values []int64
	}{{"gateway", o.Series.Gateway}, {"switches", o.Series.Switch}} {
		if err := drawLine(p, points(q.values, o.Series.Every, 1e6), plotutil.Color(i), q.name); err != nil {
			return err
		}
	}
	for _, k := range []struct {
		name  string
		bytes int64
	}{{"K_min", o.KMin}, {"K_max", o.KMax}} {
		level := float64(k.bytes) / 1e6
		line, err := plotter.NewLine(plotter.XYs{{X: 0, Y: level}, {X: last, Y: level}})
		if err != nil {
			return err
		}
		line.Dashes, line.Color = plotutil.Dashes(1), color.Gray{grey}
		p.Add(line)
		p.Legend.Add(k.name, line)
	}
	return errors.Join(drawMarks(p, o.Series.Notified.First, plotutil.Color(notifiedColor), "notification of the gateway"),
		drawMarks(p, o.Series.CNPs.First, color.Gray{grey}, "CNP of a receiver"))
}

const (
	grey          = 120
	notifiedColor = 3
)

// drawMarks draws a mark on the axis for each notification, and one mark for those too close together to distinguish.
func drawMarks(p *plot.Plot, times []int64, c color.Color, name string) error {
	var at plotter.XYs
	gap := p.X.Max / plotted
	for _, t := range times {
		if x := float64(t) / 1e6; len(at) == 0 || x-at[len(at)-1].X >= gap {
			at = append(at, plotter.XY{X: x})
		}
	}
	if len(at) == 0 {
		return nil
	}
	marks, err := plotter.NewScatter(at)
	if err != nil {
		return err
	}
	marks.Shape, marks.Color = draw.TriangleGlyph{}, c
	p.Add(marks)
	p.Legend.Add(name, marks)
	return nil
}

func drawLine(p *plot.Plot, xys plotter.XYs, c color.Color, name string) error {
	line, err := plotter.NewLine(xys)
	if err != nil {
		return err
	}
	line.Color = c
	p.Add(line)
	if name != "" {
		p.Legend.Add(name, line)
	}
	return nil
}

// points makes a line of samples. Of samples too close together to distinguish, it takes the highest.
func points(values []int64, every int64, unit float64) plotter.XYs {
	step := (len(values) + plotted - 1) / plotted
	xys := plotter.XYs{{}}
	for i := 0; i < len(values); i += step {
		end := min(i+step, len(values))
		xys = append(xys, plotter.XY{X: float64(int64(end)*every) / 1e6, Y: float64(slices.Max(values[i:end])) / unit})
	}
	return xys
}
