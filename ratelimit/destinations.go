package ratelimit

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/packet"
)

const (
	ways            = 4
	setSize         = ways * 8
	lineSize        = 64
	maxDestinations = 1 << 26

	tagBits = 16
	tatBits = 64 - tagBits
	tatMask = 1<<tatBits - 1
)

// Verdict is the answer of Destinations.Allow.
type Verdict uint8

const (
	Allowed Verdict = iota
	Limited         // this destination has had its share
	Busy            // there is no room to count for this destination; others hold all its places
)

// Destinations holds a Rate's memory for each of many addresses in a table of fixed size: sets of four words, each the tag of an
// address and the address's TAT. A word whose TAT is past says nothing that an empty one doesn't, so any address of the set may
// take it over, and nothing needs to be swept. Two addresses of a set agree in their tags once in 65,536 times and then share one
// limit, which errs on the side of fewer notifications. Any number of goroutines may share it; if two meet a new destination at
// one instant, and one of them sees a place in front become free, each may let one notification pass.
type Destinations struct {
	sets [][ways]atomic.Uint64
	seed [3]uint64
}

// Size is the number of octets New needs to count for n destinations at once, or 0 for a number that New refuses. There is a set
// for each: destinations spread unevenly, and even so 1 in 250 finds no place while all n have a TAT ahead of the clock.
func Size(n int) int {
	if n < 1 || n > maxDestinations {
		return 0
	}
	return lineSize - 1 + n*setSize
}

// New makes an empty table in mem, which must be zero and of which it keeps the first Size(n) octets. The memory may lie on or off the Go heap.
// The seed keys the hash, so that nobody outside can choose addresses that collide.
func New(mem []byte, n int, seed uint64) (*Destinations, error) {
	need := Size(n)
	if need == 0 {
		return nil, fmt.Errorf("ratelimit: %d destinations: expected 1 to %d", n, maxDestinations)
	}
	if len(mem) < need {
		return nil, fmt.Errorf("ratelimit: %d octets of memory for %d destinations: expected at least %d", len(mem), n, need)
	}
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(mem))) % lineSize
	d := &Destinations{sets: unsafe.Slice((*[ways]atomic.Uint64)(unsafe.Pointer(&mem[skip])), n)}
	for i := range d.seed {
		seed += 0x9e3779b97f4a7c15
		d.seed[i] = fold(seed, 0xbf58476d1ce4e5b9^seed)
	}
	return d, nil
}

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// place is an address's set, and its tag in the upper 16 bits.
func (d *Destinations) place(a packet.Addr) (*[ways]atomic.Uint64, uint64) {
	h := fold(fold(a.Hi^d.seed[0], a.Lo^d.seed[1])^d.seed[2], 0x94d049bb133111eb)
	set, _ := bits.Mul64(h, uint64(len(d.sets)))
	return &d.sets[set], h << tatBits
}

// Allow tells whether a notification may go to a now under the limit r, and counts it if so. The limit may change between calls.
func (d *Destinations) Allow(r Rate, a packet.Addr, now int64) Verdict {
	if r.Off() {
		return Allowed
	}
	set, tag := d.place(a)
	now *= units
	for range maxTries {
		way, was, ahead := r.choose(set, tag, now)
		if way == nil {
			return Busy
		}
		if ahead > r.tolerance {
			return Limited
		}
		if way.CompareAndSwap(was, tag|uint64(now+ahead+r.gap)&tatMask) {
			return Allowed
		}
	}
	return Limited
}

// choose finds the word with this tag, or else one whose TAT is past; nil if there is neither. ahead is how far the destination's
// TAT lies ahead of the clock.
func (r Rate) choose(set *[ways]atomic.Uint64, tag uint64, now int64) (way *atomic.Uint64, was uint64, ahead int64) {
	for i := range set {
		w := set[i].Load()
		left := int64(0)
		if w != 0 {
			left = r.ahead(int64(w-uint64(now)) << tagBits >> tagBits)
		}
		if w&^tatMask == tag {
			return &set[i], w, left
		}
		if left == 0 && way == nil {
			way, was = &set[i], w
		}
	}
	return way, was, 0
}

// Refund takes back a notification to a that Allow has counted and that was not sent.
func (d *Destinations) Refund(r Rate, a packet.Addr) {
	if r.Off() {
		return
	}
	set, tag := d.place(a)
	for i := range set {
		for range maxTries {
			w := set[i].Load()
			if w&^tatMask != tag {
				break
			}
			if set[i].CompareAndSwap(w, tag|(w-uint64(r.gap))&tatMask) {
				return
			}
		}
	}
}
