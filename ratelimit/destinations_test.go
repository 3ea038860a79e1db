package ratelimit

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/packet"
)

func newDestinations(t testing.TB, n int) *Destinations {
	t.Helper()
	d, err := New(make([]byte, Size(n)), n, 1)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func addr(n uint64) packet.Host {
	return packet.Host{Addr: packet.Addr{Hi: 0xfd000018 << 32, Lo: n >> 1}, Scope: packet.Scope(n & 1 << 16)}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct{ octets, n int }{{0, 0}, {1000, -1}, {0, 1}, {Size(10) - 1, 10}, {1000, maxDestinations + 1}} {
		if d, err := New(make([]byte, c.octets), c.n, 0); err == nil || d != nil {
			t.Errorf("%d octets for %d destinations: no error", c.octets, c.n)
		}
	}
}

func TestMemoryNeedNotBeAligned(t *testing.T) {
	for skip := range 65 {
		mem := make([]byte, Size(3)+skip+1)
		for i := range mem {
			mem[i] = 0xaa
		}
		clear(mem[skip : skip+Size(3)])
		d, err := New(mem[skip:skip+Size(3)], 3, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i := range uint64(3) {
			if v := d.Allow(PerSecond(1), addr(i), 1); v != Allowed {
				t.Fatalf("skip %d: destination %d: verdict %d", skip, i, v)
			}
		}
		if mem[len(mem)-1] != 0xaa || skip > 0 && mem[skip-1] != 0xaa {
			t.Fatalf("skip %d: wrote outside its memory", skip)
		}
	}
}

// A destination with its own word has the same limit as with its own Rate.
func TestDestinationIsARate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := anyRate(t)
		r := PerSecond(rate)
		d, _ := New(make([]byte, Size(1000)), 1000, rapid.Uint64().Draw(t, "seed"))
		var tat atomic.Int64
		a := packet.Host{Addr: packet.Addr{Hi: rapid.Uint64().Draw(t, "hi"), Lo: rapid.Uint64().Draw(t, "lo")}, Scope: packet.Scope(rapid.Uint64().Draw(t, "scope"))}
		for i, now := range anyTimes(t, rate) {
			want := r.Allow(&tat, now)
			if got := d.Allow(r, a, now); got == Allowed != want || got == Busy {
				t.Fatalf("%d/s: event %d at %d: verdict %d, a rate allows %v", rate, i, now, got, want)
			}
			if want && rapid.Bool().Draw(t, "refund") {
				r.Refund(&tat)
				d.Refund(r, a)
			}
		}
	})
}

// In a small table no destination ever exceeds its rate, whether or not all words are in use.
func TestDestinationsNeverExceed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := anyRate(t)
		r := PerSecond(rate)
		n := rapid.IntRange(1, 3).Draw(t, "size")
		d, _ := New(make([]byte, Size(n)), n, rapid.Uint64().Draw(t, "seed"))
		allowed := map[uint64][]int64{}
		for _, now := range anyTimes(t, rate) {
			a := rapid.Uint64Range(0, 12).Draw(t, "destination")
			if d.Allow(r, addr(a), now) == Allowed {
				allowed[a] = append(allowed[a], now)
			}
		}
		for _, times := range allowed {
			mustKeepLimit(t, rate, times)
		}
	})
}

func TestBusyUntilAPlaceExpires(t *testing.T) {
	d := newDestinations(t, 1) // one set of four
	r := PerSecond(1)
	for i := range uint64(4) {
		if v := d.Allow(r, addr(i), int64(i)*ms); v != Allowed {
			t.Fatalf("destination %d: verdict %d", i, v)
		}
	}
	for _, c := range []struct {
		to   uint64
		now  int64
		want Verdict
	}{
		{4, 4 * ms, Busy}, {3, 4 * ms, Limited}, {4, sec - 1, Busy},
		{4, sec, Allowed}, // destination 0's place
		{0, sec, Busy}, {0, sec + ms, Allowed}, {1, sec + ms, Busy}, {4, 2*sec - 1, Limited},
	} {
		if v := d.Allow(r, addr(c.to), c.now); v != c.want {
			t.Errorf("destination %d at %d ns: verdict %d, want %d", c.to, c.now, v, c.want)
		}
	}
	if v := d.Allow(PerSecond(0), addr(99), 0); v != Allowed {
		t.Errorf("no limit: verdict %d", v)
	}
}

// The 48 bits wrap after 2^44 ns; an old word then counts as past, except for one second in those hours.
func TestDestinationsAcrossWraps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := PerSecond(1)
		d, _ := New(make([]byte, Size(1)), 1, 0)
		wrap := int64(1) << 44
		start := wrap - rapid.Int64Range(0, 2*sec).Draw(t, "before the wrap")
		if v := d.Allow(r, addr(1), start); v != Allowed {
			t.Fatalf("verdict %d", v)
		}
		if v := d.Allow(r, addr(1), start+sec-1); v != Limited {
			t.Fatalf("within a gap: verdict %d", v)
		}
		later := start + sec + rapid.Int64Range(0, wrap-4*sec).Draw(t, "idle")
		if v := d.Allow(r, addr(1), later); v != Allowed {
			t.Fatalf("after %d ns: verdict %d", later-start, v)
		}
		if v := d.Allow(r, addr(1), later); v != Limited {
			t.Fatalf("again: verdict %d", v)
		}
	})
}

// Used counts the destinations whose TAT is ahead of the clock, at any time between two wraps.
func TestUsed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "size")
		d, _ := New(make([]byte, Size(n)), n, rapid.Uint64().Draw(t, "seed"))
		start, allowed := rapid.Int64Range(0, 15).Draw(t, "eighth of a wrap")<<41+rapid.Int64Range(0, sec).Draw(t, "start"), 0
		for i := range rapid.Uint64Range(0, 12).Draw(t, "destinations") {
			if d.Allow(PerSecond(1), addr(i), start) == Allowed {
				allowed++
			}
		}
		for now, want := range map[int64]int{start: allowed, start + sec - 1: allowed, start + sec: 0} {
			if used, size := d.Used(now); used != want || size != ways*n {
				t.Fatalf("%d of %d are used %d ns after the start, want %d of %d", used, size, now-start, want, ways*n)
			}
		}
	})
}

func TestFewAreBusyWhenAllAreActive(t *testing.T) {
	const n = 10000
	d := newDestinations(t, n)
	busy := 0
	for i := range uint64(n) {
		switch d.Allow(PerSecond(1), addr(i), sec) {
		case Busy:
			busy++
		case Limited: // a tag shared with another
			busy++
		}
	}
	t.Logf("%d of %d destinations found no place", busy, n)
	if busy > n/125 {
		t.Fatalf("%d of %d destinations found no place, expected about %d", busy, n, n/250)
	}
}

func TestDestinationsSharedByWorkers(t *testing.T) {
	const destinations, rounds = 16, 1000
	d := newDestinations(t, destinations)
	r := PerSecond(50000) // a burst of 500
	var allowed, seen [destinations]atomic.Int64
	together(func(w int) {
		rng := rand.New(rand.NewPCG(uint64(w), 0))
		for range rounds * destinations {
			i := rng.IntN(destinations)
			seen[i].Add(1)
			if d.Allow(r, addr(uint64(i)), sec) == Allowed {
				allowed[i].Add(1)
			}
		}
	})
	for i := range allowed {
		if n := allowed[i].Load(); n > 500 {
			t.Errorf("destination %d: %d of %d events allowed at one instant, want at most 500", i, n, seen[i].Load())
		}
	}
}

func BenchmarkDestinations(b *testing.B) {
	for _, n := range []int{1 << 10, 1 << 18} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d := newDestinations(b, n)
			r := PerSecond(1000)
			rng := rand.New(rand.NewPCG(1, 2))
			addrs := make([]packet.Host, n)
			for i := range addrs {
				addrs[i] = addr(rng.Uint64())
			}
			now := sec
			for i := 0; b.Loop(); i++ {
				now += 100
				d.Allow(r, addrs[i&(n-1)], now)
			}
			b.ReportMetric(float64(Size(n))/float64(n), "octets/destination")
		})
	}
}
