package pairing

import (
	"sync"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/effort"
)

// The scenes, one in so many, and those of two boxes; how often each runs; how many pairs are to be confirmed. In the default run, every 24th has some of each kind of traffic, with those of the table of docs/qp-rules.md.
const (
	eachScene     = 24*effort.Short + 24*effort.Race + effort.Long
	eachPeerScene = 48*effort.Short + 48*effort.Race + effort.Long
	runsAScene    = effort.Short + effort.Race + 4*effort.Long
	leastPairs    = 4_000*effort.Short + 4_000*effort.Race + 300_000*effort.Long
)

// TestNeverWrong runs every scene, and compares the source QP of each packet's flow with the truth.
func TestNeverWrong(t *testing.T) {
	all := scenes()
	total, adding, scores := &score{}, sync.Mutex{}, map[string]*score{}
	t.Run("scenes", func(t *testing.T) {
		for n := range all {
			if (n+n/12)%eachScene != 0 { // 12 kinds of traffic come with several losses: not the same ones with each
				continue
			}
			t.Run(all[n].name, func(t *testing.T) {
				t.Parallel()
				s := all[n].run(t)
				adding.Lock()
				defer adding.Unlock()
				total.add(s)
				scores[all[n].name] = s
			})
		}
	})
	if total.confirmed < leastPairs {
		t.Errorf("%d flows confirmed, want at least %d", total.confirmed, leastPairs)
	}
	if effort.Short == 1 {
		onPage(t, scores)
	}
	t.Logf("%v", total)
}

// run runs a scene with several seeds.
func (sc *scene) run(t *testing.T) *score {
	sum := &score{}
	for seed := range uint64(runsAScene) {
		c := sc.config
		c.Seed = seed*1000 + 1
		s := learn(t, c)
		if s.wrong > 0 {
			t.Errorf("seed %d: %v", c.Seed, s)
		}
		sum.add(s)
	}
	t.Log(sum)
	if sum.recall() < sc.recall {
		t.Errorf("%.4f of %d flows confirmed, want %.3f", sum.recall(), sum.flows, sc.recall)
	}
	if sc.forgotten > 0 && sum.forgotten() > sc.forgotten {
		t.Errorf("flows that were confirmed are unknown for %.5f of their time, want at most %.4f", sum.forgotten(), sc.forgotten)
	}
	if sc.missed > 0 && sum.missed() > sc.missed {
		t.Errorf("flows that were confirmed are unknown for %.5f of their packets, want at most %.4f", sum.missed(), sc.missed)
	}
	return sum
}
