package dataplane_test

import (
	"fmt"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// BenchmarkStep is the time a packet of a worker on the in-memory backend: frames of the 64-byte class (60 without FCS) from the
// fabric, one burst a step. "backend" is what the backend takes of it, without a worker.
func BenchmarkStep(b *testing.B) {
	for _, burst := range []int{32, 64} {
		b.Run(fmt.Sprintf("burst=%d/backend", burst), func(b *testing.B) { benchmarkBackend(b, burst) })
		for _, c := range []struct {
			name   string
			flows  int
			v6     bool
			policy func(*dataplane.Policy)
		}{
			{"uncongested/flows=1", 1, false, func(*dataplane.Policy) {}},
			{"uncongested/flows=1024", 1024, false, func(*dataplane.Policy) {}},
			{"marking/flows=1024", 1024, false, func(p *dataplane.Policy) {
				p.Ports[wan].Thresholds = congestion.Thresholds{KMin: 0, KMax: 1 << 40}
			}},
			{"suppressed/flows=1", 1, false, func(p *dataplane.Policy) {
				above(p)
				p.Ports[wan].PerFlow = 1 << 60
			}},
			{"notifying/flows=1", 1, false, above},
			{"notifying-fast-cnp/flows=1", 1, true, above},
		} {
			p := notifying(byAnything...)
			for i := range p.Ports {
				p.Ports[i].Thresholds = congestion.Thresholds{KMin: 1 << 40, KMax: 1 << 41}
			}
			c.policy(p)
			b.Run(fmt.Sprintf("burst=%d/%s", burst, c.name), func(b *testing.B) { benchmarkStep(b, burst, c.flows, c.v6, p) })
		}
	}
}

func benchmarkFrames(flows int, v6 bool) (frames [][]byte) {
	for n := range flows {
		f := data(v6, uint32(n))
		f.Size = 60
		frames = append(frames, f.Frame())
	}
	return frames
}

func benchmarkStep(b *testing.B, burst, flows int, v6 bool, p *dataplane.Policy) {
	r := testkit.New(b, testkit.Setup{Policy: p, Static: knownQPs(b), Burst: burst, Rate: 400e9, Forget: true, Flows: 4096, Buffers: 1024, BufferSize: 128})
	frames := benchmarkFrames(flows, v6)
	w, backend := r.Plane.Worker(0), r.Backends[0]
	place := 0
	round := func() {
		for range burst {
			f := frames[place]
			if place++; place == len(frames) {
				place = 0
			}
			backend.Inject(fabric, f, uint32(len(f)))
		}
		r.Advance(10_000)
		w.Step()
	}
	for range 100 {
		round()
	}
	for b.Loop() {
		round()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*burst), "ns/packet")
	if s := r.Plane.Port(wan); s.Count[counters.DroppedQueueFrames]+s.Count[counters.DroppedQueueOctets] > 0 {
		b.Errorf("dropped: %v", s.Count)
	}
}

func benchmarkBackend(b *testing.B, burst int) {
	r := testkit.New(b, testkit.Setup{Burst: burst, Forget: true, Buffers: 1024, BufferSize: 128})
	f := benchmarkFrames(1, false)[0]
	backend := r.Backends[0]
	batch := backend.Batch()
	for b.Loop() {
		for range burst {
			backend.Inject(fabric, f, uint32(len(f)))
		}
		backend.Exchange()
		batch.Ports[wan].Tx = append(batch.Ports[wan].Tx[:0], batch.Ports[fabric].Rx...)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*burst), "ns/packet")
}

// BenchmarkSnapshot is a step that nobody has asked anything, and one that copies flows of a table of 2^16 for someone.
func BenchmarkSnapshot(b *testing.B) {
	for _, asked := range []bool{false, true} {
		b.Run(fmt.Sprintf("asked=%t", asked), func(b *testing.B) {
			const flows = 1 << 16
			r := testkit.New(b, testkit.Setup{Forget: true, Flows: flows, Rate: 1e12})
			for flow := range uint32(flows) {
				r.Inject(b, fabric, data(true, flow).Frame())
				r.Settle()
				r.Drain()
			}
			w, s := r.Plane.Worker(0), &dataplane.Snapshot{Flows: make([]dataplane.FlowRecord, 0, 1024)}
			for b.Loop() {
				if asked && !w.Asked(s) {
					if s.Flows = s.Flows[:0]; s.End {
						s.At = 0
					}
					w.Ask(s)
				}
				w.Step()
			}
		})
	}
}
