// Command pictures draws the pictures of the documentation that show a run of the gateway (scripts/screenshots): what cnpgate top has on a terminal, and
// the time series of the Grafana dashboard, from the Prometheus server that has read the gateway's metrics, and the pages.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	canvas "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

func main() {
	dashboard := flag.String("dashboard", "", "draw the time series of this dashboard")
	prometheus := flag.String("prometheus", "http://127.0.0.1:9090", "server with the metrics")
	seconds := flag.Int("seconds", 60, "draw the last so many seconds")
	page := flag.String("page", "", "draw this page, which cnpgate sim incast-10ms --web=FILE.html has written")
	diagnose := flag.String("diagnose", "", "draw the plot of the worst RDMA connection of this capture")
	flag.Parse()
	var err error
	switch {
	case *page != "":
		err = drawPage(os.Stdout, os.Stderr, *page)
	case *diagnose != "":
		err = drawDiagnosis(os.Stdout, os.Stderr, *diagnose)
	default:
		err = draw(*dashboard, *prometheus, *seconds)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func draw(dashboard, prometheus string, seconds int) error {
	if dashboard != "" {
		return drawDashboard(os.Stdout, dashboard, prometheus, seconds)
	}
	recorded, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	return drawScreen(os.Stdout, string(recorded))
}

// panel is a panel of a Grafana dashboard, as far as it is drawn.
type panel struct {
	Type, Title string
	FieldConfig struct{ Defaults struct{ Unit string } }
	Targets     []struct{ Expr, LegendFormat string }
}

// series is an answer of Prometheus.
type series struct {
	Metric map[string]string
	Values [][2]any
}

const (
	across      = 3 // panels in a row
	panelWidth  = 9 * vg.Centimeter
	panelHeight = 6 * vg.Centimeter
	step        = 1 // seconds between two values
)

// drawDashboard draws the panels of time series that have values.
func drawDashboard(to io.Writer, file, prometheus string, seconds int) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal(text, &dashboard); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var plots []*plot.Plot
	end := time.Now()
	for i := range dashboard.Panels {
		p := &dashboard.Panels[i]
		if p.Type != "timeseries" {
			continue
		}
		drawn, err := p.plot(prometheus, end.Add(-time.Duration(seconds)*time.Second), end)
		if err != nil {
			return fmt.Errorf("panel %s: %w", p.Title, err)
		}
		if drawn != nil {
			plots = append(plots, drawn)
		}
	}
	rows := (len(plots) + across - 1) / across
	svg := vgsvg.New(across*panelWidth, vg.Length(rows)*panelHeight)
	tiles, all := canvas.Tiles{Cols: across, Rows: rows, PadX: vg.Centimeter / 4, PadY: vg.Centimeter / 4}, canvas.New(svg)
	for i, p := range plots {
		p.Draw(tiles.At(all, i%across, i/across))
	}
	_, err = svg.WriteTo(to)
	return err
}

// variables are those of the dashboard: all gateways and ports.
var variables = strings.NewReplacer("$instance", ".*", "$port", ".*", "$__rate_interval", "5s")

// plot draws a panel; nil if it has no values.
func (p *panel) plot(prometheus string, from, to time.Time) (*plot.Plot, error) {
	drawn := plot.New()
	drawn.Title.Text, drawn.Y.Label.Text, drawn.Y.Min = p.Title, p.FieldConfig.Defaults.Unit, 0
	drawn.X.Min, drawn.X.Max = 0, to.Sub(from).Seconds()
	drawn.X.Label.Text, drawn.Legend.Top, drawn.Legend.TextStyle.Font.Size = "s", true, vg.Points(7)
	lines := 0
	for _, target := range p.Targets {
		answer, err := query(prometheus, variables.Replace(target.Expr), from, to)
		if err != nil {
			return nil, err
		}
		for _, s := range answer {
			points, err := s.points(from)
			if err != nil {
				return nil, err
			}
			line, err := plotter.NewLine(points)
			if err != nil {
				return nil, err
			}
			line.Color = plotutil.Color(lines)
			drawn.Add(line)
			drawn.Legend.Add(legend(target.LegendFormat, s.Metric), line)
			lines++
		}
	}
	if lines == 0 {
		return nil, nil
	}
	drawn.Y.Max *= 1 + 0.12*float64(lines) // for the legend
	return drawn, nil
}

func query(prometheus, expr string, from, to time.Time) ([]series, error) {
	values := url.Values{"query": {expr}, "start": {fmt.Sprint(from.Unix())}, "end": {fmt.Sprint(to.Unix())}, "step": {fmt.Sprint(step)}}
	answer, err := http.Get(prometheus + "/api/v1/query_range?" + values.Encode())
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var body struct {
		Error string
		Data  struct{ Result []series }
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return nil, err
	}
	if body.Error != "" {
		return nil, fmt.Errorf("%s: %s", expr, body.Error)
	}
	return body.Data.Result, nil
}

// points are the numbers among the values, by seconds since the beginning.
func (s *series) points(from time.Time) (points plotter.XYs, err error) {
	for _, v := range s.Values {
		at, _ := v[0].(float64)
		text, _ := v[1].(string)
		y, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, err
		}
		if y == y { // not NaN, of an empty histogram
			points = append(points, plotter.XY{X: at - float64(from.Unix()), Y: y})
		}
	}
	if len(points) == 0 {
		points = plotter.XYs{{}}
	}
	return points, nil
}

var label = regexp.MustCompile(`{{(\w+)}}`)

// legend is a line's legend, without the gateway.
func legend(format string, labels map[string]string) string {
	if format == "" {
		return strings.Join(slices.Sorted(maps.Values(labels)), " ")
	}
	format = strings.ReplaceAll(format, "{{instance}}", "")
	return strings.TrimSpace(label.ReplaceAllStringFunc(format, func(name string) string { return labels[strings.Trim(name, "{}")] }))
}

const clear = "\x1b[H\x1b[2J"

// drawScreen draws the last complete display of a recorded cnpgate top, which clears the screen before each.
func drawScreen(to io.Writer, recorded string) error {
	displays := strings.Split(recorded, clear)
	if len(displays) < 3 {
		return errors.New("the recording has no complete display; expected that of a terminal with cnpgate top")
	}
	const character, line, margin = 7.83, 17, 12 // of a monospaced font of 13 px
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(displays[len(displays)-2], "\r", ""), "\n "), "\n")
	columns := 80
	for _, l := range lines {
		columns = max(columns, len([]rune(l)))
	}
	width, height := int(float64(columns)*character)+2*margin, (len(lines)+1)*line+margin
	fmt.Fprintf(to, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d">`+"\n", width, height)
	fmt.Fprintln(to, `<rect width="100%" height="100%" rx="6" fill="#1e1e1e"/>`)
	fmt.Fprintln(to, `<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13" fill="#e0e0e0" xml:space="preserve">`)
	for i, l := range lines {
		if l != "" {
			fmt.Fprintf(to, `<text x="%d" y="%d" xml:space="preserve">%s</text>`+"\n", margin, (i+1)*line+margin/2, html.EscapeString(l))
		}
	}
	_, err := fmt.Fprintln(to, "</g>\n</svg>")
	return err
}
