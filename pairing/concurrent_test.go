package pairing

import (
	"sync"
	"testing"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"github.com/cnpgate/cnpgate/internal/testkit/synth"
)

// TestWorkersLearnTogether: two workers, each with the packets of one direction and at its own pace, pair the flows, and readers meanwhile
// find true answers or none. Run it with the race detector.
func TestWorkersLearnTogether(t *testing.T) {
	learnTogether(t, nil)
	for i := 0; i < len(scopings); i += 1 + 2*effort.Race {
		learnTogether(t, scopings[i].scope)
	}
}

func learnTogether(t *testing.T, scope func(port uint16, p *packet.Parsed) packet.Scope) {
	t.Helper()
	c := synth.Config{Connections: 64, Messages: 16, Seed: 3, Generations: 1, CM: true, Requesters: synth.FromBoth}
	var events [2][]synth.Event
	traffic := synth.New(c)
	for e, ok := traffic.Next(); ok; e, ok = traffic.Next() {
		events[e.From] = append(events[e.From], e)
	}
	g := newGateway(t, 4096)
	g.scope = scope
	var work sync.WaitGroup
	for side := range events {
		work.Add(1)
		go func() {
			defer work.Done()
			mine := *g // its own scratch; the tables are shared
			for i := range events[side] {
				e := &events[side][i]
				worker, x := mine.show(e)
				if x != flowtable.None && i%64 == 0 {
					worker.Sweep(synthEpoch + e.Time)
				}
				mine.knows(e)
			}
		}()
	}
	work.Wait()
	confirmed := uint64(0)
	for _, w := range g.workers {
		w.Sweep(synthEpoch)
		for _, n := range w.Learner.Stats().Confirmed {
			confirmed += n
		}
	}
	if confirmed == 0 && scope == nil { // where scopes must be proved first, one worker may have no packets any more
		t.Error("nothing was confirmed")
	}
}
