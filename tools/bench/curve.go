package main

import (
	"errors"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	curveWidth  = 20 * vg.Centimeter
	curveHeight = 10 * vg.Centimeter
)

// costs are the points of the cost curve: flows, and ns a packet of cnpgate and of testpmd csum.
func (r *result) costs() (ours, theirs plotter.XYs) {
	for _, n := range growth {
		if x := r.row("cost_" + n.name + besideCsum); x != nil && x.Error == "" {
			ours = append(ours, plotter.XY{X: float64(n.flows), Y: *x.Value})
			theirs = append(theirs, plotter.XY{X: float64(n.flows), Y: *x.PeerValue})
		}
	}
	return ours, theirs
}

// drawCosts draws the cost of a packet over the number of flows as an SVG picture.
func (r *result) drawCosts(w io.Writer) error {
	ours, theirs := r.costs()
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "flows", "CPU time of a packet, ns"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, flowTicks()
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	if err := errors.Join(addCosts(p, ours, plotutil.Color(0), "cnpgate"), addCosts(p, theirs, plotutil.Color(1), "testpmd csum")); err != nil {
		return err
	}
	p.X.Max *= 1.6 // space for the last label
	p.Y.Min, p.Y.Max = 0, 1.1*p.Y.Max
	canvas := vgsvg.New(curveWidth, curveHeight)
	p.Draw(draw.New(canvas))
	_, err := canvas.WriteTo(w)
	return err
}

// flowTicks marks the measured numbers of flows.
func flowTicks() plot.ConstantTicks {
	labels := []string{"1 Ki", "16 Ki", "128 Ki", "1 Mi", "10 Mi"}
	var ticks plot.ConstantTicks
	for i, n := range growth {
		ticks = append(ticks, plot.Tick{Value: float64(n.flows), Label: labels[i]})
	}
	return ticks
}

func addCosts(p *plot.Plot, costs plotter.XYs, c color.Color, name string) error {
	line, points, err := plotter.NewLinePoints(costs)
	if err != nil {
		return err
	}
	line.Color, points.Color = c, c
	p.Add(line, points)
	p.Legend.Add(name, line, points)
	return nil
}
