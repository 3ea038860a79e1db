package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cnpgate/cnpgate/sim"
	"github.com/cnpgate/cnpgate/sim/scenario"
)

var errInterrupted = &exitError{errors.New("interrupted by a signal"), interrupted}

// simulate runs simulations, several at a time, and shows their progress. It ends with the context.
func simulate(ctx context.Context, progress io.Writer, runs []*simRun, atATime int) error {
	if atATime < 1 {
		atATime = runtime.GOMAXPROCS(0)
	}
	bar := newBar(progress, runs)
	errs := make([]error, len(runs))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(atATime, len(runs)) {
		workers.Go(func() {
			for i := int(next.Add(1) - 1); i < len(runs); i = int(next.Add(1) - 1) {
				r := runs[i]
				r.outcome, errs[i] = r.scenario.Run(r.response, func(p sim.Progress) error {
					bar.show(i, p)
					return ctx.Err()
				})
				if r.brief && r.outcome != nil {
					r.outcome.Series = nil
				}
				bar.done(i)
			}
		})
	}
	workers.Wait()
	bar.end()
	if ctx.Err() != nil {
		return errInterrupted
	}
	return errors.Join(errs...)
}

// bar shows the progress of several runs as one, to a terminal only.
type bar struct {
	w     io.Writer // nil: silent
	runs  []*simRun
	mutex sync.Mutex
	part  []float64 // of each run
	shown int
}

func newBar(w io.Writer, runs []*simRun) *bar {
	b := &bar{runs: runs, part: make([]float64, len(runs)), shown: -1}
	if isScreen(w) {
		b.w = w
	}
	return b
}

// show notes the progress of a run: by time or by flows that have ended, whichever is greater.
func (b *bar) show(i int, p sim.Progress) {
	s := b.runs[i].scenario
	byTime := float64(p.Now) / float64(s.Length())
	byFlows := 1 - float64(p.Unfinished)/float64(s.Flows())
	b.note(i, min(max(byTime, byFlows), 1))
}

func (b *bar) done(i int) { b.note(i, 1) }

func (b *bar) note(i int, part float64) {
	if b.w == nil {
		return
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.part[i] = part
	sum := 0.0
	for _, p := range b.part {
		sum += p
	}
	percent := int(100 * sum / float64(len(b.part)))
	if percent == b.shown {
		return
	}
	b.shown = percent
	const width = 40
	full := percent * width / 100
	fmt.Fprintf(b.w, "\r[%s%s] %3d %%", strings.Repeat("#", full), strings.Repeat(".", width-full), percent)
}

func (b *bar) end() {
	if b.w != nil && b.shown >= 0 {
		fmt.Fprintln(b.w)
	}
}

// simFile is a file with the results of a run.
type simFile struct {
	run   *simRun
	write func(io.Writer, *scenario.Outcome) error
	*output
}

// simFiles are the files to write.
type simFiles []simFile

// openFiles opens the time series and the plots of all runs of a scenario.
func (f *simFlags) openFiles(ctx context.Context, name string, runs []*simRun) (simFiles, error) {
	var files simFiles
	for _, r := range runs {
		for _, kind := range []struct {
			flag, prefix, suffix string
			write                func(io.Writer, *scenario.Outcome) error
		}{
			{"--csv", f.csv, ".csv", func(w io.Writer, o *scenario.Outcome) error { return o.WriteCSV(w) }},
			{"--svg", f.svg, ".svg", func(w io.Writer, o *scenario.Outcome) error { return writeSVG(w, o, f.senders) }},
		} {
			if kind.prefix != "" {
				files = append(files, simFile{r, kind.write, &output{flag: kind.flag, path: kind.prefix + "-" + r.label() + kind.suffix}})
			}
		}
	}
	if err := distinct([]input{{"SCENARIO.yaml", name}}, files.outputs()); err != nil {
		return nil, err
	}
	return files, files.outputs().open(ctx)
}

func (files simFiles) outputs() outputs {
	all := make(outputs, len(files))
	for i := range files {
		all[i] = files[i].output
	}
	return all
}

// finish writes the files, and gives them their final names once all are complete.
func (files simFiles) finish() error {
	all := files.outputs()
	for _, f := range files {
		if err := f.write(f.writer(), f.run.outcome); err != nil {
			all.discard()
			return err
		}
	}
	if err := all.finish(); err != nil {
		return err
	}
	return all.rename()
}

// label distinguishes a run from the others in file names.
func (r *simRun) label() string {
	return strings.NewReplacer(" ", "-", "/", "-").Replace(strings.TrimSpace(r.response.String() + " " + r.swept))
}
