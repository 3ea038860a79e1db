package dataplane_test

import (
	"testing"
	"unsafe"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// treadmill is a backend that costs next to nothing: it receives the same frames over and over where they lie, and forgets what it
// sends. What a benchmark on it measures is the worker.
type treadmill struct {
	batch  burst.Batch
	frames []burst.Frame // as many as come by the fabric port before it begins anew
	place  int
	n      int // a burst
	now    int64
	fresh  [][]byte // what the frames were before they were marked; nil where they never are
}

const treadmillRoom = 128

func newTreadmill(frames [][]byte, n int, marks bool) *treadmill {
	buffers := len(frames) + burst.MaxSize
	memory, _ := testkit.Heap(buffers * treadmillRoom)
	m := &treadmill{n: n, now: testkit.Epoch}
	m.batch = burst.Batch{Base: unsafe.Pointer(unsafe.SliceData(memory)), Ports: make([]burst.Port, 2),
		Free: make([]uint64, 0, 4*burst.MaxSize), Spare: make([]burst.Frame, burst.MaxSize)}
	for i := range m.batch.Ports {
		m.batch.Ports[i].Tx = make([]burst.Frame, 0, burst.MaxSize)
	}
	for i := range buffers {
		f := burst.Frame{Buf: uint64(i + 1), Data: uint64(i * treadmillRoom)}
		if i >= len(frames) {
			f.Head = treadmillRoom
			m.batch.Spare[i-len(frames)] = f
			continue
		}
		f.Len, f.Head = uint32(len(frames[i])), uint32(len(frames[i]))
		copy(memory[f.Data:], frames[i])
		m.frames = append(m.frames, f)
	}
	if marks {
		m.fresh = frames
	}
	return m
}

func (m *treadmill) Batch() *burst.Batch { return &m.batch }

func (m *treadmill) Exchange() int64 {
	b := &m.batch
	for i := range b.Ports {
		b.Ports[i].Sent = len(b.Ports[i].Tx)
	}
	b.Free, b.Spare = b.Free[:0], b.Spare[:cap(b.Spare)]
	if m.place+m.n > len(m.frames) {
		m.place = 0
	}
	b.Ports[fabric].Rx = m.frames[m.place : m.place+m.n]
	if m.fresh != nil {
		for i, f := range b.Ports[fabric].Rx {
			copy(b.Bytes(f), m.fresh[m.place+i][:32])
		}
	}
	m.place += m.n
	m.now += 10_000
	return m.now
}

// BenchmarkWorker is the time a packet of the worker alone, in bursts of 64 frames of the 64-byte class.
func BenchmarkWorker(b *testing.B) {
	for _, c := range []struct {
		name   string
		flows  int
		v6     bool
		marks  bool
		policy func(*dataplane.Policy)
	}{
		{name: "uncongested/flows=64", flows: 64},
		{name: "uncongested/flows=1024", flows: 1024},
		{name: "uncongested-v6/flows=1024", flows: 1024, v6: true},
		{name: "marking/flows=1024", flows: 1024, marks: true, policy: func(p *dataplane.Policy) {
			p.Ports[wan].Thresholds = congestion.Thresholds{KMin: 0, KMax: 1 << 40}
		}},
		{name: "notifying/flows=1", flows: 1, marks: true, policy: above},
		{name: "notifying-fast-cnp/flows=1", flows: 1, v6: true, marks: true, policy: above},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := notifying(byAnything...)
			for i := range p.Ports {
				p.Ports[i].Thresholds = congestion.Thresholds{KMin: 1 << 40, KMax: 1 << 41}
			}
			if c.policy != nil {
				c.policy(p)
			}
			benchmarkWorker(b, c.flows, c.v6, c.marks, p)
		})
	}
}

// BenchmarkWorkerIdle is the time of a step without a frame.
func BenchmarkWorkerIdle(b *testing.B) {
	r := testkit.New(b, testkit.Setup{Change: func(c *dataplane.Config) { c.Backends[0] = newTreadmill(nil, 0, false) }})
	w := r.Plane.Worker(0)
	for b.Loop() {
		w.Step()
	}
}

func benchmarkWorker(b *testing.B, flows int, v6, marks bool, p *dataplane.Policy) {
	frames := benchmarkFrames(flows, v6)
	for len(frames) < burst.MaxSize {
		frames = append(frames, frames...)
	}
	r := testkit.New(b, testkit.Setup{Policy: p, Static: knownQPs(b), Rate: 400e9, Flows: 4096, Change: func(c *dataplane.Config) {
		c.Backends[0] = newTreadmill(frames, burst.MaxSize, marks)
	}})
	w := r.Plane.Worker(0)
	const settled = 64 // packets of a flow after which its pairing has come to rest
	for range max(1000, settled*flows/burst.MaxSize) {
		w.Step()
	}
	for b.Loop() {
		w.Step()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*burst.MaxSize), "ns/packet")
	if s := r.Plane.Port(wan); s.Count[counters.DroppedQueueFrames]+s.Count[counters.DroppedQueueOctets] > 0 {
		b.Errorf("dropped: %v", s.Count)
	}
}
