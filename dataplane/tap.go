package dataplane

import "github.com/cnpgate/cnpgate/internal/burst"

// tap is a mirror port, which never transmits. Its egress queue is that of the port behind the mirror, simulated at the configured rate: the frames
// that would start are freed. Everything else works as at any other port.
type tap struct {
	port    int
	offered []burst.Frame // the frames that would start
	freed   int           // the number of the first ones that were freed; the others stay queued
}

func newTaps(ports []PortConfig) (taps []tap) {
	for i := range ports {
		if ports[i].Tap {
			taps = append(taps, tap{port: i})
		}
	}
	return taps
}

// freeOffered frees what taps offered, as far as Free has space, before the device can see it.
func (w *Worker) freeOffered() {
	for i := range w.taps {
		t := &w.taps[i]
		b := &w.batch.Ports[t.port]
		t.offered = b.Tx
		t.freed = min(len(b.Tx), cap(w.batch.Free)-len(w.batch.Free))
		for _, f := range t.offered[:t.freed] {
			w.batch.Free = append(w.batch.Free, f.Buf)
		}
		b.Tx = w.egress[t.port].list
	}
}

// returnFreed reports the freed frames as complete, as a device would.
func (w *Worker) returnFreed() {
	for i := range w.taps {
		t := &w.taps[i]
		b := &w.batch.Ports[t.port]
		b.Tx, b.Sent = t.offered, t.freed
		t.offered = nil
	}
}
