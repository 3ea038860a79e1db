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
			for i := int(next.Add(1) - 1); i < len(runs) && ctx.Err() == nil; i = int(next.Add(1) - 1) {
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

// simFiles are the files to write, with what writes each.
type simFiles struct {
	outputs
	write []func(io.Writer) error
}

// openFiles opens the time series and the plots of all runs of a scenario.
func (f *simFlags) openFiles(ctx context.Context, name string, runs []*simRun) (files simFiles, err error) {
	for _, r := range runs {
		if f.csv != "" {
			files.outputs = append(files.outputs, &output{flag: "--csv", path: f.csv + "-" + r.label() + ".csv"})
			files.write = append(files.write, func(w io.Writer) error { return r.outcome.WriteCSV(w) })
		}
		if f.svg != "" {
			files.outputs = append(files.outputs, &output{flag: "--svg", path: f.svg + "-" + r.label() + ".svg"})
			files.write = append(files.write, func(w io.Writer) error { return writeSVG(w, r.outcome, f.senders) })
		}
	}
	if err := distinct([]input{{"SCENARIO.yaml", name}}, files.outputs); err != nil {
		return files, err
	}
	return files, files.open(ctx)
}

// end writes the files, and gives them their final names once all are complete.
func (files simFiles) end() error {
	for i, o := range files.outputs {
		if err := files.write[i](o.writer()); err != nil {
			files.discard()
			return err
		}
	}
	if err := files.finish(); err != nil {
		return err
	}
	return files.rename()
}

// label distinguishes a run from the others in file names.
func (r *simRun) label() string {
	return strings.NewReplacer(" ", "-", "/", "-").Replace(strings.TrimSpace(r.response.String() + " " + r.swept))
}
