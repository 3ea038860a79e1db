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

// growth has the numbers of flows for which a packet's cost is measured.
var growth = []struct {
	name  string
	flows int
}{{"1k", 1 << 10}, {"16k", 16 << 10}, {"128k", 128 << 10}, {"1m", 1 << 20}, {"10m", 10 << 20}}

// besideCsum ends the names of the rows that compare the cost with that of testpmd's mode csum.
const besideCsum = "_csum"

// growing compares a packet's cost with that for few flows, and with that of testpmd for the same capture.
func growing(n struct {
	name  string
	flows int
}) group {
	name := "cost_" + n.name
	const what = "CPU time of a packet, as nic64_1m_cold"
	rows := []row{{Name: name + besideCsum, What: what, Unit: "ns", Peer: "testpmd csum", less: true}}
	if n.flows != growth[0].flows {
		rows = append(rows, row{Name: name, What: what, Unit: "ns", Peer: "cnpgate, 1,024 flows", less: true})
	}
	return group{
		name: name,
		rows: rows,
		measure: func(b *bench, rows []row) error {
			l, err := b.growthLayout(name, n.flows)
			if err != nil {
				return err
			}
			defer l.remove()
			gw, err := b.gatewayOf(l, nil)
			if err != nil {
				return err
			}
			defer gw.close()
			sides := []side{gw}
			for i := range rows {
				peer, end, err := b.growthPeer(name, l, rows[i].Name == name)
				if err != nil {
					return err
				}
				defer end()
				sides = append(sides, peer)
			}
			return b.compare(rows, func(taken slicesOf) {
				for i := range rows {
					rows[i].fill(taken.nanoseconds(0), taken.nanoseconds(1+i), b.noise)
				}
			}, sides...)
		},
	}
}

// growthPeer starts what a cost is compared with: cnpgate with few flows, or testpmd on the same layout.
func (b *bench) growthPeer(name string, l *layout, few bool) (s side, end func(), err error) {
	if !few {
		peer, err := startTestpmd(b, l)
		if err != nil {
			return nil, nil, err
		}
		return testpmdMode{testpmd: peer, mode: "csum"}, peer.close, nil
	}
	fewer, err := b.growthLayout(name, growth[0].flows)
	if err != nil {
		return nil, nil, err
	}
	gw, err := b.gatewayOf(fewer, nil)
	if err != nil {
		fewer.remove()
		return nil, nil, err
	}
	return gw, func() { gw.close(); fewer.remove() }, nil
}

func (b *bench) growthLayout(name string, flows int) (*layout, error) {
	l, err := b.both(name+"-"+number10(flows), traffic{flows: flows, payload: smallest}, 1)
	if err == nil {
		b.likeNIC(l, true)
	}
	return l, err
}

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
	const margin = vg.Centimeter / 3
	p.Draw(draw.Crop(draw.New(canvas), margin, -margin, margin, -margin))
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
