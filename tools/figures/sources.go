package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cnpgate/cnpgate/sim/scenario"
	"github.com/cnpgate/cnpgate/sim/scenarios"
)

// sources are what figures are taken from.
type sources struct {
	ecn, cnp *scenario.Outcome   // incast-10ms without and with cnpgate
	others   []string            // goodput in Gbps of incast-10ms: HPCC, PPFC, PPFC with a loop of 200 us
	bench    map[string][]string // the cells of a row of docs/performance.md, by the row's name
	cores    map[string][]string // cores for 100G, 200G and 400G, by the frames
	demo     []string            // lines that scripts/demo printed
	try      []string            // lines that scripts/try printed
	soaked   soaked
}

// Where runs have written what they printed.
const demoFile, tryFile = "testdata/figures/demo.txt", "testdata/figures/try.txt"

func readSources(root string) (s *sources, err error) {
	s = &sources{bench: map[string][]string{}, cores: map[string][]string{}}
	for _, run := range []struct {
		response scenario.Response
		settings []scenario.Setting
		to       **scenario.Outcome
	}{
		{scenario.ECN, nil, &s.ecn}, {scenario.StandardCNP, nil, &s.cnp},
		{scenario.FastCNPHPCC, nil, nil}, {scenario.PPFC, nil, nil}, {scenario.PPFC, []scenario.Setting{{Key: "topology.dumbbell.delay", Value: "50us"}}, nil},
	} {
		outcome, err := simulate(run.response, run.settings)
		if err != nil {
			return nil, err
		}
		if run.to != nil {
			*run.to = outcome
		} else {
			s.others = append(s.others, gigabits(outcome.All.Goodput))
		}
	}
	for file, to := range map[string]*[]string{demoFile: &s.demo, tryFile: &s.try} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, err
		}
		*to = strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	}
	for file, read := range map[string]func(string) error{soakFile: s.soaked.readSoaks, fuzzFile: s.soaked.readFuzz} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err == nil {
			err = read(string(text))
		}
		if err != nil {
			return nil, err
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "docs/performance.md"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		switch name := strings.Trim(cells[0], "`"); {
		case name != cells[0]:
			s.bench[name] = cells
		case strings.HasSuffix(name, " payload") && len(cells) == 4:
			s.cores[name] = cells[1:]
		}
	}
	if s.cores["1 KB payload"] == nil || s.cores["4 KB payload"] == nil {
		return nil, errors.New("docs/performance.md has no cores for 1 KB payload and 4 KB payload at three rates; scripts/bench --docs writes them")
	}
	return s, nil
}

// simulate runs incast-10ms with a response and settings, with the gateway's defaults and seed 1.
func simulate(response scenario.Response, settings []scenario.Setting) (*scenario.Outcome, error) {
	const name = "incast-10ms"
	text, _ := scenarios.Find(name)
	s, err := scenario.Parse(name, text, settings, nil)
	if err != nil {
		return nil, err
	}
	return s.Run(response, nil)
}

// cell is a cell of a row of docs/performance.md, rounded to three digits: 2 is cnpgate's figure, 4 the ratio.
func (s *sources) cell(row string, column int) (string, error) {
	cells := s.bench[row]
	if len(cells) <= column {
		return "", fmt.Errorf("docs/performance.md has no row %s with %d columns", row, column+1)
	}
	var value float64
	var unit string
	if n, _ := fmt.Sscan(cells[column], &value, &unit); n == 0 {
		return "", fmt.Errorf("docs/performance.md, row %s: %q is no figure", row, cells[column])
	}
	return strings.TrimSpace(fmt.Sprintf("%.3g %s", value, unit)), nil
}

// inTime is a time with three digits: 30.0 µs, 10.4 ms.
func inTime(ns int64) string {
	value, unit := float64(ns)/1e3, "µs"
	if ns >= int64(time.Millisecond) {
		value, unit = float64(ns)/1e6, "ms"
	}
	digits := 0
	for shown := value; shown < 100 && digits < 2; shown *= 10 {
		digits++
	}
	return fmt.Sprintf("%.*f %s", digits, value, unit)
}

// megabytes and gigabits are sizes and rates with one digit behind the point.
func megabytes(n int64) string    { return fmt.Sprintf("%.1f", float64(n)/1e6) }
func gigabits(bps float64) string { return fmt.Sprintf("%.1f", bps/1e9) }

// grouped is a number with commas between thousands.
func grouped(n uint64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}

// lines are those of a transcript that begin with one of these, in its order, each once. All must be there.
func lines(file string, transcript []string, begins ...string) (string, error) {
	var out strings.Builder
	for _, begin := range begins {
		found := false
		for _, line := range transcript {
			if found = strings.HasPrefix(line, begin); found {
				out.WriteString(line + "\n")
				break
			}
		}
		if !found {
			return "", fmt.Errorf("%s has no line that begins with %q", file, begin)
		}
	}
	return out.String(), nil
}
