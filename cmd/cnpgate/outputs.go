package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// partial is what the name of a file ends in until the file is whole: what stands under the name that was asked for is complete,
// and what stood there before outlasts a failure.
const partial = ".partial"

// output is a file that a flag asks for.
type output struct {
	flag, path string // no path: nobody asked
	target     string // what the whole file is renamed to; "" for a device or pipe, which is written to as it is
	file       *os.File
	buffer     *bufio.Writer
}

// outputs are opened together, before any work is done, and renamed or discarded together.
type outputs []*output

func (all outputs) open() error { return all.each((*output).open) }

// finish writes what is still to be written.
func (all outputs) finish() error { return all.each((*output).finish) }

// rename gives them the names that were asked for, once all are whole.
func (all outputs) rename() error { return all.each((*output).rename) }

// each does a step with all, and discards all when it fails with one.
func (all outputs) each(step func(*output) error) error {
	for _, o := range all {
		if err := step(o); err != nil {
			all.discard()
			return fmt.Errorf("%s: %w", o.flag, err)
		}
	}
	return nil
}

// discard removes what doesn't have its name yet.
func (all outputs) discard() {
	for _, o := range all {
		if o.file == nil {
			continue
		}
		_ = o.file.Close() // finish may have closed it
		if o.target != "" {
			_ = os.Remove(o.file.Name())
		}
		o.file = nil
	}
}

func (o *output) open() error {
	if o.path == "" {
		return nil
	}
	name := o.path
	if regular, err := writable(o.path); err != nil {
		return err
	} else if regular {
		o.target = o.path
		if real, err := filepath.EvalSymlinks(o.path); err == nil {
			o.target = real
		}
		name = o.target + partial
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	o.file, o.buffer = file, bufio.NewWriterSize(file, 1<<20)
	return nil
}

// writable tells whether there is a regular file under the name, or nothing yet, and an error for what can't be written to.
func writable(path string) (regular bool, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return false, nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return false, err
	}
	return true, file.Close()
}

// writer is nil, and not a nil pointer in an interface, for an output that nobody asked for.
func (o *output) writer() io.Writer {
	if o.file == nil {
		return nil
	}
	return o.buffer
}

func (o *output) finish() error {
	if o.file == nil {
		return nil
	}
	return errors.Join(o.buffer.Flush(), o.file.Close())
}

func (o *output) rename() error {
	if o.file == nil || o.target == "" {
		return nil
	}
	err := os.Rename(o.file.Name(), o.target)
	if err == nil {
		o.file = nil
	}
	return err
}

// input is a file that is read, and what it is called on the command line.
type input struct{ what, path string }

// distinct refuses to write over an input, or one output over another.
func distinct(inputs []input, all outputs) error {
	seen := map[string]string{}
	for _, in := range inputs {
		seen[identity(in.path)] = in.what
	}
	for _, o := range all {
		if o.path == "" || isDevice(o.path) {
			continue
		}
		for _, path := range []string{o.path, o.path + partial} {
			id := identity(path)
			if other, ok := seen[id]; ok {
				return fmt.Errorf("%s and %s are the same file, %s; expected different ones", other, o.flag, path)
			}
			seen[id] = o.flag
		}
	}
	return nil
}

// identity is the same for two names of one file, and for two ways to write the name of one that isn't there yet.
func identity(path string) string {
	var s unix.Stat_t
	if unix.Stat(path, &s) == nil {
		return fmt.Sprint(s.Dev, " ", s.Ino)
	}
	directory, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return path
	}
	if absolute, err := filepath.Abs(directory); err == nil {
		directory = absolute
	}
	return filepath.Join(directory, filepath.Base(path))
}

func isDevice(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&os.ModeDevice != 0
}
