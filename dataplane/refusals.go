package dataplane

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// refusalTime is the time in seconds for which a host that doesn't know the Fast CNP option gets no other one.
const refusalTime = 300

// refusals are the hosts that have refused the option recently: a table of fixed size that all workers share. A word is the tag of a host
// and the second in which its refusal ends. Two hosts of a set have equal tags with probability 2^-32; then both get no Fast CNP
// for that time.
type refusals struct {
	last atomic.Int64 // time when all have ended, ns
	sets [refusalSets][refusalWays]atomic.Uint64
	seed [3]uint64
}

const (
	refusalSets = 256
	refusalWays = 4
)

func (r *refusals) place(a packet.Host) (set *[refusalWays]atomic.Uint64, tag uint64) {
	h := keyhash.Fold(keyhash.Fold(a.Hi^r.seed[0], a.Lo^r.seed[1])^r.seed[0], uint64(a.Scope)^r.seed[2])
	return &r.sets[h%refusalSets], h &^ (1<<32 - 1)
}

// refuse records the refusal of a host. In a full set it replaces the refusal that ends first: that host will refuse again.
func (r *refusals) refuse(host packet.Host, now int64) {
	const second = 1e9
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
	first.Store(tag | uint64(uint32(now/second+refusalTime)))
	r.last.Store(max(r.last.Load(), now+refusalTime*second))
}

// has reports whether a host has refused the option recently.
func (r *refusals) has(host packet.Host, now int64) bool {
	return r.last.Load() > now && r.find(host, now)
}

func (r *refusals) find(host packet.Host, now int64) bool {
	const second = 1e9
	set, tag := r.place(host)
	for i := range set {
		if w := set[i].Load(); w&^(1<<32-1) == tag && uint32(w) > uint32(now/second) {
			return true
		}
	}
	return false
}
