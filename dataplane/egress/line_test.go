package egress

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"pgregory.net/rapid"
)

// start is one take of a worker: at a time (ns), so many octets on the line.
type start struct {
	at     int64
	octets uint64
}

// excess is the most time (ns) by which the octets of any window take longer at the rate than the window is.
func excess(starts []start, rate uint64) float64 {
	most, before, least := 0.0, 0.0, 0.0 // least: of the cost up to a start less its time
	for i, s := range starts {
		at := float64(s.at - starts[0].at)
		if behind := before - at; i == 0 || behind < least {
			least = behind
		}
		before += float64(s.octets) * 8e9 / float64(rate)
		most = max(most, before-at-least)
	}
	return most
}

func octetsOf(frames []burst.Frame) (n uint64) {
	for _, f := range frames {
		n += uint64(f.Len) + LineOverhead
	}
	return n
}

// crowd is some workers in front of one line, each with endless frames.
type crowd struct {
	line      *Line
	frames    []burst.Frame
	next      []int64 // by worker: when it comes again
	fraction  []uint64
	starts    []start
	refuse    func(n int) int // how many of n frames the device leaves
	place     int
	backlogs  []bool
	maxFrames int
}

// floorOf is the time from which on frames may start that have waited for the line, or that find it idle.
func floorOf(now int64, waited bool) int64 {
	if waited {
		return now - maxLateness
	}
	return now
}

// run lets the workers come after the steps that step gives them, until the time has come, each taking what may start.
func (c *crowd) run(now, until int64, step func() int64) {
	for now < until {
		w := 0
		for i := range c.next {
			if c.next[i] < c.next[w] {
				w = i
			}
		}
		now = c.next[w]
		n := min(c.maxFrames, len(c.frames)-c.place)
		n = c.line.take(now, floorOf(now, c.backlogs[w]), c.frames[c.place:c.place+n], Bytes(c.frames[c.place:c.place+n]), &c.fraction[w])
		c.backlogs[w] = true
		if n > 0 {
			left := 0
			if c.refuse != nil {
				left = c.refuse(n)
				c.line.giveBack(c.frames[c.place+n-left:c.place+n], &c.fraction[w])
			}
			if n > left {
				c.starts = append(c.starts, start{now, octetsOf(c.frames[c.place : c.place+n-left])})
			}
			c.place = (c.place + n - left) % (len(c.frames) - c.maxFrames)
		}
		c.next[w] = now + step()
	}
}

func newCrowd(rate uint64, workers int, frames []burst.Frame, now int64) *crowd {
	c := &crowd{line: NewLine(rate), frames: frames, fraction: make([]uint64, workers), backlogs: make([]bool, workers), maxFrames: len(frames) / 2}
	for i := range workers {
		c.next = append(c.next, now+int64(i))
	}
	return c
}

var lineRates = []uint64{100_000, 1_000_000, 10_000_000, 1_000_000_000, 10_000_000_000, 100_000_000_000, 400_000_000_000}

// TestLineNeverFaster: whatever the workers' steps, frames and refusals, no window has more octets than the rate allows in it,
// one frame and what a late worker may make up for.
func TestLineNeverFaster(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.OneOf(rapid.SampledFrom(lineRates), rapid.Uint64Range(100_000, 400_000_000_000)).Draw(t, "rate")
		largest := rapid.Uint32Range(60, 9018).Draw(t, "largest")
		slowest := rapid.Int64Range(1_000, 20_000_000).Draw(t, "slowest step")
		workers := rapid.IntRange(1, 4).Draw(t, "workers")
		refusing := rapid.Bool().Draw(t, "refusing")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		frames := make([]burst.Frame, 2*64)
		for i := range frames {
			frames[i].Len = 60 + random.Uint32N(largest-60+1)
		}
		c := newCrowd(rate, workers, frames, 5e9)
		if refusing {
			c.refuse = func(n int) int { return random.IntN(n + 1) }
		}
		c.run(5e9, 5e9+200*slowest, func() int64 { return 1 + random.Int64N(slowest) })
		oneFrame := float64(largest+LineOverhead) * 8e9 / float64(rate)
		// A word of fixed point may be 2^-32 ns an octet short; a nanosecond a worker may be on its way in fractions.
		slack := float64(workers) + 1 + 1e-7*float64(200*slowest)
		if got, most := excess(c.starts, rate), oneFrame+maxLateness+slack; got > most {
			t.Fatalf("octets of %f ns too much, expected at most %f", got, most)
		}
	})
}

// lineTime is how many nanoseconds TestLineHoldsRate simulates of a line of 10 Gbit/s or more.
const lineTime = 50_000_000*effort.Short + 50_000_000*effort.Race + 1_000_000_000*effort.Long

// TestLineHoldsRate: over a second, a line with frames always waiting carries its rate within a hundredth, and not more but for
// the time that the slowest step is long, although the workers come when they come.
func TestLineHoldsRate(t *testing.T) {
	for _, rate := range lineRates {
		second := int64(1e9)
		if rate >= 10e9 {
			second = lineTime
		}
		for _, workers := range []int{1, 3} {
			for _, late := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d bit/s, %d workers, late %v", rate, workers, late), func(t *testing.T) {
					random := rand.New(rand.NewPCG(rate, uint64(workers)))
					sizes := []uint32{60, 60, 594, 1514, 1514}
					if rate > 10e9 {
						sizes = []uint32{4096, 9018}
					} else if rate < 1e6 {
						sizes = []uint32{60, 200}
					}
					// Twice what may start at once after the slowest step: more would only be added up.
					once := int(2*maxLateness*float64(rate)/8e9) / int(sizes[0])
					frames := make([]burst.Frame, min(1<<17, 2*max(64, once)))
					for i := range frames {
						frames[i].Len = sizes[random.IntN(len(sizes))]
					}
					slowest := int64(200_000)
					step := func() int64 {
						if late && random.IntN(200) == 0 {
							slowest = maxLateness
							return 200_000 + random.Int64N(maxLateness-200_000)
						}
						return 1_000 + random.Int64N(199_001)
					}
					c := newCrowd(rate, workers, frames, second)
					c.run(second, 2*second, step)
					octets := uint64(0)
					for _, s := range c.starts {
						octets += s.octets
					}
					got, last := float64(octets)*8, float64(c.frames[0].Len+9018)*8
					if want := float64(rate) * float64(second) / 1e9; got < 0.99*want-last {
						t.Errorf("%.0f bits, expected at least 99 in 100 of %.0f", got, want)
					}
					oneFrame := float64(9018+LineOverhead) * 8e9 / float64(rate)
					if got, most := excess(c.starts, rate), oneFrame+float64(slowest)+100; got > most {
						t.Errorf("octets of %.0f ns too much in some window, expected at most %.0f", got, most)
					}
				})
			}
		}
	}
}

// TestLineSavesNothing: however long it was idle, one frame starts.
func TestLineSavesNothing(t *testing.T) {
	for _, rate := range lineRates {
		l, fraction := NewLine(rate), uint64(0)
		frames := make([]burst.Frame, 64)
		for i := range frames {
			frames[i].Len = 60
		}
		now := int64(1)
		for _, idle := range []int64{0, 1_000, maxLateness, 3_600e9} {
			now = max(now, l.free.Load()) + idle
			if n := l.take(now, now, frames, Bytes(frames), &fraction); n != 1 {
				t.Errorf("%d bit/s: %d frames start after %d ns without any, expected 1", rate, n, idle)
			}
			if !l.Busy(now) || l.take(now, now-maxLateness, frames, Bytes(frames), &fraction) != 0 {
				t.Errorf("%d bit/s: the line is free while a frame is on it", rate)
			}
		}
	}
}

// TestLineGiveBack: frames that the device refused leave the line as if they had never been offered, to the fraction.
func TestLineGiveBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.OneOf(rapid.SampledFrom(lineRates), rapid.Uint64Range(100_000, 400_000_000_000)).Draw(t, "rate")
		asked, never := NewLine(rate), NewLine(rate)
		var fractions [2]uint64
		now := int64(1e9)
		t.Repeat(map[string]func(*rapid.T){
			"take and give back": func(t *rapid.T) {
				now += rapid.Int64Range(0, 2*maxLateness).Draw(t, "step")
				frames := make([]burst.Frame, rapid.IntRange(1, 64).Draw(t, "frames"))
				for i := range frames {
					frames[i].Len = rapid.Uint32Range(60, 9018).Draw(t, "octets")
				}
				backlogged := rapid.Bool().Draw(t, "backlogged")
				n := asked.take(now, floorOf(now, backlogged), frames, Bytes(frames), &fractions[0])
				taken := rapid.IntRange(0, n).Draw(t, "taken")
				if n > 0 && taken == 0 {
					taken = 1 // an idle line's clock starts with the first frame
				}
				asked.giveBack(frames[taken:n], &fractions[0])
				if m := never.take(now, floorOf(now, backlogged), frames[:taken], Bytes(frames[:taken]), &fractions[1]); m != taken {
					t.Fatalf("took %d frames of %d, which started on the other line", m, taken)
				}
			},
			"": func(t *rapid.T) {
				if a, b := asked.free.Load(), never.free.Load(); a != b || fractions[0] != fractions[1] {
					t.Fatalf("free at %d ns + %d, expected %d + %d", a, fractions[0], b, fractions[1])
				}
			},
		})
	})
}

// TestBookAtOnce: a burst that is booked at once takes the line for as long as its frames one by one, to the last part of a nanosecond.
func TestBookAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := NewLine(rapid.Uint64Range(100_000, 1e12).Draw(t, "rate"))
		frames := make([]burst.Frame, rapid.IntRange(1, burst.TxBursts*burst.MaxSize).Draw(t, "frames"))
		for i := range frames {
			frames[i].Len = rapid.Uint32Range(0, 70_000).Draw(t, "octets")
		}
		free, fraction := rapid.Int64Range(0, 1e9).Draw(t, "free"), rapid.Uint64Range(0, 1<<32-1).Draw(t, "fraction")
		now := free + rapid.SampledFrom([]int64{-1, 0, 1, 100, 10_000, 1e6, 1e9, 1e15}).Draw(t, "since")
		a, restA, n := l.book(now, free, fraction, frames, octetsOf(frames))
		b, restB, m := l.book(now, free, fraction, frames, 0)
		if a != b || restA != restB || n != m {
			t.Fatalf("at once %d frames until %d and %d parts, one by one %d until %d and %d", n, a, restA, m, b, restB)
		}
	})
}
