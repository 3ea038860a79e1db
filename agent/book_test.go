package agent

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/fleet"
)

var epoch = time.Unix(1_700_000_000, 0)

// receiver is a gateway that takes messages, and forgets hints by their lifetime.
type receiver map[fleet.Hint]time.Time

func (r receiver) take(m *fleet.HintMessage, now time.Time) {
	for _, h := range m.Withdrawn {
		delete(r, h)
	}
	for _, h := range m.Hints {
		r[h] = now.Add(time.Duration(m.Lifetime) * time.Millisecond)
	}
}

func (r receiver) forget(now time.Time) {
	maps.DeleteFunc(r, func(_ fleet.Hint, dies time.Time) bool { return !now.Before(dies) })
}

// TestBookKeepsGatewaysRight: whatever hints come and go, while nothing is lost a gateway has exactly the host's hints after each look at the
// kernel; and whatever was lost, again once nothing has been lost for a lifetime.
func TestBookKeepsGatewaysRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const tick, lifetime = 250 * time.Millisecond, 4 * time.Second
		b := NewBook(epoch, lifetime, func() float64 { return rapid.Float64Range(0, 0.999).Draw(t, "random") })
		now, gateway, host := epoch, receiver{}, map[fleet.Hint]bool{}
		var lossless time.Duration // for how long nothing was lost
		lossless = lifetime
		for range rapid.IntRange(1, 80).Draw(t, "looks") {
			h := hint("10.0.0.1", rapid.Uint32Range(17, 22).Draw(t, "QP"), "", 5)
			switch rapid.IntRange(0, 3).Draw(t, "change") {
			case 0:
				host[h] = true
			case 1:
				delete(host, h)
			}
			b.Set(slices.Collect(maps.Keys(host)))
			lost := rapid.IntRange(0, 9).Draw(t, "lost") == 0 // the agent doesn't see it
			if lost {
				lossless = 0
			}
			fails := rapid.IntRange(0, 9).Draw(t, "fails") == 0 // the agent sees it
			if fails {
				lossless = 0
			}
			for _, m := range b.Next(now) {
				switch {
				case fails:
					b.Failed(&m)
					continue
				case !lost:
					gateway.take(&m, now)
				}
				b.Sent(&m, now)
			}
			if lossless >= lifetime && !maps.EqualFunc(gateway, host, func(time.Time, bool) bool { return true }) {
				t.Fatalf("the gateway has %v, the host %v", gateway, host)
			}
			now, lossless = now.Add(tick), lossless+tick
			gateway.forget(now)
		}
	})
}

// TestBookRate: hints are repeated at most Rate times a second, if need be with a longer lifetime; but each before it dies, and not all together.
func TestBookRate(t *testing.T) {
	const tick = 250 * time.Millisecond
	for _, n := range []uint32{1, 100, 5000} {
		x := uint64(1)
		random := func() float64 { x = x*6364136223846793005 + 1442695040888963407; return float64(x>>11) / (1 << 53) }
		b := NewBook(epoch, 4*time.Second, random)
		var hints []fleet.Hint
		for i := range n {
			hints = append(hints, hint("10.0.0.1", 2+i, "", 2+i))
		}
		b.Set(hints)
		gateway, now, total := receiver{}, epoch, 0
		most, last := 0, b.Lifetime()*3
		warm := b.Lifetime()
		for t0 := now; now.Sub(t0) < last; now = now.Add(tick) {
			sent := 0
			for _, m := range b.Next(now) {
				if k := len(m.Hints) + len(m.Withdrawn); k > fleet.MaxHintsAMessage {
					t.Fatalf("a message of %d hints", k)
				}
				gateway.take(&m, now)
				b.Sent(&m, now)
				sent += len(m.Hints)
			}
			if now.Sub(t0)%time.Second == 0 {
				gateway.forget(now)
			}
			if now.Sub(t0) > warm {
				if total += sent; len(gateway) != int(n) {
					t.Fatalf("%d hints: the gateway has %d after %v", n, len(gateway), now.Sub(t0))
				}
				most = max(most, sent)
			}
		}
		rate := float64(total) / (last - warm).Seconds()
		t.Logf("%d hints: lifetime %v, %.0f repeated a second, at most %d at once", n, b.Lifetime(), rate, most)
		if rate > 1.4*Rate || rate > float64(n) {
			t.Errorf("%d hints: %.0f are repeated a second", n, rate)
		}
	}
}

// TestBookOrder: withdrawals and new hints come before those that are repeated, whatever waits.
func TestBookOrder(t *testing.T) {
	b := NewBook(epoch, time.Second, func() float64 { return 0 })
	var hints []fleet.Hint
	for i := range uint32(3 * MessagesAtOnce * fleet.MaxHintsAMessage) {
		hints = append(hints, hint("10.0.0.1", 2+i, "", 2+i))
	}
	b.Set(hints)
	for range 3 {
		for _, m := range b.Next(epoch) {
			b.Sent(&m, epoch)
		}
	}
	b.Repeat()
	added := hint("10.0.0.1", 1_000_000, "10.0.0.2", 7)
	if a, w := b.Set(append(hints[1:], added)); a != 1 || w != 1 {
		t.Errorf("%d added, %d withdrawn", a, w)
	}
	all := b.Next(epoch)
	if len(all) != MessagesAtOnce || !slices.Equal(all[0].Withdrawn, hints[:1]) || !slices.Contains(all[1].Hints, added) {
		t.Errorf("%d messages, the first ones are of %d and %d hints", len(all), len(all[0].Withdrawn), len(all[1].Hints))
	}
	b.Lost()
	if all := b.Next(epoch); len(all[0].Withdrawn) != 0 {
		t.Error("a withdrawal that was given up is still there")
	}
}
