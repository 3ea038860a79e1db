package dataplane_test

import (
	"bytes"
	"iter"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/ratelimit"
	"pgregory.net/rapid"
)

// twins are two gateways that get the same traffic. The first takes bursts as wholes where it can, the second every frame for itself.
type twins [2]*testkit.Rig

func newTwins(t *rapid.T, setup func() testkit.Setup) (w twins) {
	for i := range w {
		w[i] = testkit.New(t, setup())
		if i == 1 {
			for n := range w[i].Plane.Workers() {
				w[i].Plane.Worker(n).OneByOne()
			}
		}
	}
	return w
}

// same fails unless nobody can tell one gateway from the other.
func (w twins) same(t *rapid.T, ports int) {
	for n := range w[0].Plane.Workers() {
		a, b := w[0].Sent[n], w[1].Sent[n]
		for i := range min(len(a), len(b)) {
			if a[i].Port != b[i].Port || a[i].Length != b[i].Length || a[i].Built != b[i].Built || a[i].Now != b[i].Now ||
				!bytes.Equal(a[i].Octets, b[i].Octets) {
				t.Fatalf("worker %d sent as number %d\n%+v, one by one\n%+v", n, i, a[i], b[i])
			}
		}
		if len(a) != len(b) {
			t.Fatalf("worker %d sent %d frames, one by one %d", n, len(a), len(b))
		}
		w[0].Sent[n], w[1].Sent[n] = nil, nil
		x, y := w[0].Plane.Worker(n), w[1].Plane.Worker(n)
		dueX, waitsX := x.NextDue()
		dueY, waitsY := y.NextDue()
		if x.Queued() != y.Queued() || dueX != dueY || waitsX != waitsY {
			t.Fatalf("worker %d: %d queued, due %d %v; one by one %d, due %d %v", n, x.Queued(), dueX, waitsX, y.Queued(), dueY, waitsY)
		}
		sameFlows(t, x, y)
	}
	for port := range ports {
		if a, b := w[0].Plane.Port(port), w[1].Plane.Port(port); a != b {
			t.Fatalf("port %d: %+v\none by one %+v", port, a, b)
		}
	}
}

func sameFlows(t *rapid.T, a, b *dataplane.Worker) {
	if a.FlowStats() != b.FlowStats() || a.PairingStats() != b.PairingStats() {
		t.Fatalf("flows %+v, pairing %+v\none by one %+v, %+v", a.FlowStats(), a.PairingStats(), b.FlowStats(), b.PairingStats())
	}
	next, stop := iter.Pull(b.Records())
	defer stop()
	for x := range a.Records() {
		y, ok := next()
		if !ok || *x != *y {
			t.Fatalf("flow %+v\none by one %+v", *x, y)
		}
	}
	if y, ok := next(); ok {
		t.Fatalf("no flow\none by one %+v", *y)
	}
}

// drawFrame makes a frame for the twins, so many in a hundred of them not of the plain sort.
func drawFrame(t *rapid.T, special int) []byte {
	r := data(rapid.Bool().Draw(t, "v6"), rapid.Uint32Range(0, 11).Draw(t, "flow"))
	r.DSCP = rapid.SampledFrom([]uint8{0, 0, 0, 0, 0, 1, 2}).Draw(t, "DSCP")
	r.ECN = rapid.SampledFrom([]uint8{packet.ECT0, packet.ECT0, packet.ECT1, packet.NotECT, packet.CE}).Draw(t, "ECN")
	r.PSN = rapid.Uint32Range(0, 100).Draw(t, "PSN")
	r.Size = rapid.SampledFrom([]int{100, 100, 200, 1000, rapid.IntRange(60, 1100).Draw(t, "octets")}).Draw(t, "size") // so that sums hit thresholds
	if rapid.IntRange(0, 99).Draw(t, "special") >= special {
		return r.Frame()
	}
	switch rapid.IntRange(0, 5).Draw(t, "sort") {
	case 0:
		return ethernet(packet.EtherTypeMACControl)
	case 1:
		return ethernet(0x88cc)
	case 2:
		return other(sender4, receiver4, packet.ProtoTCP, 100)
	case 3:
		r.Opcode, r.Flags = packet.CNP, packet.BECN
	case 4:
		r.Opcode = packet.RCAcknowledge
	case 5:
		r.Opcode, r.SourceQP = packet.UDSendOnly, 77
	}
	return r.Frame()
}

// TestPass: a gateway that takes bursts as wholes can't be told from one that takes every frame for itself, whatever comes, however the
// queues stand, and whatever the devices refuse.
func TestPass(t *testing.T) {
	static := knownQPs(t)
	plain := 0
	rapid.Check(t, func(t *rapid.T) {
		p := telling(byAnything...)
		kMax := 100 * rapid.Uint64Range(1, 300).Draw(t, "K_max")
		for i := range p.Ports {
			kMin := 100*rapid.Uint64Range(0, kMax/100-1).Draw(t, "K_min") + rapid.SampledFrom([]uint64{0, 99}).Draw(t, "and")
			p.Ports[i].Thresholds = congestion.Thresholds{KMin: kMin, KMax: kMax}
			p.Ports[i].PerFlow = ratelimit.Interval(rapid.Int64Range(0, 50_000).Draw(t, "interval"))
		}
		workers, special := rapid.IntRange(1, 2).Draw(t, "workers"), rapid.SampledFrom([]int{0, 1, 20}).Draw(t, "special in 100")
		frames, capacity := rapid.IntRange(4, 300).Draw(t, "frames"), rapid.Uint64Range(2000, 60_000).Draw(t, "capacity")
		flows, rate := rapid.IntRange(8, 64).Draw(t, "flows"), rapid.SampledFrom([]uint64{1e9, 10e9, 400e9}).Draw(t, "rate")
		classes := rapid.Bool().Draw(t, "classes")
		w := newTwins(t, func() testkit.Setup {
			return testkit.Setup{Workers: workers, Burst: 16, Rate: rate, Capacity: capacity, Frames: frames, Flows: flows, Policy: p, Static: static,
				Change: func(c *dataplane.Config) {
					c.Aging = 300_000
					if classes {
						threeClasses(c)
					}
				}}
		})
		t.Repeat(map[string]func(*rapid.T){
			"burst": func(t *rapid.T) {
				worker, port := rapid.IntRange(0, workers-1).Draw(t, "worker"), rapid.SampledFrom([]int{fabric, fabric, fabric, wan}).Draw(t, "port")
				for range rapid.IntRange(1, 20).Draw(t, "n") {
					f := drawFrame(t, special)
					for i := range w {
						w[i].InjectAt(t, worker, port, f)
					}
				}
			},
			"step": func(t *rapid.T) {
				worker := rapid.IntRange(0, workers-1).Draw(t, "worker")
				a, b := w[0].Plane.Worker(worker).Step(), w[1].Plane.Worker(worker).Step()
				if a != b {
					t.Fatalf("a step moved %d frames, one by one %d", a, b)
				}
				if n := w[0].Plane.Worker(worker).Queued(); n > 1 && !w[0].Plane.Worker(worker).Ranked(wan, 0) {
					plain++
				}
			},
			"time": func(t *rapid.T) {
				ns := rapid.Int64Range(0, 40_000).Draw(t, "ns")
				for i := range w {
					w[i].Advance(ns)
				}
			},
			"limit": func(t *rapid.T) {
				worker, port, n := rapid.IntRange(0, workers-1).Draw(t, "worker"), rapid.IntRange(0, 1).Draw(t, "port"), rapid.IntRange(0, 16).Draw(t, "frames")
				for i := range w {
					w[i].Backends[worker].Limit(port, n)
				}
			},
			"": func(t *rapid.T) { w.same(t, 2) },
		})
		for i := range w {
			for _, b := range w[i].Backends {
				b.Limit(fabric, 16)
				b.Limit(wan, 16)
			}
			w[i].Drain()
		}
		w.same(t, 2)
		for i := range w {
			w[i].Close(t)
		}
		w.same(t, 2)
	})
	if plain == 0 {
		t.Error("flows were ranked all the time: not what was to be tested")
	}
}
