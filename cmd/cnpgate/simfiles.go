package main

import (
	"context"
	"io"
	"strings"

	"github.com/cnpgate/cnpgate/sim/scenario"
)

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
