package dataplane

import (
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
)

// tap is a mirror port, which never transmits. Its egress queue is that of the port behind the mirror, simulated at the configured rate: the frames
// that would start are freed. Everything else works as at any other port.
type tap struct {
	port    int
	offered []burst.Frame // the frames that would start
	freed   int           // the number of the first ones that were freed; the others stay queued
	moved   [burst.MaxSize]burst.Frame
}

// divide divides the frames that came by a mirror port of both directions: those whose source is in hosts come from the fabric, all others from the
// WAN, whose port receives nothing itself. Both keep their order.
func (t *tap) divide(w *Worker, rx []burst.Frame, hosts *prefix.Table[struct{}]) (fabric, wan []burst.Frame) {
	fabric, wan = rx[:0], t.moved[:0]
	for _, f := range rx {
		p := &w.parsed[0]
		packet.Parse(w.batch.Bytes(f), f.Len, p)
		if _, inside := hosts.Lookup(p.Src); inside {
			fabric = append(fabric, f)
		} else {
			wan = append(wan, f)
		}
	}
	return fabric, wan
}

// receiveMirrored is receive for the mirror ports of both directions: first for what comes from the fabric, then for what comes from the WAN.
func receiveMirrored(w *Worker) {
	for i := range w.taps {
		t := &w.taps[i]
		if hosts := w.policy.Ports[t.port].FabricHosts; hosts != nil {
			b := &w.batch.Ports[t.port]
			fabric, wan := t.divide(w, b.Rx, hosts)
			b.Rx = b.Rx[:0] // received, here
			w.receive(t.port, fabric)
			w.receive(w.ports[t.port].Peer, wan)
		}
	}
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
		b.Tx = w.egress[t.port].List()
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
