// Package store has the slots of flows: what the workers of a gateway know of each other's flows. The flows between two hosts, behind the
// same gateway ports and with the same tags, are a group with two sides, one for each direction. A side has up to 256 slots, in pages of
// eight. The store assigns groups, pages and slots, and gives access to their words. What the words are evidence of, its caller knows.
package store

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
)

const (
	SlotsAPage = 8
	pagesASide = 32
	SlotsASide = SlotsAPage * pagesASide // flows of one direction between two hosts that can be paired
	rowWords   = SlotsASide / 64

	groupSearch = 32  // maximum number of groups checked for an empty one
	searchPause = 1e6 // ns between two searches that find nothing: otherwise each of many flows would search all the time
	maxChain    = 64  // groups with the same hash that a search checks
	MaxBeside   = 64  // groups between the same hosts, in other scopes, that Beside returns
)

// Lock protects data that workers share. A worker never waits for a lock that another worker holds, but continues without it. The evidence
// is lost, or a later packet of the flow brings it again.
type Lock struct{ held atomic.Uint32 }

// Try takes the lock if it is free.
func (l *Lock) Try() bool { return l.held.CompareAndSwap(0, 1) }

// Release frees it.
func (l *Lock) Release() { l.held.Store(0) }

// TrySoon tries up to 1000 times. It is for messages that come only once. No worker holds a lock for longer than some microseconds.
func (l *Lock) TrySoon() bool {
	const tries = 1000
	for range tries {
		if l.Try() {
			return true
		}
	}
	return false
}

// Key has what the two flows of a connection have in common: the hosts, the one of side 0 first, and the scope at the lower one of the two
// gateway ports, which determines the other one.
type Key struct {
	Hosts [2]packet.Addr
	Scope packet.Scope
}

// Hash hashes the key.
func (k *Key) Hash(secret *[6]uint64) uint64 {
	x := keyhash.Fold(k.Hosts[0].Hi^secret[0], k.Hosts[0].Lo^secret[1])
	y := keyhash.Fold(k.Hosts[1].Hi^secret[2], k.Hosts[1].Lo^secret[3])
	return keyhash.Fold(x^uint64(k.Scope)^secret[4], y^secret[5])
}

// hostsHash hashes the key without the VLAN or tunnel.
func (k *Key) hostsHash() uint64 {
	const odd = 0x9e3779b97f4a7c15
	x := keyhash.Fold(k.Hosts[0].Hi^odd, k.Hosts[0].Lo^uint64(k.Scope.Port()))
	return keyhash.Fold(keyhash.Fold(k.Hosts[1].Hi^odd, k.Hosts[1].Lo)^x, odd)
}

// Store has the groups and their slots. Group and page 0 are never used.
type Store struct {
	// Lock is needed for the other fields, to find, make and drop groups, and to assign slots.
	Lock       Lock
	groups     []Group
	heads      []uint32 // groups by hash, linked by Group.next
	hosts      []uint32 // groups by the hash of their hosts, linked by Group.beside
	pages      []Page
	freePage   uint32
	freeGroup  uint32
	usedPages  uint32
	usedGroups uint32
	full       int64  // there was no empty group: no search until then, ns
	hand       uint32 // where the next search for an empty group begins
}

// New makes a store in memory that must be zero: of as many heads of both kinds as groups, and as many slots as fit into the pages.
func New(groups []Group, heads []uint32, pages []Page) *Store {
	half := len(heads) / 2
	return &Store{groups: groups, heads: heads[:half], hosts: heads[half:], pages: pages}
}

// Group holds the flows between two hosts. Side 0 has those with the lower ingress port of the pair.
type Group struct {
	key   Key // under Store.Lock, as hash, next and live; lock is enough to read key and hash while a flow has a slot
	hash  uint64
	next  uint32 // the next group of the same head, or the next free one
	index uint32 // in Store.groups
	// beside are the next and the previous group of the same head of Store.hosts, 0 for none.
	beside [2]uint32
	full   [2]int64 // under Store.Lock: a side had no empty slot; no search until then, ns
	live   bool     // linked, not among the free ones
	// other is the scope of side 1, at the lower gateway port. It differs from the key's, which is side 0's, if the directions have other tags.
	other   atomic.Uint64 // a packet.Scope
	refused bool          // another scope was on side 1, which was wrong
	paths   [2]Path       // of the flows of each side

	// lock is needed to assign slots of the group, and to change the results of comparing its flows.
	lock Lock
	// pages are the slots of each side, 8 a page; 0 for none.
	pages [2][pagesASide]atomic.Uint32
	// used is the number of slots that were ever assigned, from 0 on; flows is the number of flows that have one now.
	used, flows [2]atomic.Int32
}

// Find returns the group with a hash and a key, or nil. With nil as the key the hash is enough.
func (s *Store) Find(k *Key, h uint64) *Group {
	x := s.heads[h%uint64(len(s.heads))]
	for range maxChain {
		if x == 0 {
			break
		}
		if g := &s.groups[x]; g.hash == h && (k == nil || g.key == *k) {
			return g
		}
		x = s.groups[x].next
	}
	return nil
}

// Make returns the group with a hash and a key. If there is none it makes one; if all are in use it takes an empty one. It returns nil if
// none is empty.
func (s *Store) Make(k *Key, h uint64, now int64) *Group {
	if g := s.Find(k, h); g != nil {
		return g
	}
	x := s.freeGroup
	switch {
	case x != 0:
		s.freeGroup = s.groups[x].next
	case int(s.usedGroups) < len(s.groups)-1:
		x = atomic.AddUint32(&s.usedGroups, 1) // Groups reads it without the lock
	case now < s.full:
		return nil
	default:
		if x = s.dropEmpty(nil); x == 0 {
			s.full = now + searchPause
			return nil
		}
	}
	g, head := &s.groups[x], &s.heads[h%uint64(len(s.heads))]
	g.key, g.hash, g.index, g.live = *k, h, x, true
	g.full = [2]int64{}
	for side := range g.used {
		g.used[side].Store(0)
		g.flows[side].Store(0)
	}
	g.next, *head = *head, x
	g.refused = false
	s.linkBeside(g)
	return g
}

func (s *Store) linkBeside(g *Group) {
	head := &s.hosts[g.key.hostsHash()%uint64(len(s.hosts))]
	g.beside = [2]uint32{*head, 0}
	s.groups[*head].beside[1] = g.index // group 0 has no neighbors, so its links are never read
	*head = g.index
}

func (s *Store) unlinkBeside(g *Group) {
	next, previous := g.beside[0], g.beside[1]
	s.groups[next].beside[1] = previous
	if previous != 0 {
		s.groups[previous].beside[0] = next
	} else {
		s.hosts[g.key.hostsHash()%uint64(len(s.hosts))] = next
	}
}

// Beside finds the groups between the hosts of a key, behind the same ports, in other scopes than the key's. all: there are no more.
func (s *Store) Beside(k *Key, to *[MaxBeside]*Group) (n int, all bool) {
	x := s.hosts[k.hostsHash()%uint64(len(s.hosts))]
	for range 2 * MaxBeside {
		if x == 0 {
			return n, true
		}
		g := &s.groups[x]
		x = g.beside[0]
		if g.key.Hosts != k.Hosts || g.key.Scope.Port() != k.Scope.Port() || g.key.Scope == k.Scope {
			continue
		}
		if n == len(to) {
			break
		}
		to[n], n = g, n+1
	}
	return n, false
}

// dropEmpty finds a group whose flows have all ended, frees it and returns it; 0 if there is none. It never frees the group keep.
func (s *Store) dropEmpty(keep *Group) uint32 {
	for range groupSearch {
		s.hand = s.hand%s.usedGroups + 1
		if g := &s.groups[s.hand]; g != keep && g.live && s.drop(s.hand) {
			return s.hand
		}
	}
	return 0
}

// drop unlinks a group and frees its pages, if the group has no flows. It reports whether it did.
func (s *Store) drop(x uint32) bool {
	g := &s.groups[x]
	if !s.ended(g) || !g.lock.Try() {
		return false
	}
	defer g.lock.Release()
	link := &s.heads[g.hash%uint64(len(s.heads))]
	for *link != x {
		link = &s.groups[*link].next
	}
	*link, g.live = g.next, false
	s.unlinkBeside(g)
	for side := range g.pages {
		for i := range g.pages[side] {
			if n := g.pages[side][i].Swap(0); n != 0 {
				s.pages[n].free = s.freePage
				s.freePage = n
			}
		}
	}
	return true
}

func (s *Store) ended(g *Group) bool {
	for side := range g.pages {
		for i := range g.pages[side] {
			x := g.pages[side][i].Load()
			if x == 0 {
				break
			}
			for k := range s.pages[x].words {
				if s.pages[x].words[k].owner.Load() != 0 {
					return false
				}
			}
		}
	}
	return true
}

// newPage assigns a page to a side of a group. If all pages are in use it finds an empty group and frees its pages. It returns 0 if there
// is none.
func (s *Store) newPage(of *Group) uint32 {
	if s.freePage == 0 && int(s.usedPages) < len(s.pages)-1 {
		s.usedPages++
		return s.usedPages
	}
	if s.freePage == 0 {
		if empty := s.dropEmpty(of); empty != 0 {
			s.groups[empty].next, s.freeGroup = s.freeGroup, empty
		}
	}
	n := s.freePage
	if n != 0 {
		s.freePage = s.pages[n].free
	}
	return n
}

// Empty finds a slot for a new flow on a side of a group, and adds a page if necessary. Only if no slot is empty and the side is full, it
// returns the slot of a flow that has ended: the caller has to vacate it. Empty needs the group's lock, too.
func (s *Store) Empty(g *Group, side int, now int64, ended func(Ref) bool) (slot Slot, ok bool) {
	if now < g.full[side] {
		return slot, false
	}
	if slot, ok = s.empty(g, side, ended); !ok {
		g.full[side] = now + searchPause
	}
	return slot, ok
}

func (s *Store) empty(g *Group, side int, ended func(Ref) bool) (slot Slot, ok bool) {
	used := g.Used(side)
	if g.Flows(side) < used { // a used slot is empty again
		if slot, ok = s.first(g, side, func(r Ref) bool { return r == 0 }); ok {
			return slot, true
		}
	}
	if used == SlotsASide {
		return s.first(g, side, ended)
	}
	i := used / SlotsAPage
	if g.pages[side][i].Load() == 0 {
		x := s.newPage(g)
		if x == 0 {
			return slot, false
		}
		g.pages[side][i].Store(x)
	}
	return s.Slot(g, side, used)
}

// first returns the first slot of a side that was ever assigned and whose flow, if any, meets a condition.
func (s *Store) first(g *Group, side int, is func(Ref) bool) (slot Slot, ok bool) {
	for n := range g.Used(side) {
		if slot, ok = s.Slot(g, side, n); ok && is(slot.Ref()) {
			return slot, true
		}
	}
	return Slot{}, false
}

// Groups is the number of groups that were ever in use at a time.
func (s *Store) Groups() int { return int(atomic.LoadUint32(&s.usedGroups)) }

// Group is group n, 1 to Groups().
func (s *Store) Group(n int) *Group { return &s.groups[n] }
