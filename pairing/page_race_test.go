package pairing

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestPageChangesHands: a worker looks up its flow's slot while another worker frees the slot and gives its page to another group, or to
// the other side of the same one. What the lookup finds belongs together. Run it with the race detector.
func TestPageChangesHands(t *testing.T) {
	const rounds, hosts, flows = 20, 130, 4
	p, err := New(make([]byte, Size(flows)), Config{Flows: flows, Egress: []int{1, 0}, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	all := [2]*worker{newWorker(t, p, 16, 0), newWorker(t, p, 16, 1)}
	now := int64(synthEpoch)
	begin := func(w *worker) flowtable.Index {
		now += 2 * 1e6
		k := [1]flowtable.Key{{Src: packet.Addr{Lo: uint64(now)}, Dst: bob, DestQP: 200, Port: uint16(now / 1e6 / 2 % 2)}}
		var x [1]flowtable.Ref
		w.StartBurst()
		w.lookup(k[:], now, x[:])
		w.observe(x[0].Index, &k[0], &packet.Parsed{Kind: packet.RoCEv2, Opcode: packet.RCSendOnly, DestQP: 200, PSN: 5, SrcPort: 7}, make([]byte, 64), now)
		return x[0].Index
	}
	for range rounds {
		x := begin(all[0])
		pl, ok := all[0].slotOf(x)
		if !ok {
			t.Fatal("no slot")
		}
		var reads, done atomic.Int64
		var reader sync.WaitGroup
		reader.Add(1)
		go func() {
			defer reader.Done()
			for done.Load() == 0 {
				reads.Add(1)
				if found, ok := all[0].slotOf(x); ok && found != pl {
					t.Errorf("the slot is %+v, want %+v", found, pl)
					return
				}
			}
		}()
		for reads.Load() < 100 { // the reader runs
		}
		pl.Vacate(pl.Ref()) // as if the flow's peer flow began to serve another connection
		for range hosts {
			begin(all[1])
		}
		done.Store(1)
		reader.Wait()
	}
}
