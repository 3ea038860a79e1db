package dataplane_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"github.com/cnpgate/cnpgate/pairing"
)

// distinct is a policy of which each part shows in what a packet causes: whether it is marked, and in a notification the format, the action's
// parameter, the source address, the DSCP and the sender's QP.
type distinct struct {
	*dataplane.Policy
	kind     packet.Notification
	percent  uint16
	distance uint32 // from the receiver's QP to the sender's
}

// flowsToNotify is how many flows a distinct policy's QP map has, to QP 100 and up.
const flowsToNotify = 60

func newDistinct(t *testing.T, marks bool, d distinct, format packet.Notification, source string, dscp uint8) *distinct {
	t.Helper()
	p := notifying(grant("fd00:18::/32", format))
	p.Ports[wan].Marks = marks
	p.Ports[wan].Thresholds = congestion.Thresholds{KMin: 1, KMax: 2}
	p.Ports[wan].Ladder = []congestion.Rung{{Action: congestion.RateReduce, Percent: d.percent}}
	p.Build.IPv6, p.Build.DSCP = address(source), dscp
	var pairs []pairing.QPPair
	for n := range uint32(flowsToNotify) {
		pairs = append(pairs, pairing.QPPair{Source: address(sender6), Destination: address(receiver6), SourceQP: 100 + n + d.distance, DestinationQP: 100 + n})
	}
	var err error
	if p.QPMap, err = pairing.NewQPMap(pairs, 1); err != nil {
		t.Fatal(err)
	}
	d.Policy = p
	return &d
}

// TestNoMixOfPolicies: while another goroutine goes from one policy to the other and back, each packet is handled by one of them in every respect.
func TestNoMixOfPolicies(t *testing.T) {
	policies := [2]*distinct{
		newDistinct(t, true, distinct{kind: packet.ExtendedCNP, percent: 30, distance: 10_000}, packet.LongHaulCNP, "2001:db8::a", 5),
		newDistinct(t, false, distinct{kind: packet.LongHaulCNPICMPv6, percent: 60, distance: 20_000}, packet.LongHaulCNPICMPv6, "2001:db8::b", 6),
	}
	const atLeast, atMost = 50 - 40*effort.Race, 100
	var handled [2]int
	for scenes := 0; scenes < atLeast || scenes < atMost && min(handled[0], handled[1]) == 0; scenes++ {
		s := newScene(t, policies[0].Policy, func(s *testkit.Setup) { s.Static = nil })
		marked := s.whileReplaced(policies)
		for i, n := range s.finish() {
			kind, parsed := kindOf(n)
			by := policies[1]
			if marked[i] {
				by = policies[0]
			}
			handled[boolean(!marked[i])]++
			d := decoded(t, n)
			if kind != by.kind || parsed.Src != by.Build.IPv6 || parsed.DSCP != by.Build.DSCP || d.LongHaul.Parameter != by.percent ||
				d.LongHaul.SourceQP != 100+uint32(i)+by.distance {
				t.Fatalf("packet %d, marked %v: %v from %v, DSCP %d, %d percent, source QP %d", i, marked[i], kind, parsed.Src.Netip(), parsed.DSCP,
					d.LongHaul.Parameter, d.LongHaul.SourceQP)
			}
		}
	}
	t.Logf("%d packets handled by one policy, %d by the other", handled[0], handled[1])
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// whileReplaced has a packet of each flow arrive, while the policies replace each other all the time. It returns which packets were marked.
func (s *scene) whileReplaced(policies [2]*distinct) (marked []bool) {
	s.t.Helper()
	var done atomic.Bool
	var replacing sync.WaitGroup
	replacing.Go(func() {
		for i := 0; !done.Load(); i++ {
			if err := s.Plane.SetPolicy(policies[i%2].Policy); err != nil {
				s.t.Error(err)
			}
		}
	})
	before := s.Count(wan, counters.ECNMarked)
	for n := range uint32(flowsToNotify) {
		s.arrive(data(true, n).Frame())
		now := s.Count(wan, counters.ECNMarked)
		marked = append(marked, now > before)
		before = now
		s.Advance(9 * ms) // the packet is on the line, and the queue empty
		s.Settle()
	}
	done.Store(true)
	replacing.Wait()
	return marked
}
