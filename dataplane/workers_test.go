package dataplane_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/link"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/lossless"
)

// TestPortIsTheSum: what waits for a port is what waits at all workers, for thresholds, capacity and whoever reads it.
func TestPortIsTheSum(t *testing.T) {
	s := newScene(t, notifying(byAnything...), func(s *testkit.Setup) {
		s.Workers, s.Capacity, s.Frames = 3, 10_000, 9
	})
	at := func(worker, n int) {
		for range n {
			s.InjectAt(t, worker, fabric, data(true, uint32(worker)).Frame())
		}
		s.Settle()
	}
	at(1, 2)
	at(2, 1)
	if got := s.Count(wan, counters.ECNMarked); got != 1 {
		t.Errorf("%d frames marked, expected the one that found 3000 octets at the port", got)
	}
	at(0, 3) // a batch that brings the port above K_max, of the largest flow
	if p := s.Plane.Port(wan); p.Depth[0] != 6000 || p.Frames[0] != 6 || p.Watermark[0] != 6000 {
		t.Errorf("depth %d, %d frames, watermark %d", p.Depth[0], p.Frames[0], p.Watermark[0])
	}
	if got := s.notified(); got != 3 {
		t.Errorf("%d notifications, expected 3", got)
	}
	at(1, 5)
	if full := s.Count(wan, counters.DroppedQueueFrames); full != 2 || s.Plane.Port(wan).Frames[0] != 9 {
		t.Errorf("%d frames dropped, %d queued, expected 2 and 9", full, s.Plane.Port(wan).Frames[0])
	}
	big := data(true, 5)
	big.Size = 1001
	s.InjectAt(t, 2, fabric, big.Frame())
	s.Settle()
	if full := s.Count(wan, counters.DroppedQueueOctets); full != 1 {
		t.Errorf("%d frames dropped for their octets, expected 1", full)
	}
	s.Drain()
	s.Close(t)
}

// TestFlowLimitAcrossWorkers: the sender of a flow whose packets go to two workers is notified once an interval.
func TestFlowLimitAcrossWorkers(t *testing.T) {
	p := notifying(byAnything...)
	above(p)
	p.Ports[wan].PerFlow = 10 * ms
	s := newScene(t, p, func(s *testkit.Setup) { s.Workers = 2 })
	for i := range 100 {
		size := data(true, 0)
		size.Size = 62 + i // so that each worker's share is as large as the other's, or larger
		for worker := range 2 {
			s.InjectAt(t, (i+worker)%2, fabric, size.Frame())
			s.Settle()
		}
		s.Advance(ms)
	}
	s.Drain()
	notified := s.Count(fabric, counters.SentFirst)
	if notified != 10 {
		t.Errorf("notified %d times in 100 ms, expected 10", notified)
	}
	s.Close(t)
}

// TestLargestAcrossWorkers: the sender of a flow is notified only if it has its fair share of what all workers have in the port's queue.
func TestLargestAcrossWorkers(t *testing.T) {
	s := newScene(t, notifying(byAnything...), func(s *testkit.Setup) { s.Workers = 2 })
	at := func(worker, n int, flow uint32) {
		for range n {
			s.InjectAt(t, worker, fabric, data(true, flow).Frame())
			s.Settle()
		}
	}
	at(0, 4, 0)
	at(1, 2, 1)
	if n := s.notified(); n != 0 {
		t.Errorf("%d notifications for the smaller flow", n)
	}
	at(1, 1, 1)
	s.Drain()
	if n := s.Count(fabric, counters.SentFirst); n != 1 {
		t.Errorf("%d notifications at its share, expected 1", n)
	}
	s.Close(t)
}

// TestWorkersConcurrently runs four workers on goroutines of their own while others read and change what they share. All of it is
// on the Go heap, so that the race detector sees it.
func TestWorkersConcurrently(t *testing.T) {
	const workers, rounds, most = 4, 1500, 60_000
	known := knownQPs(t)
	policies := make([]*dataplane.Policy, 3)
	for i := range policies {
		policies[i] = notifying(byAnything...)
		policies[i].QPMap = known // a Long-haul CNP needs the source QP
		policies[i].Ports[wan].PerFlow = 20_000
		policies[i].PerDestination, policies[i].PerPort = perSecond(1_000_000), perSecond(2_000_000)
	}
	policies[1].Who.Enabled[packet.FastCNP] = false
	policies[2].Domain = stage.NewDomain(nil, nil, false)
	r := testkit.New(t, testkit.Setup{Workers: workers, Rate: 2_000_000_000, Policy: policies[0], Static: known, Flows: 64,
		Capacity: 200_000, Buffers: 1024, Forget: true, Change: func(c *dataplane.Config) {
			f := flowControl(2e9)
			f.Lossless[0] = link.Lossless{On: true, Priority: losslessPriority, Thresholds: lossless.Thresholds{
				XOff: 20_000, XOn: 10_000, XOffFrames: 900, XOnFrames: 800, Refresh: ms, Limit: 100 * ms,
			}}
			c.Ports[fabric].FlowControl, c.Ports[wan].FlowControl = f, flowControl(2e9)
		}})
	var frames [][]byte
	for flow := range uint32(100) { // more than a table holds, and the same ones at all workers
		frames = append(frames, data(flow%2 == 0, flow%20).Frame(), data(true, flow).Frame())
	}
	frames = append(frames, other(sender4, receiver4, packet.ProtoTCP, 1000), macControl(), pfcFor(1<<otherPriority, 20), pauseFor(10), notCauses(t)["fast-cnp"])
	// Whose turn it is decides what happens: the workers go on until all has that is to be tested.
	enough := func() bool {
		f := r.Plane.Port(fabric)
		return f.Count[counters.SentFirst] > 0 && f.Count[counters.SentFirst+counters.Counter(packet.LongHaulCNP)] > 0 &&
			r.Plane.Port(wan).Count[counters.ECNMarked] > 0 && f.FlowControl.PFCSent[losslessPriority] > 0
	}
	var working, watching sync.WaitGroup
	var done atomic.Bool
	var steps atomic.Int64
	for worker := range workers {
		working.Go(func() {
			w, b, now := r.Plane.Worker(worker), r.Backends[worker], r.Now
			for round := 0; round < rounds || round < most && !enough(); round++ {
				for i := range 1 + (round+worker)%5 {
					r.InjectAt(t, worker, (round+i)%2, frames[(round*7+i*13+worker)%len(frames)])
				}
				b.Limit(wan, 1+round%32)
				now += int64(1000 + 137*worker)
				b.SetTime(now)
				w.Step()
				steps.Add(1)
			}
		})
	}
	watching.Go(func() {
		for i := 0; !done.Load(); i++ {
			for until := steps.Load() + int64(i%64); steps.Load() < until && !done.Load(); runtime.Gosched() {
			} // each policy is in force for a while, however the goroutines are scheduled
			if err := r.Plane.SetPolicy(policies[i%len(policies)]); err != nil {
				t.Error(err)
			}
		}
	})
	watching.Go(func() {
		before := make([]dataplane.PortStats, 2)
		for !done.Load() {
			for port := range before {
				now := r.Plane.Port(port)
				for c := range now.Count {
					if now.Count[c] < before[port].Count[c] {
						t.Errorf("port %d: counter %d went from %d to %d", port, c, before[port].Count[c], now.Count[c])
					}
				}
				before[port] = now
			}
		}
	})
	working.Wait()
	done.Store(true)
	watching.Wait()
	r.Advance(1e9)
	for _, b := range r.Backends {
		b.Limit(wan, 32)
	}
	r.Drain()
	total := r.Count(fabric, counters.RxPackets) + r.Count(wan, counters.RxPackets)
	if notified, marked := r.Count(fabric, counters.SentFirst), r.Count(wan, counters.ECNMarked); notified == 0 || marked == 0 ||
		r.Count(fabric, counters.SentFirst+counters.Counter(packet.LongHaulCNP)) == 0 {
		t.Errorf("of %d frames %d were marked, %d led to a Fast CNP: not what was to be tested", total, marked, notified)
	}
	r.Close(t)
}
