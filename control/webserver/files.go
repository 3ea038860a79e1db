package webserver

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/cnpgate/cnpgate/control/report"
)

const (
	maxFile  = 1 << 30 // bytes
	maxChart = 2048    // values of a line that are kept
)

// AddFile adds a file that the program has written: a report of run or replay, or the results (JSON) or time series (CSV) of a simulation.
func (c *Recording) AddFile(name string, from io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	if err != nil {
		return err
	}
	if len(text) > maxFile {
		return fmt.Errorf("the file has more than %d bytes; expected a report or the results of a simulation", maxFile)
	}
	start := bytes.TrimLeft(text, " \t\r\n")
	switch {
	case bytes.HasPrefix(start, []byte("{")):
		return c.addReportText(text)
	case bytes.HasPrefix(start, []byte("[")):
		return c.addOutcomes(name, text)
	case bytes.HasPrefix(start, []byte("time_ns,")):
		return c.addSeries(name, text)
	}
	return errors.New("it is none of the program's results; expected a report of run or replay (JSON), or of sim what -o json or --csv gives")
}

func (c *Recording) addReportText(text []byte) error {
	var r report.Report
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("the report: %w", err)
	}
	if len(r.Ports) == 0 {
		return errors.New("it has no ports; expected a report of run or replay")
	}
	c.AddReport(&r, 0)
	return nil
}

// addOutcomes adds the results of simulations. Their members are shown as they are.
func (c *Recording) addOutcomes(name string, text []byte) error {
	var all []map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return fmt.Errorf("the results of a simulation: %w", err)
	}
	for i := range all {
		if all[i]["scenario"] == nil || all[i]["response"] == nil {
			return fmt.Errorf("entry %d names no scenario and response; expected what cnpgate sim -o json prints", i)
		}
		c.Title = fmt.Sprint(all[i]["scenario"])
	}
	if c.Title == "" {
		c.Title = name
	}
	c.Events = append(c.Events, Event{0, "outcomes", all})
	return nil
}

// addSeries adds the time series of a simulation, a chart for each unit.
func (c *Recording) addSeries(name string, text []byte) error {
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return err
	}
	if c.Title == "" {
		c.Title = name
	}
	charts := []Chart{{Title: name + ": queues", Unit: "bytes"}, {Title: name + ": rates", Unit: "bps"}, {Title: name + ": notifications", Unit: "count"}}
	step := max((len(rows)-1+maxChart-1)/maxChart, 1)
	for column, title := range rows[0] {
		if column == 0 {
			continue
		}
		values, times, err := thinned(rows[1:], column, step)
		if err != nil {
			return err
		}
		chart := &charts[2]
		switch {
		case strings.HasSuffix(title, "_bytes"):
			chart = &charts[0]
		case strings.HasSuffix(title, "_bps"):
			chart = &charts[1]
		}
		chart.Times = times
		chart.Lines = append(chart.Lines, Series{strings.NewReplacer("_bytes", "", "_bps", "", "_", " ").Replace(title), values})
	}
	for _, chart := range charts {
		if len(chart.Lines) > 0 {
			c.Charts = append(c.Charts, chart)
		}
	}
	return nil
}

// thinned reads a column: the greatest value of each step rows, so that no peak is lost.
func thinned(rows [][]string, column, step int) (values []*float64, times []int64, err error) {
	for i := range rows {
		v, err := strconv.ParseFloat(rows[i][column], 64)
		if err != nil {
			return nil, nil, fmt.Errorf("row %d, column %d: %w", i+2, column+1, err)
		}
		if i%step == 0 {
			at, err := strconv.ParseInt(rows[i][0], 10, 64)
			if err != nil {
				return nil, nil, fmt.Errorf("row %d: time_ns: %w", i+2, err)
			}
			values, times = append(values, &v), append(times, at)
		} else if last := values[len(values)-1]; v > *last {
			*last = v
		}
	}
	return values, times, nil
}
