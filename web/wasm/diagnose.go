//go:build js && wasm

package main

import (
	"encoding/json"
	"errors"
	"io"
	"syscall/js"

	"github.com/cnpgate/cnpgate/control/replay"
)

// file reads a file of the page, of which the browser gives a part at a time: it is never in memory as a whole. Go keeps every object that JavaScript
// gives it until the next garbage collection, so the parts come in one array. While it waits for a part, the browser can free those before.
type file struct {
	parts js.Value // read of (number, offset, length) puts a part of a file in into, and calls cnpgatePart with its length, or with why it can't be read
	into  js.Value
	n     int // the file's number
	size  int64
	at    int64
}

// part is what the browser says of the part that was asked for.
type part struct {
	length int
	failed string
}

var parts = make(chan part, 1)

func init() {
	js.Global().Set("cnpgatePart", js.FuncOf(func(_ js.Value, args []js.Value) any {
		parts <- part{args[0].Int(), args[1].String()}
		return nil
	}))
}

// Read implements io.Reader.
func (f *file) Read(b []byte) (int, error) {
	length := min(int64(len(b)), f.size-f.at)
	if length <= 0 {
		return 0, io.EOF
	}
	f.parts.Call("read", f.n, f.at, length)
	got := <-parts
	if got.failed != "" {
		return 0, errors.New(got.failed)
	}
	n := js.CopyBytesToGo(b[:got.length], f.into)
	f.at += int64(n)
	return n, nil
}

// Seek implements io.Seeker, to the start only: nothing else is asked for.
func (f *file) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence != io.SeekStart {
		return 0, errors.ErrUnsupported
	}
	f.at = 0
	return 0, nil
}

// diagnose judges the RDMA connections of a capture in one or several files, as `cnpgate replay --health` does.
func (r *runner) diagnose(argument []byte, from js.Value) (any, error) {
	var a struct {
		Files []struct {
			Name string
			Size int64
		}
		RoCEPort    uint16
		Connections int
	}
	if err := json.Unmarshal(argument, &a); err != nil {
		return nil, err
	}
	r.diagnosis = nil // before memory for the next one is needed
	var sources []replay.Source
	for n, f := range a.Files {
		sources = append(sources, replay.Source{Name: f.Name, From: &file{parts: from, into: from.Get("into"), n: n, size: f.Size}})
	}
	c, err := replay.OpenFrom(sources...)
	if err != nil {
		return nil, err
	}
	r.diagnosis, err = replay.Diagnose(c, replay.HealthOptions{RoCEPort: a.RoCEPort, Connections: a.Connections})
	return r.diagnosis, err
}

// trace reads the capture again for what passed of one end's requests.
func (r *runner) trace(argument []byte) (any, error) {
	var a struct{ Connection, Requester int }
	if err := json.Unmarshal(argument, &a); err != nil {
		return nil, err
	}
	if r.diagnosis == nil {
		return nil, errors.New("no capture has been read")
	}
	return r.diagnosis.Trace(a.Connection, a.Requester)
}
