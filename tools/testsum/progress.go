package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// progress follows the reports of runs while they are written.
type progress struct {
	dir     string
	planned int
	runs    map[string]bool   // that have a plan
	usual   []float64         // of an earlier run: when each package ended, in seconds since its begin, and last when the run ended; sorted
	read    map[string]int64  // octets read of each report
	rest    map[string][]byte // the beginning of each report's last line, if it isn't complete
	running map[string]bool
	ended   []float64
}

// usualRun is used until a run has left its own times.
var usualRun = []float64{28, 36, 66, 123, 175, 194, 197, 205, 212, 217, 239, 289}

// newProgress follows the reports in a folder. Its file plan has a line for each package of each run, the run's name and the package; times is
// where the last run left its times, if it did.
func newProgress(dir, times string) *progress {
	p := &progress{dir: dir, usual: usualRun, runs: map[string]bool{}, read: map[string]int64{}, rest: map[string][]byte{}, running: map[string]bool{}}
	if text, err := os.ReadFile(times); err == nil {
		var last []float64
		if json.Unmarshal(text, &last) == nil && len(last) > 1 && slices.IsSorted(last) && last[0] >= 0 {
			p.usual = last
		}
	}
	return p
}

// look reads what the runs have reported until now, in seconds since their begin.
func (p *progress) look(now float64) {
	if plan, err := os.ReadFile(filepath.Join(p.dir, "plan")); err == nil {
		p.planned = 0
		for line := range strings.Lines(string(plan)) {
			run, _, _ := strings.Cut(line, " ")
			p.runs[run] = true
			p.planned++
		}
	}
	reports, _ := filepath.Glob(filepath.Join(p.dir, "*.json"))
	for _, name := range reports {
		if run := strings.TrimSuffix(filepath.Base(name), ".json"); p.runs[run] {
			p.report(name, run, now)
		}
	}
}

func (p *progress) report(name, run string, now float64) {
	f, err := os.Open(name)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.NewSectionReader(f, p.read[name], 1<<30))
	if err != nil {
		return
	}
	p.read[name] += int64(len(text))
	lines := bytes.Split(append(p.rest[name], text...), []byte("\n"))
	p.rest[name] = bytes.Clone(lines[len(lines)-1])
	for _, line := range lines[:len(lines)-1] {
		p.line(run, line, now)
	}
}

// line reads one event. Those of tests, nearly all, are skipped.
func (p *progress) line(run string, line []byte, now float64) {
	var e event
	if bytes.Contains(line, []byte(`"Test":`)) || json.Unmarshal(line, &e) != nil || e.Package == "" {
		return
	}
	name := path.Base(path.Dir(e.Package)) + "/" + path.Base(e.Package)
	if run != "tests" {
		name += " (" + run + ")"
	}
	switch e.Action {
	case "start":
		p.running[name] = true
	case "pass", "fail", "skip":
		delete(p.running, name)
		p.ended = append(p.ended, now)
	}
}

// left estimates the seconds that a run which began now seconds ago still takes: what the usual run took from the same number of packages on,
// multiplied by how much slower this one is.
func (p *progress) left(now float64) float64 {
	last := len(p.usual) - 1
	at := func(done int) float64 { // when the usual run had as large a part done
		if done == 0 {
			return 0
		}
		return p.usual[min(last-1, max(0, last*done/max(p.planned, 1)-1))]
	}
	done, since := len(p.ended), now
	if done > 0 {
		since = now - p.ended[done-1]
	}
	next := p.usual[last]
	if done < p.planned {
		next = at(done + 1)
	}
	place := min(at(done)+since, max(next, at(done)))
	slower := 1.0
	if place > 30 {
		slower = min(max(now/place, 0.5), 5)
	}
	return (p.usual[last] - place) * slower
}

// state is a line about what is done, what is running, and how long the rest may take.
func (p *progress) state(now float64) string {
	present := slices.Sorted(maps.Keys(p.running))
	if len(present) == 0 {
		step, _ := os.ReadFile(filepath.Join(p.dir, "step"))
		present = []string{strings.TrimSpace(string(step))}
	}
	left := time.Duration(p.left(now)) * time.Second
	return fmt.Sprintf("%3.0f s  %d of %d packages done, about %v left; now: %s", now, len(p.ended), p.planned, left.Round(10*time.Second), strings.Join(present, ", "))
}

// watch prints the state until the file "done" appears in the folder: on a terminal in one line, elsewhere a line each 20 seconds. It leaves
// the times for the next run.
func watch(out *os.File, dir, times string) {
	const each = time.Second
	const quiet = 20 * each
	info, err := out.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	p, begin := newProgress(dir, times), time.Now()
	for printed := begin; ; time.Sleep(each) {
		now := time.Since(begin).Seconds()
		p.look(now)
		if _, err := os.Stat(filepath.Join(dir, "done")); err == nil {
			p.leave(times, now)
			return
		}
		switch {
		case terminal:
			fmt.Fprintf(out, "\r\x1b[K%.150s", p.state(now))
		case time.Since(printed) >= quiet:
			fmt.Fprintln(out, "test:", p.state(now))
			printed = time.Now()
		}
	}
}

// leave writes the times of a run that has ended.
func (p *progress) leave(times string, now float64) {
	if len(p.ended) == 0 || len(p.ended) < p.planned {
		return
	}
	if text, err := json.Marshal(append(p.ended, now)); err == nil {
		_ = os.WriteFile(times, text, 0o644)
	}
}
