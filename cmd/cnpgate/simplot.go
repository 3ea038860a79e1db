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

	"github.com/cnpgate/cnpgate/sim/scenario"
)

const (
	plotWidth           = 24 * vg.Centimeter
	plotHeight          = 21 * vg.Centimeter // of all three
	margin, legendWidth = vg.Centimeter / 2, 6 * vg.Centimeter
	plotted             = 600 // points of a line: more can't be distinguished
	megabyte            = 1e6
	gigabit             = 1e9
)

// writeSVG draws the results of a run, with some of its senders.
func writeSVG(w io.Writer, o *scenario.Outcome, wanted []int) error {
	canvas := vgsvg.New(plotWidth, plotHeight)
	if err := drawOutcome(draw.New(canvas), o, wanted); err != nil {
		return err
	}
	_, err := canvas.WriteTo(w)
	return err
}

// drawOutcome draws, one below the other, the queues and what is wanted of them, the fair rates with senders' rates, and the notifications.
func drawOutcome(c draw.Canvas, o *scenario.Outcome, wanted []int) error {
	p := picture{o: o, last: float64(len(o.Series.Gateway)) * float64(o.Series.Every) / 1e6}
	queues := p.plot(o.Scenario+": "+o.Response, "queue, MB")
	rates := p.plot("", "rate, Gbps")
	notified := p.plot("", "notifications per ms")
	notified.X.Label.Text = "time, ms"
	p.queues(queues)
	p.rates(rates, notified, showSenders(o.Series, wanted))
	rows := [][]*plot.Plot{{queues}, {rates}, {notified}}
	tiles := draw.Tiles{Rows: len(rows), Cols: 1, PadX: margin, PadY: margin, PadTop: margin, PadBottom: margin, PadLeft: margin, PadRight: legendWidth}
	for i, canvases := range plot.Align(rows, tiles, c) {
		drawBeside(rows[i][0], canvases[0])
	}
	return errors.Join(p.errs...)
}

// drawBeside draws a plot, and its legend at the right of it, where it hides no line.
func drawBeside(p *plot.Plot, c draw.Canvas) {
	legend := p.Legend
	p.Legend = plot.NewLegend()
	p.Draw(c)
	legend.Left, legend.Top, legend.Padding = true, true, vg.Points(3)
	beside := c
	beside.Min.X, beside.Max.X = c.Max.X+margin, c.Max.X+legendWidth
	legend.Draw(beside)
}

// picture draws lines of an outcome.
type picture struct {
	o    *scenario.Outcome
	last float64 // ms
	errs []error
}

func (p *picture) plot(title, y string) *plot.Plot {
	to := plot.New()
	to.Title.Text, to.Y.Label.Text = title, y
	to.X.Min, to.Y.Min, to.X.Max = 0, 0, p.last
	to.Legend.Top = true
	to.Add(plotter.NewGrid())
	return to
}

// queues draws the queues of gateways and switches, with the reference of the control law or the thresholds of the first gateway or, without one, of the
// slowest switch ports.
func (p *picture) queues(to *plot.Plot) {
	s, law := p.o.Series, false
	for i, q := range s.Ports {
		p.line(to, p.points(q.Depth, highest, megabyte), plotutil.Color(i), q.Gateway)
		if q.Reference > 0 {
			law = true
			p.level(to, q.Reference, plotutil.Color(i), "q_ref of "+q.Gateway)
		}
	}
	p.line(to, p.points(s.Switch, highest, megabyte), plotutil.Color(len(s.Ports)), "switches")
	if !law {
		p.level(to, p.o.KMin, color.Gray{grey}, "K_min")
		p.level(to, p.o.KMax, color.Gray{grey}, "K_max")
	}
}

// rates draws the gateways' fair rates, the rates of some senders, and the notifications to all and to these.
func (p *picture) rates(to, notified *plot.Plot, senders []shownSender) {
	s := p.o.Series
	perMillisecond := func(values []int64) float64 { return mean(values) * 1e6 / float64(s.Every) }
	events := func(values []int64, c color.Color, name string) {
		if totalOf(values) > 0 {
			p.line(notified, p.points(values, perMillisecond, 1), c, name)
		}
	}
	for i, q := range s.Ports {
		if totalOf(q.Fair) > 0 {
			p.line(to, p.points(q.Fair, mean, gigabit), plotutil.Color(i), "F of "+q.Gateway).Dashes = plotutil.Dashes(1)
		}
	}
	events(increments(s.Notified), color.Black, "all of gateways")
	events(increments(s.CNPs), color.Gray{grey}, "CNPs of receivers")
	for i, h := range senders {
		c := plotutil.Color(len(s.Ports) + i)
		p.line(to, p.points(s.Rates[h.at], mean, gigabit), c, h.name)
		events(s.Asked[h.at], c, h.name)
	}
}

const grey = 120

// level draws a horizontal line.
func (p *picture) level(to *plot.Plot, bytes int64, c color.Color, name string) {
	y := float64(bytes) / megabyte
	p.line(to, plotter.XYs{{X: 0, Y: y}, {X: p.last, Y: y}}, c, name).Dashes = plotutil.Dashes(1)
}

func (p *picture) line(to *plot.Plot, xys plotter.XYs, c color.Color, name string) *plotter.Line {
	line, err := plotter.NewLine(xys)
	if err != nil {
		p.errs = append(p.errs, err)
		return &plotter.Line{}
	}
	line.Color = c
	to.Add(line)
	to.Legend.Add(name, line)
	return line
}

// points makes a line of samples. It reduces samples too close together to distinguish to one point.
func (p *picture) points(values []int64, reduce func([]int64) float64, unit float64) plotter.XYs {
	step := (len(values) + plotted - 1) / plotted
	xys := plotter.XYs{{}}
	for i := 0; i < len(values); i += step {
		end := min(i+step, len(values))
		xys = append(xys, plotter.XY{X: float64(int64(end)*p.o.Series.Every) / 1e6, Y: reduce(values[i:end]) / unit})
	}
	return xys
}
