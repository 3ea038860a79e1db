package dataplane_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// maxMin is the rate that each may have of a line if the rest of it is divided equally among those that offer more.
func maxMin(line float64, members []member) float64 {
	low, high := 0.0, line
	for range 60 {
		sum, share := 0.0, (low+high)/2
		for i := range members {
			own := members[i].own()
			sum += min(own, share) + members[i].rate - own
		}
		if sum < line {
			low = share
		} else {
			high = share
		}
	}
	return low
}

// own is the rate that a member offers with its own address.
func (m *member) own() float64 {
	if m.spoofs {
		return m.rate * 7 / 8
	}
	return m.rate
}

// drawCrowd draws senders that together offer more than the line takes, and the fair share of each.
func drawCrowd(t testkit.T, r *rand.Rand, most float64) (c *crowd, share float64) {
	n := int(math.Exp(r.Float64() * math.Log(most)))
	members, offered := make([]member, n), 0.0
	mostQPs := math.Log(float64(min(max(20_000/n, 1), 1000)))
	obeying, spread := float64(r.IntN(3))/2, 1.5*r.Float64()
	for i := range members {
		m := &members[i]
		m.rate = math.Exp(r.NormFloat64() * spread)
		offered += m.rate
		m.qps = int(math.Exp(r.Float64() * mostQPs))
		m.size = 256 + r.IntN(3840)
		m.obeys = r.Float64() < obeying
		switch r.IntN(6) {
		case 0:
			m.spoofs = true
		case 1:
			if n < 30 { // the flow table has them all
				m.qps = 0
			}
		}
	}
	line := offered / (1.1 + 2*r.Float64())
	share = maxMin(line, members)
	packets := math.Exp(r.Float64()*math.Log(10)) * 10 // of 4 KB, that the fair share is in 1 ms
	scale := packets * 4096 / 1e6 / share
	workers := 1 + r.IntN(2)
	for i := range members {
		members[i].rate *= scale
		if r.IntN(4) == 0 {
			members[i].together = 1 + r.IntN(int(packets)/10/workers+1) // at most 100 us of the share at a worker
		}
	}
	line *= scale
	return newCrowd(t, workers, line, int(2e6*line), int(2e6*line/512), members...), share * scale
}

// TestFairBetweenSenders: of drawn senders, none below 0.45 of its fair share is asked, and within 2 ms from when the queue is longer than it should be, each one above 1.25 of
// its fair share is, if the queue stays so long. Between that, F is lower than the fair share to drain the queue, and the rate of a few packets is uncertain.
func TestFairBetweenSenders(t *testing.T) {
	wrong := 0
	for seed := range uint64(fairDraws) {
		if !isFair(t, seed) {
			wrong++
		}
	}
	if wrong > fairWrong {
		t.Errorf("%d of %d crowds, expected at most %d", wrong, fairDraws, fairWrong)
	}
}

// isFair logs what is wrong about a crowd.
func isFair(t *testing.T, seed uint64) (fair bool) {
	fair = true
	const (
		step    = 10_000     // ns
		most    = 20_000_000 // ns until the queue is long
		respond = 2_000_000  // ns
		least   = 0.45       // of the fair share
		above   = 1.25       // the same
	)
	c, share := drawCrowd(t, rand.New(rand.NewPCG(seed, 1)), fairSenders)
	reference := congestion.NewLaw(uint64(8e9*c.line), uint64(c.capacity), 0).Reference
	began, long := c.Now, int64(0)
	var before []int // packets that each had sent when the queue was long
	for c.Now-began < most && (long == 0 || c.Now-long < respond) {
		c.run(step)
		isLong := float64(c.Plane.Port(wan).Depth[0]) > reference
		if isLong && long == 0 {
			long = c.Now
			for i := range c.members {
				before = append(before, c.members[i].sent)
			}
		} else if !isLong && long != 0 {
			break // they have obeyed
		}
	}
	for i, m := range c.members {
		if m.rate < least*share && m.asked > 0 {
			fair = false
			t.Logf("draw %d, %d workers: sender %d with %.2f of its fair share was asked %d times: %d QPs, bursts of %d packets of %d bytes", seed, len(c.Backends), i, m.rate/share, m.asked, m.qps, m.together, m.size)
		}
	}
	if long != 0 && c.Now-long >= respond {
		came := slices.Clone(c.members)
		for i := range came {
			came[i].rate = float64((came[i].sent-before[i])*(came[i].size+24)) / float64(c.Now-long)
		}
		share = maxMin(c.line, came)
		for i, m := range came {
			if m.own() > above*share && m.asked == 0 {
				fair = false
				t.Logf("draw %d, %d workers: sender %d with %.2f of its fair share was not asked: %d QPs, bursts of %d packets of %d bytes", seed, len(c.Backends), i, m.own()/share, m.qps, m.together, m.size)
			}
		}
	}
	c.Drain()
	c.Close(t)
	return fair
}
