package dataplane_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/internal/burst/inmem"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
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
	if n > 1000 {
		packets = 10 // memory
	}
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

// fairDraws is how many crowds TestFairBetweenSenders draws, fairSenders how many senders a crowd has at most, but for one in fairLarge: these have up to 10,000.
// In fairWrong of them a bound may be exceeded: that by the fair share of the line, where F is far from it, as thousands of senders begin at once; and those by F,
// where two workers have the packets of a sender by chance: each knows what the other had a window ago (of 10,000 crowds 6 and 2).
const (
	fairDraws   = 50*effort.Short + 50*effort.Race + 10_000*effort.Long
	fairFirst   = 50*effort.Short + 50*effort.Race // so that there is a large one
	fairSenders = 100*effort.Short + 100*effort.Race + 30*effort.Long
	fairLarge   = 100
	fairWrong   = fairDraws / 500 * effort.Long
)

// TestFairBetweenSenders: of drawn senders, none below 0.9 of F is asked, and each one above 1.1 of F is within 2 ms from when the queue is longer than it should be, if the queue
// stays so long. F is a sender's share of what is to arrive now: less than
// the line, while the queue drains, and not known at once. So as parts of a fair share of the line, these bounds are 0.45 and 1.25. In fairWrong of the crowds they may be exceeded.
func TestFairBetweenSenders(t *testing.T) {
	wrong := 0
	for seed := uint64(fairFirst); seed < fairFirst+fairDraws; seed++ {
		most := float64(fairSenders)
		if seed%fairLarge == fairLarge-1 {
			most = 10_000
		}
		if !isFair(t, seed, most) {
			wrong++
		}
	}
	if wrong > fairWrong {
		t.Errorf("%d of %d crowds, expected at most %d", wrong, fairDraws, fairWrong)
	}
}

// isFair draws a crowd of at most so many senders. It logs what is wrong by the fair share of the line.
func isFair(t *testing.T, seed uint64, senders float64) (fair bool) {
	const (
		step    = 10_000     // ns
		most    = 20_000_000 // ns until the queue is long
		respond = 2_000_000  // ns
	)
	c, share := drawCrowd(t, rand.New(rand.NewPCG(seed, 1)), senders)
	describe := func(m *member) string {
		return fmt.Sprintf("draw %d, %d workers, %d senders: one of %d QPs, bursts of %d packets of %d bytes, %.1f packets in 1 ms, asked %d times", seed, len(c.Backends), len(c.members), m.qps, m.together, m.size, m.rate/float64(m.size+24)*1e6, m.asked)
	}
	rate := func() float64 { return float64(c.Plane.Port(wan).Fair[0]) / 8e9 }
	fair = true
	wrong := func(format string, args ...any) {
		fair = false
		t.Logf(format, args...)
	}
	byF := t.Errorf
	if len(c.Backends) > 1 {
		byF = wrong
	}
	var before [3]float64 // F at the last steps' begins: a notification is sent after it is decided
	c.heard = func(m *member, _ inmem.Sent) {
		if f := min(slices.Min(before[:]), rate()); m.rate < 0.9*f {
			byF("%s, at %.2f of F", describe(m), m.rate/f)
		}
	}
	reference := congestion.NewLaw(uint64(8e9*c.line), uint64(c.capacity), 0).Reference
	began, long, highest := c.Now, int64(0), 0.0
	var sent []int // packets that each had sent when the queue was long
	for c.Now-began < most && (long == 0 || c.Now-long < respond) {
		before = [...]float64{before[1], before[2], rate()}
		c.run(step)
		isLong := float64(c.Plane.Port(wan).Depth[0]) > reference
		if isLong && long == 0 {
			long = c.Now
			for i := range c.members {
				sent = append(sent, c.members[i].sent)
			}
		} else if !isLong && long != 0 {
			break // they have obeyed
		}
		if long != 0 {
			highest = max(highest, rate())
		}
	}
	for i := range c.members {
		if m := &c.members[i]; m.rate < 0.45*share && m.asked > 0 {
			wrong("%s, with %.2f of its fair share", describe(m), m.rate/share)
		}
	}
	if long != 0 && c.Now-long >= respond {
		came := slices.Clone(c.members)
		for i := range came {
			came[i].rate = float64((came[i].sent-sent[i])*(came[i].size+24)) / float64(c.Now-long)
		}
		share = maxMin(c.line, came)
		for i := range came {
			m := &came[i]
			if m.asked > 0 {
				continue
			}
			if m.own() > 1.1*highest {
				byF("%s, with %.2f of F", describe(m), m.own()/highest)
			}
			if m.own() > 1.25*share {
				wrong("%s, with %.2f of its fair share", describe(m), m.own()/share)
			}
		}
	}
	c.Drain()
	c.Close(t)
	return fair
}
