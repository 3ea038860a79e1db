package pairing

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"github.com/cnpgate/cnpgate/internal/testkit/synth"
)

// TestWorkersUnderChurn: the UDP source port spreads the flows of both directions over four workers, with small tables that evict all the
// time, changing maps, and readers that find flows. Every usable answer is true, by a map or by evidence. Run it with the race detector.
func TestWorkersUnderChurn(t *testing.T) {
	const workers, flows = 4, 40
	c := synth.Config{Connections: 96 - 48*effort.Race, Messages: 24, Seed: 9, Generations: 2, CM: true, Requesters: synth.FromBoth, IPv6: true,
		LossBefore: slightly, LossAfter: slightly, Attack: synth.Attack{Interval: 20_000, KnowsQPs: true, ACK: true, CNP: true, CM: true, Request: true}}
	p, err := New(make([]byte, Size(workers*flows)), Config{Flows: workers * flows, Egress: []int{1, 0}, Aging: 60e9, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	all := make([]*worker, workers)
	for i := range all {
		all[i] = newWorker(t, p, flows, uint64(i))
	}
	var events [workers][]synth.Event
	truth := map[QPPair]bool{}
	traffic := synth.New(c)
	for e, ok := traffic.Next(); ok; e, ok = traffic.Next() {
		at := e.Packet.SrcPort % workers
		events[at] = append(events[at], e)
		if !e.Forged && e.MAD == nil && e.Packet.Opcode != packet.CNP {
			truth[QPPair{Source: e.Packet.Src, Destination: e.Packet.Dst, SourceQP: e.SourceQP, DestinationQP: e.Packet.DestQP}] = true
		}
	}
	var pairs []QPPair
	named := map[flowtable.Key]bool{} // one source QP for a destination, as a map must have it
	for q := range truth {
		there := flowtable.Key{Src: q.Source, Dst: q.Destination, DestQP: q.DestinationQP}
		back := flowtable.Key{Src: q.Destination, Dst: q.Source, DestQP: q.SourceQP}
		if !named[there] && !named[back] && len(pairs) < 20 {
			named[there], named[back] = true, true
			pairs = append(pairs, q)
		}
	}
	hints, err := NewQPMap(pairs, 3)
	if err != nil {
		t.Fatal(err)
	}
	var done atomic.Bool
	var work, readers sync.WaitGroup
	for i := range all {
		work.Add(1)
		go func() {
			defer work.Done()
			g := &gateway{pairing: p}
			for n := range events[i] {
				e := events[i][n]
				for side := range g.workers {
					g.workers[side] = all[i]
				}
				g.show(&e)
				if n%16 == 0 {
					all[i].Sweep(synthEpoch + e.Time)
				}
				if n%500 == 0 {
					p.SetHints([]*QPMap{nil, hints}[n/500%2])
				}
			}
		}()
	}
	var confirmed atomic.Uint64
	for range 2 {
		readers.Add(1)
		go func() {
			defer readers.Done()
			for !done.Load() {
				for q := range truth {
					for side := range uint16(2) {
						for _, w := range all {
							k := flowtable.Key{Src: q.Source, Dst: q.Destination, DestQP: q.DestinationQP, Port: side}
							a, ok := w.find(&k)
							if !ok || !a.Usable() {
								continue
							}
							confirmed.Add(1)
							q.SourceQP = a.SourceQP()
							if !truth[q] {
								t.Errorf("a flow to QP %d is %v", k.DestQP, a)
							}
						}
					}
				}
				for _, w := range all {
					w.Learner.Stats()
				}
			}
		}()
	}
	work.Wait()
	done.Store(true)
	readers.Wait()
	if confirmed.Load() == 0 {
		t.Error("nothing was confirmed")
	}
	for g := 1; g <= p.store.Groups(); g++ {
		for side := range 2 {
			n := 0
			for k := range p.store.Group(g).Used(side) {
				if pl, ok := p.store.Occupied(p.store.Group(g), side, k); ok {
					n++
					if _, ok := p.answers.of(pl.Ref()); !ok {
						t.Errorf("group %d, slot %d: its flow %x has ended", g, k, pl.Ref())
					}
				}
			}
			if n != p.store.Group(g).Flows(side) {
				t.Errorf("group %d, side %d: %d slots are in use, %d are counted", g, side, n, p.store.Group(g).Flows(side))
			}
		}
	}
}
