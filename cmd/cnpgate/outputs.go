package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// partial is the suffix of a file's name until the file is complete. A file without it is complete, and an earlier file of that name survives a
// failure.
const partial = ".partial"

// output is a file that a flag asks for.
type output struct {
	flag, path string // no path: the output isn't wanted
	target     string // final name of the complete file; "" for a device or pipe, which is written directly
	file       *os.File
	buffer     *bufio.Writer
}

// outputs are opened together, before any work is done, and renamed or discarded together.
type outputs []*output

func (all outputs) open(ctx context.Context) error {
	return all.each(func(o *output) error { return o.open(ctx) })
}

// finish writes what is still buffered.
func (all outputs) finish() error { return all.each((*output).finish) }

// rename gives all files their final names, once all are complete.
func (all outputs) rename() error { return all.each((*output).rename) }

// each does a step for all outputs, and discards all if it fails for one.
func (all outputs) each(step func(*output) error) error {
	for _, o := range all {
		if err := step(o); err != nil {
			all.discard()
			return fmt.Errorf("%s: %w", o.flag, err)
		}
	}
	return nil
}

// discard removes the files that don't have their final names yet.
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

func (o *output) open(ctx context.Context) error {
	if o.path == "" {
		return nil
	}
	target, err := destination(o.path)
	if err != nil {
		return err
	}
	var file *os.File
	if target == "" {
		file, err = opened(ctx, o.path, os.O_WRONLY)
	} else {
		file, err = create(target + partial)
	}
	if err != nil {
		return err
	}
	o.target, o.file, o.buffer = target, file, bufio.NewWriterSize(file, 1<<20)
	return nil
}

// opened opens a file or device. A named pipe opens once somebody has opened its other end; if the context ends before that, opened returns its error.
func opened(ctx context.Context, path string, flags int) (*os.File, error) {
	type result struct {
		file *os.File
		err  error
	}
	done := make(chan result, 1)
	go func() {
		file, err := os.OpenFile(path, flags, 0o666)
		done <- result{file, err}
	}()
	select {
	case r := <-done:
		return r.file, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// destination is where the complete file belongs; "" for a device or pipe. The operator may have made the name a symbolic link.
func destination(path string) (string, error) {
	if err := ownLink(path); err != nil {
		return "", err
	}
	if regular, err := writable(path); err != nil || !regular {
		return "", err
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target, nil
	}
	return path, nil
}

// ownLink returns an error if the name is a symbolic link of another user, who could have planted it to have one of this user's files overwritten.
// Links of root, such as /dev/stdout, and of this user are followed.
func ownLink(path string) error {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&os.ModeSymlink == 0 { // opening the file reports the error
		return nil
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("%s is a symbolic link that belongs to another user (UID %d); expected a file, or a link of your own: remove it, or write to another name", path, owner.Uid)
	}
	return nil
}

// create makes a new file. It neither follows nor writes to what has the name already, as anybody who may write to the directory could have put a link to
// another file there. It removes the file of an earlier run.
func create(name string) (*os.File, error) {
	info, err := os.Lstat(name)
	switch {
	case err != nil: // opening the file reports any error but that it doesn't exist
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s exists and is not a file (%v); expected none, or the file of an earlier run: remove it, or write to another directory", name, info.Mode())
	default:
		if err := os.Remove(name); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
}

// writable reports whether the name is that of a regular file, or of no file yet. It returns an error for what can't be written to.
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

// writer is nil, and not a nil pointer in an interface, for an output that isn't wanted.
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

// input is a file that is read, and its name on the command line.
type input struct{ what, path string }

// distinct refuses to write over an input, or one output over another.
func distinct(inputs []input, all outputs) error {
	var seen []named
	for _, in := range inputs {
		seen = append(seen, name(in.what, in.path))
	}
	for _, o := range all {
		if o.path == "" || isDevice(o.path) {
			continue
		}
		for _, path := range []string{o.path, o.path + partial} {
			n := name(o.flag, path)
			if i := slices.IndexFunc(seen, n.same); i >= 0 {
				return fmt.Errorf("%s and %s are the same file, %s; expected different ones", seen[i].what, o.flag, path)
			}
			seen = append(seen, n)
		}
	}
	return nil
}

// named is a file, and its name on the command line.
type named struct {
	what string
	info os.FileInfo // nil: it doesn't exist yet
	path string      // one for each way to write it
}

func name(what, path string) named {
	n := named{what: what, path: path}
	n.info, _ = os.Stat(path) // opening the file reports the error
	directory, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return n
	}
	if absolute, err := filepath.Abs(directory); err == nil {
		directory = absolute
	}
	n.path = filepath.Join(directory, filepath.Base(path))
	return n
}

// same reports whether both are names of one file.
func (n named) same(other named) bool {
	if n.info != nil && other.info != nil {
		return os.SameFile(n.info, other.info)
	}
	return n.info == nil && other.info == nil && n.path == other.path
}

func isDevice(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&os.ModeDevice != 0
}
