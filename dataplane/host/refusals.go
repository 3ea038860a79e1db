package host

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// RefusalTime is the time in ns for which a host that doesn't know the Fast CNP option gets no other one.
const RefusalTime = 300 * second

const second = 1_000_000_000 // ns

// Refusals are the hosts that have refused the option recently: a table of fixed size that all workers share. A word is the tag of a host
// and the second in which its refusal ends. Two hosts of a set have equal tags with probability 2^-32; then both get no Fast CNP
// for that time.
type Refusals struct {
	last atomic.Int64 // time when all have ended, ns
	sets [refusalSets][refusalWays]atomic.Uint64
	seed [3]uint64
}

const (
	refusalSets = 256
	refusalWays = 4
)

func (r *Refusals) place(a packet.Host) (set *[refusalWays]atomic.Uint64, tag uint64) {
	h := keyhash.Fold(keyhash.Fold(a.Hi^r.seed[0], a.Lo^r.seed[1])^r.seed[0], uint64(a.Scope)^r.seed[2])
	return &r.sets[h%refusalSets], h &^ (1<<32 - 1)
}

// Refuse records the refusal of a host. In a full set it replaces the refusal that ends first: that host will refuse again.
func (r *Refusals) Refuse(host packet.Host, now int64) {
	set, tag := r.place(host)
	first := &set[0]
	for i := range set {
		if set[i].Load()&^(1<<32-1) == tag {
			first = &set[i]
			break
		}
		if uint32(set[i].Load()) < uint32(first.Load()) {
			first = &set[i]
		}
	}
	first.Store(tag | uint64(uint32((now+RefusalTime)/second)))
	r.last.Store(max(r.last.Load(), now+RefusalTime))
}

// Has reports whether a host has refused the option recently.
func (r *Refusals) Has(host packet.Host, now int64) bool {
	return r.last.Load() > now && r.find(host, now)
}

func (r *Refusals) find(host packet.Host, now int64) bool {
	set, tag := r.place(host)
	for i := range set {
		if w := set[i].Load(); w&^(1<<32-1) == tag && uint32(w) > uint32(now/second) {
			return true
		}
	}
	return false
}
