package dataplane_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
)

// TestPassiveWorkersAtOnce: one worker sends what another one sees acknowledged, both on goroutines of their own, while a third one adapts the policy.
// The race detector watches.
func TestPassiveWorkersAtOnce(t *testing.T) {
	r := testkit.New(t, testkit.Setup{Workers: 2, Policy: measuring(congestion.RTTPassive), Static: knownQPs(t), Rate: 10e9, Forget: true})
	var now, sent atomic.Int64
	var done atomic.Bool
	now.Store(r.Now)
	step := func(worker, port int, frame []byte) {
		r.Backends[worker].SetTime(now.Load())
		r.InjectAt(t, worker, port, frame)
		r.Plane.Worker(worker).Step()
	}
	var both sync.WaitGroup
	both.Go(func() {
		defer done.Store(true)
		for psn := int64(1); psn < 60_000 && (psn < 20_000-15_000*effort.Race || r.Plane.Port(wan).RTTSamples[congestion.RTTPassive] < 3); psn++ {
			step(0, fabric, request(uint32(psn), 100))
			sent.Store(psn)
			now.Add(packetTime)
		}
	})
	both.Go(func() {
		for !done.Load() {
			step(1, wan, ack(uint32(sent.Load()), sourceQP))
		}
	})
	for !done.Load() {
		r.Plane.Adapt(now.Load())
	}
	both.Wait()
	if n := r.Plane.Port(wan).RTTSamples[congestion.RTTPassive]; n < 3 {
		t.Errorf("%d samples", n)
	}
	r.Advance(now.Load() - r.Now)
	r.Drain()
	r.Close(t)
}
