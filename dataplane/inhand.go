package dataplane

import (
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// This file finds the packet that a worker was handling when it panicked. It is for the report of a bug, and is called on the worker's
// goroutine before the process ends. Reading a packet may have been what failed, so everything here that reads one expects that.

// maxInHand bounds the bytes of a packet that are reported.
const maxInHand = 256

// InHand is the packet that a worker was handling.
type InHand struct {
	Port   int
	Burst  int    // packets that the burst has
	Place  int    // of the packet in it, from 0; -1 if it isn't known
	Length uint32 // of the packet, bytes
	Bytes  []byte // its first ones, as far as they can be read
}

// InHand is the packet that the worker was handling when it panicked; false if it handled none.
func (w *Worker) InHand() (InHand, bool) {
	if w.receiving == 0 {
		return InHand{}, false
	}
	port := w.receiving - 1
	rx := w.state.IO.Ports[port].Rx
	h := InHand{Port: port, Burst: len(rx), Place: int(w.state.Batch.InHand)}
	if h.Place >= len(rx) {
		h.Place = findInHand(w.state.IO, rx)
	}
	if h.Place >= 0 {
		h.Length, h.Bytes = rx[h.Place].Len, readable(w.state.IO, rx[h.Place], maxInHand)
	}
	return h, true
}

// findInHand looks for the packet whose reading or parsing panics; -1 if none does.
func findInHand(b *burst.Batch, rx []burst.Frame) int {
	for i := range rx {
		if panics(b, rx[i]) {
			return i
		}
	}
	return -1
}

// panics reports whether a packet can't be read or parsed.
func panics(b *burst.Batch, f burst.Frame) (does bool) {
	defer func() {
		if recover() != nil {
			does = true
		}
	}()
	var p packet.Parsed
	packet.Parse(b.Bytes(f), f.Len, &p)
	return len(readable(b, f, len(b.Bytes(f)))) < len(b.Bytes(f))
}

// readable are the first bytes of a packet, at most so many, up to the one that can't be read.
func readable(b *burst.Batch, f burst.Frame, most int) (read []byte) {
	defer func() { _ = recover() }()
	read = make([]byte, 0, most)
	for data := b.Bytes(f); len(read) < min(len(data), most); {
		read = append(read, data[len(read)]) // one at a time, as it may end anywhere
	}
	return read
}
