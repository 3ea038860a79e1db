package ratelimit

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/keyhash"
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

// Verdict is the result of Destinations.Allow.
type Verdict uint8

const (
	Allowed Verdict = iota
	Limited         // this destination has reached its limit
	Busy            // there is no slot to count for this destination; others use them all
)

// Destinations holds a Rate's memory for each of many hosts in a table of fixed size: sets of four words, each the tag of a host
// and the host's TAT. A word whose TAT is past is equivalent to an empty one, so any host of the set may use it, and no sweep is
// needed. Two hosts of a set have equal tags with probability 1 in 65,536, and then share one limit, which allows fewer notifications.
// Any number of goroutines may share it. If two add a new destination at the same time, and one of them sees an earlier word become free,
// each may allow one notification.
type Destinations struct {
	sets [][ways]atomic.Uint64
	seed [4]uint64
}

// Size returns the number of bytes that New needs for n destinations at once, or 0 for a number that New refuses. There is a set for each,
// since destinations spread unevenly. Still, 1 in 250 finds no slot while all n have a TAT ahead of the clock.
func Size(n int) int {
	if n < 1 || n > maxDestinations {
		return 0
	}
	return lineSize - 1 + n*setSize
}

// New makes an empty table in mem, which must be zero. It uses the first Size(n) bytes. The memory may be on or off the Go heap. The seed
// keys the hash, so that an attacker can't choose hosts that collide.
func New(mem []byte, n int, seed uint64) (*Destinations, error) {
	need := Size(n)
	if need == 0 {
		return nil, fmt.Errorf("ratelimit: %d destinations: expected 1 to %d", n, maxDestinations)
	}
	if len(mem) < need {
		return nil, fmt.Errorf("ratelimit: %d bytes of memory for %d destinations: expected at least %d", len(mem), n, need)
	}
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(mem))) % lineSize
	d := &Destinations{sets: unsafe.Slice((*[ways]atomic.Uint64)(unsafe.Pointer(&mem[skip])), n)}
	keyhash.Spread(d.seed[:], seed)
	return d, nil
}

// Allow reports whether the limit r allows a notification to a now, and counts it if so. The limit may change between calls.
func (d *Destinations) Allow(r Rate, a packet.Host, now int64) Verdict {
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

// Check is what Allow would return. It counts nothing.
func (d *Destinations) Check(r Rate, a packet.Host, now int64) Verdict {
	if r.Off() {
		return Allowed
	}
	set, tag := d.place(a)
	way, _, ahead := r.choose(set, tag, now*units)
	switch {
	case way == nil:
		return Busy
	case ahead > r.tolerance:
		return Limited
	}
	return Allowed
}

// Refund undoes Allow for a notification to a that was not sent.
func (d *Destinations) Refund(r Rate, a packet.Host) {
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

// Used is the number of destinations whose limits count at a time, and how many there are places for. It reads the whole table.
func (d *Destinations) Used(now int64) (used, size int) {
	for i := range d.sets {
		for n := range d.sets[i] {
			if w := d.sets[i][n].Load(); w != 0 && int64(w-uint64(now*units))<<tagBits > 0 {
				used++
			}
		}
	}
	return used, ways * len(d.sets)
}

// place returns a host's set, and its tag in the upper 16 bits.
func (d *Destinations) place(a packet.Host) (*[ways]atomic.Uint64, uint64) {
	h := keyhash.Fold(keyhash.Fold(a.Hi^d.seed[0], a.Lo^d.seed[1])^d.seed[2], uint64(a.Scope)^d.seed[3])
	set, _ := bits.Mul64(h, uint64(len(d.sets)))
	return &d.sets[set], h << tatBits
}

// choose finds the word with this tag, or one whose TAT is past; nil if there is neither. ahead is the time by which the destination's TAT
// is ahead of the clock.
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
