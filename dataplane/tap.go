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
	empty   []burst.Frame // the port's transmit list
	offered []burst.Frame // the frames that would start
	freed   int           // the number of the first ones that were freed; the others stay queued
	parsed  packet.Parsed
	moved   [burst.MaxSize]burst.Frame
}

// taps are a worker's mirror ports.
type taps []tap

func newTaps(ports []PortConfig, b *burst.Batch) (all taps) {
	for i := range ports {
		if ports[i].Tap {
			all = append(all, tap{port: i, empty: b.Ports[i].Tx[:0]})
		}
	}
	return all
}

// divide divides the frames that came by a mirror port of both directions: those whose source is in hosts come from the fabric, all others from the
// WAN, whose port receives nothing itself. Both keep their order. None is left to receive.
func (t *tap) divide(b *burst.Batch, hosts *prefix.Table[struct{}]) (fabric, wan []burst.Frame) {
	rx := b.Ports[t.port].Rx
	fabric, wan = rx[:0], t.moved[:0]
	for _, f := range rx {
		packet.Parse(b.Bytes(f), f.Len, &t.parsed)
		if _, inside := hosts.Lookup(t.parsed.Src); inside {
			fabric = append(fabric, f)
		} else {
			wan = append(wan, f)
		}
	}
	b.Ports[t.port].Rx = rx[:0]
	return fabric, wan
}

// freeOffered frees what taps offered, as far as Free has space, before the device can see it.
func (all taps) freeOffered(b *burst.Batch) {
	for i := range all {
		t := &all[i]
		tx := &b.Ports[t.port].Tx
		t.offered, *tx = *tx, t.empty
		t.freed = min(len(t.offered), cap(b.Free)-len(b.Free))
		for _, f := range t.offered[:t.freed] {
			b.Free = append(b.Free, f.Buf)
		}
	}
}

// returnFreed reports the freed frames as complete, as a device would.
func (all taps) returnFreed(b *burst.Batch) {
	for i := range all {
		t := &all[i]
		b.Ports[t.port].Tx, b.Ports[t.port].Sent = t.offered, t.freed
		t.offered = nil
	}
}
