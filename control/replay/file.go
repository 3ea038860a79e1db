package replay

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/cnpgate/cnpgate/control/capturefile"
)

// file is one of a capture.
type file struct {
	name     string
	listed   bool // in a directory that was named
	from     io.ReadSeeker
	opened   *os.File // from, if it is close's to close
	reader   *capturefile.Reader
	next     capturefile.Frame
	first    time.Time // timestamp of the first frame
	longest  int
	damaged  bool
	order    capturefile.Order // if frames have earlier timestamps than one before them, it is sorted
	warnings []string
	places   int // of the capture, before the first one of this file
	late     int // frames that were too far apart to be sorted, once it was read
}

func (f *file) open() (err error) {
	if f.name == Stdin {
		return f.copyOf(os.Stdin)
	}
	if err := capturefile.CheckName(f.name); err != nil {
		return err
	}
	stream, err := os.Open(f.name)
	if err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	info, err := stream.Stat()
	if err == nil && info.Mode().IsRegular() {
		f.from, f.opened = stream, stream
		return nil
	}
	if err == nil {
		err = f.copyOf(stream)
	}
	return errors.Join(err, stream.Close())
}

func (f *file) copyOf(stream io.Reader) (err error) {
	if f.opened, err = os.CreateTemp("", "cnpgate-capture-"); err != nil {
		return fmt.Errorf("capture %s: its temporary copy: %w", f.name, err)
	}
	f.from = f.opened
	err = os.Remove(f.opened.Name()) // an open file stays until it is closed
	if err == nil {
		_, err = io.Copy(f.opened, stream)
	}
	if err != nil {
		return fmt.Errorf("capture %s: its temporary copy: %w", f.name, err)
	}
	return nil
}

func (f *file) close() error {
	if f.opened == nil {
		return nil
	}
	return f.opened.Close()
}

// read reads the next frame; the error is io.EOF after the last whole one.
func (f *file) read() (err error) {
	f.next, err = f.reader.Next()
	if capturefile.Ends(err) {
		return io.EOF // survey has warned about it
	}
	if err == nil && len(f.next.Octets) > f.longest {
		err = fmt.Errorf("capture %s: the file has changed while it was read", f.name)
	}
	f.next.Place += f.places
	return err
}

// survey reads the file to its end. If it isn't in the order of time, it is read once more as it will be sorted.
func (f *file) survey(progress func(frames int)) error {
	if err := f.readAll(progress); err != nil {
		return err
	}
	if f.order = f.reader.Order(); f.order.Disordered > 0 {
		if err := f.settleOrder(); err != nil {
			return err
		}
		if err := f.readAll(progress); err != nil {
			return err
		}
	}
	f.first, f.longest = f.reader.First.Add(-time.Duration(f.reader.Earlier())), f.reader.Longest
	f.warnings = append(f.warnings, f.reader.Warnings()...)
	return nil
}

func (f *file) readAll(progress func(frames int)) error {
	if err := f.rewind(nil); err != nil {
		return err
	}
	f.reader.Progress, f.warnings = progress, nil
	for {
		_, err := f.reader.Next()
		if cut := (*capturefile.Cut)(nil); errors.As(err, &cut) {
			f.damaged = f.reader.Resumed() || cut.Damaged
			f.warnings = append(f.warnings, err.Error())
			return nil
		}
		if errors.Is(err, io.EOF) {
			f.damaged = f.reader.Resumed()
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// rewind returns to the start. shift says what is added to the time of a frame, by its place in the capture, ns; nil: nothing.
func (f *file) rewind(shift func(*capturefile.Frame) int64) (err error) {
	if _, err = f.from.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("capture %s: %w; expected a file, or a stream of one", f.name, err)
	}
	if f.reader, err = capturefile.NewReader(f.name, f.from); err != nil || f.order.Disordered == 0 && shift == nil {
		return err
	}
	f.reader.Sort(f.order)
	if shift != nil {
		f.reader.Shift(func(o *capturefile.Frame) int64 {
			o.Place += f.places
			by := shift(o)
			o.Place -= f.places
			return by
		})
	}
	return nil
}
