package store

import (
	"math"
	"sync/atomic"
)

const (
	searchSlots = 32                 // slots that a search looks at
	golden      = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio: its multiples spread evenly
	longAlone   = 1000               // ms without a peer flow, after which a flow makes way for one whose source has as many flows
	searchPause = 1e6                // ns between two searches that find nothing: otherwise each of many flows would search all the time
	swapPause   = 200e3              // ns after one that made no large difference between two sources smaller
	smallShare  = 16                 // flows of a source, counted as exactly as sources are, that are no large difference
)

// sources counts the flows that have a slot and were never paired, by the hash of their source. Each source has a count in both rows, which it
// shares with others; the lower one is nearer to the truth.
type sources [2][]atomic.Uint32

func (c *sources) of(source uint64) (first, second *atomic.Uint32) {
	n := uint64(len(c[0]))
	return &c[0][source>>32*n>>32], &c[1][source&(1<<32-1)*n>>32]
}

func (c *sources) count(source uint64) uint32 {
	first, second := c.of(source)
	return min(first.Load(), second.Load())
}

func (c *sources) add(source uint64, n uint32) {
	first, second := c.of(source)
	first.Add(n)
	second.Add(n)
}

// newcomer counts the slot's flow for its source, as it has no peer flow yet.
func (s *Slot) newcomer(source uint64, now int64) {
	s.p.began = uint32(now / 1e6)
	s.known()
	s.s.unpaired.add(source, 1)
	s.p.counted.Store(source)
}

// known ends the count of the slot's flow, because it has a peer flow, or has ended. If another flow gets the slot at this moment, that one may be
// no longer counted in its place.
func (v *View) known() {
	if source := v.p.counted.Swap(0); source != 0 {
		v.s.unpaired.add(source, ^uint32(0))
	}
}

// pause prevents searches that would find nothing: those for sources with as many flows as the last one, or more.
type pause struct {
	until int64 // ns
	flows uint32
}

// Full reports whether there is no slot for another flow of a source, or no group, as far as the last searches for one tell, under Store.Lock.
func (s *Store) Full(source uint64, group bool, now int64) bool {
	full := s.lack(group)
	return now < full.until && s.unpaired.count(source) >= full.flows
}

// lack is the pause of searches for a slot, or for a group.
func (s *Store) lack(group bool) *pause {
	if group {
		return &s.noGroup
	}
	return &s.noSlot
}

// Reclaim takes back empty slots, under Store.Lock, when a flow of a source gets none, or no group. It looks at a few slots, which lie far apart: near each
// other are often those of one kind of flows. again: there is one now, or will be after an eviction. If it finds no empty one it returns the slot of a flow to be evicted: one that has ended, or the one that has no peer flow and whose
// source has most such flows, if these are more than those of the given source. Then the caller has the lock of the victim's group, has to empty the
// slot, and to call Evicted. Where that only makes the victim's source the one with fewer, it pauses, too: of more flows than there are slots, those of
// sources with as many flows would otherwise evict each other with every packet.
//
// What it reads of each slot is in no cache. So it reads all of them before it judges any: the processor waits for many at a time.
func (s *Store) Reclaim(source uint64, group bool, now int64, ended func(Ref) bool) (victim Slot, found, again bool) {
	own, full := s.unpaired.count(source), s.lack(group)
	most := own
	*full = pause{now + searchPause, own}
	var sample [searchSlots]Slot
	var burdens [searchSlots]uint32
	n := min(searchSlots, s.usedSlots)
	for i := range sample[:n] {
		s.searched += golden
		sample[i] = s.At(1 + uint32(s.searched>>32*uint64(s.usedSlots)>>32))
	}
	for i := range sample[:n] {
		burdens[i] = sample[i].burden(now, ended)
	}
	for i := range sample[:n] {
		slot := s.At(sample[i].x) // again: the same one may be there twice, and in no group by now
		switch g := slot.g; {
		case burdens[i] <= most || g.index == 0:
		case slot.Ref() == 0:
			if g.lock.Try() {
				s.detach(&slot.View)
				g.lock.Release()
			}
			if s.spare(group) {
				*full = pause{}
				return Slot{}, false, true
			}
		case !group || g.attached[0]+g.attached[1] == 1 && g.branches.Load() == 0:
			victim, found, most = slot, true, burdens[i]
		}
	}
	if !found || !victim.g.lock.Try() {
		return Slot{}, false, false
	}
	if victim.burden(now, ended) == 0 {
		victim.g.lock.Release()
		return Slot{}, false, false
	}
	if *full = (pause{}); most <= 2*own+smallShare {
		*full = pause{now + swapPause, own}
	}
	return victim, true, true
}

// burden is the number of flows without a peer flow that the source of the slot's flow has, and one more if the flow has had none for long; 0 if it has
// a peer flow, the maximum if it has ended.
func (v *View) burden(now int64, ended func(Ref) bool) (flows uint32) {
	if ended(v.Ref()) {
		return math.MaxUint32
	}
	if _, paired := v.Peer(); paired {
		return 0
	}
	flows = 1
	if source := v.p.counted.Load(); source != 0 {
		flows = max(v.s.unpaired.count(source), 1)
	}
	if uint32(now/1e6)-v.p.began > longAlone {
		flows++
	}
	return flows
}

// spare reports whether there is an unused slot, with the nodes that may lead to it, or an unused group.
func (s *Store) spare(group bool) bool {
	if group {
		return s.freeGroup != 0
	}
	return (s.freeSlot != 0 || int(s.usedSlots) < len(s.slots)-1) && (s.freeNode != 0 || int(s.usedNodes) < len(s.nodes)-levels)
}

// Evicted takes back a slot that Reclaim has returned, and releases the lock of its group.
func (s *Store) Evicted(victim *Slot) {
	s.detach(&victim.View)
	victim.g.lock.Release()
}
