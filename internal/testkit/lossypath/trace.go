package lossypath

import (
	"compress/gzip"
	"encoding/gob"
	"errors"
	"io"
)

// Trace is a run of a path: what its hosts sent, and what the path did. From it the run can be made again without the hosts.
type Trace struct {
	TimeOut int64 // see Truth
	Steps   []Step
}

// Step is a frame that a host sent.
type Step struct {
	At           int64
	From         int
	Length       int    // of the frame
	Frame        []byte // its first bytes
	Before, Then Fate   // before the capture, and behind it
}

const kept = 96 // bytes of a frame: all headers

// Write writes a trace, compressed.
func (t *Trace) Write(w io.Writer) error {
	z := gzip.NewWriter(w)
	return errors.Join(gob.NewEncoder(z).Encode(t), z.Close())
}

// ReadTrace reads what Write has written.
func ReadTrace(r io.Reader) (*Trace, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	t := &Trace{}
	return t, gob.NewDecoder(z).Decode(t)
}

// Place is where on a path a capture is taken.
type Place int

// Places. Middle is where it was in the run.
const (
	AtFirst  Place = iota // at host 0
	AtSecond              // at host 1
	Middle
)

// Replay makes the run again, and returns what is true of a capture at a place.
func (t *Trace) Replay(at Place, capture func(now int64, frame []byte)) *Truth {
	w := Path{Truth: Truth{TimeOut: t.TimeOut}, Capture: capture, Deliver: func(int, int64, []byte) {}}
	for i := range t.Steps {
		s := t.Steps[i]
		all := Fate{
			Lost: s.Before.Lost || s.Then.Lost, Twice: s.Before.Twice || s.Then.Twice, CE: s.Before.CE || s.Then.CE, Delay: s.Before.Delay + s.Then.Delay,
		}
		switch int(at) {
		case s.From:
			s.Before, s.Then = Fate{}, all
		case 1 - s.From:
			s.Before, s.Then = all, Fate{}
		}
		w.Run(s.At)
		w.enter(&s, append(s.Frame, make([]byte, s.Length-len(s.Frame))...))
	}
	w.Run(never)
	return &w.Truth
}
