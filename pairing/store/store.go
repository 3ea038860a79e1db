// Package store has the slots of flows: what the workers of a gateway know of each other's flows. The flows between two hosts, behind the
// same gateway ports and with the same tags, are a group with two sides, one for each direction. The store assigns groups and slots, and gives
// access to their words. What the words are evidence of, its caller knows.
//
// # Memory
//
// A store is made for a number of flows. It has a slot for each, and a group for every two of them: so as many connections fit if each is
// between another pair of hosts as if they share pairs of hosts. A side with one slot has that slot's number in its group. A side with more
// has a tree of nodes, each with 16 numbers: one level up to 16 slots, two up to SlotsASide. A full group has branches, by UDP source port (branch.go).
//
// A flow that ends leaves its slot empty, for a later flow of its side. If the store needs a slot or a group and has none, it looks at some
// slots, and takes back the empty ones, with their nodes and groups (Reclaim). If that isn't enough, the caller may
// evict one of the flows that it has looked at. The flows that were never paired are counted by their sources. Evicted is the flow of the source
// that has most of them, and only for a flow whose source has fewer. So a source that sends to many addresses, from which nothing returns, makes
// way for the others. A flow that has a peer flow is never evicted.
package store

import (
	"math/bits"
	"sync/atomic"

	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
)

const (
	nodeBits   = 4
	levels     = 2
	SlotsASide = 1 << (nodeBits * levels) // flows of one direction in a group
	rowWords   = SlotsASide / 64

	maxChain  = 64 // groups with the same hash that a search checks
	MaxBeside = 64 // groups between the same hosts, in other scopes, that Beside returns
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

// Node is numbers of slots, or of nodes one level below; 0 for none.
type Node [1 << nodeBits]uint32

// Head is where a chain of groups begins. Of more flows than there are groups, most packets look for a group that isn't there: no group is read for that.
type Head struct {
	first uint32 // 0 for none
	marks uint32 // a bit for each value of the highest bits of the hashes that are in the chain, or were since it was empty
}

// headOf is where the chain of a hash begins, and the hash's mark.
func headOf(heads []Head, h uint64) (head *Head, mark uint32) {
	return &heads[h%uint64(len(heads))], 1 << (h >> 59)
}

// of is the first group that may have a hash with this mark.
func (d *Head) of(mark uint32) uint32 {
	if d.marks&mark == 0 {
		return 0
	}
	return d.first
}

func (d *Head) begin(first, mark uint32) {
	d.first = first
	d.marks |= mark
}

// follow replaces the first group, which has left the chain.
func (d *Head) follow(next uint32) {
	if d.first = next; next == 0 {
		d.marks = 0
	}
}

// Store has the groups and their slots. Group, slot and node 0 are never used.
type Store struct {
	// Lock is needed for the other fields, to find, make and drop groups, and to assign slots.
	Lock   Lock
	groups []Group
	heads  []Head // groups by hash, linked by Group.next
	hosts  []Head // groups by the hash of their hosts, linked by Group.beside
	slots  []Record
	nodes  []Node
	// used is how many of each were ever in use, and free is the first one that no longer is.
	usedGroups, usedSlots, usedNodes uint32
	freeGroup, freeSlot, freeNode    uint32

	news            []atomic.Uint64 // a bit for each group, see News
	unpaired        sources
	searched        uint64 // where the last Reclaim has ended, as a part of 2^64
	noSlot, noGroup pause
}

// Memory is the arrays of a store.
type Memory struct {
	Groups []Group
	Heads  []Head // two for each group
	Slots  []Record
	Nodes  []Node
	Counts []atomic.Uint32 // of sources
}

// Sizes are the numbers of groups, slots, nodes and counts of a store for a number of flows.
func Sizes(flows int) (groups, slots, nodes, counts int) {
	const few = 64
	groups = flows/2 + few
	return groups, flows + few, flows/2 + few, groups / 2
}

// New makes a store in memory that must be zero.
func New(m Memory) *Store {
	half, counts := len(m.Heads)/2, len(m.Counts)/2
	return &Store{groups: m.Groups, heads: m.Heads[:half], hosts: m.Heads[half:], slots: m.Slots, nodes: m.Nodes, news: make([]atomic.Uint64, len(m.Groups)/64+1),
		unpaired: sources{m.Counts[:counts], m.Counts[counts:]}}
}

// Group holds the flows between two hosts. Side 0 has those with the lower ingress port of the pair.
type Group struct {
	key   Key // under Store.Lock, as hash and next; lock is enough to read key and hash while a flow has a slot
	hash  uint64
	next  uint32 // the next group of the same head, or the next free one
	index uint32 // in Store.groups
	// beside are the next and the previous group of the same head of Store.hosts, 0 for none. A branch has the group that it is a branch of.
	beside [2]uint32
	full   int64 // under Store.Lock: a side was full of flows, none of which had ended; no search until then, ns
	// other is the scope of side 1, at the lower gateway port. It differs from the key's, which is side 0's, if the directions have other tags.
	other   atomic.Uint64 // a packet.Scope
	refused bool          // another scope was on side 1, which was wrong
	depth   uint8         // 0 for all ports, else that of a branch, and its number at that depth
	number  uint16
	// lock is needed to assign slots of the group, and to change the results of comparing its flows.
	lock Lock
	// used is the number of slots that were ever assigned, from 0 on; flows is the number of flows that have one now.
	used, flows [2]atomic.Int32

	branches atomic.Uint32 // of this group; written under Store.Lock
	noted    atomic.Uint32

	// trees lead to the slots of each side, under both locks to change: a slot's number if the height is 0, else a node's.
	trees    [2]uint32
	heights  [2]uint8
	attached [2]uint16 // slots of each side, empty or not; under Store.Lock

	paths [2]Path // of the flows of each side
}

// Find returns the group with a hash and a key, or nil. With nil as the key the hash is enough.
func (s *Store) Find(k *Key, h uint64) *Group { return s.group(k, h, 0, 0) }

func (s *Store) group(k *Key, h uint64, depth uint8, number uint16) *Group {
	head, mark := s.head(h, depth, number)
	x := head.of(mark)
	for range maxChain {
		if x == 0 {
			break
		}
		if g := &s.groups[x]; g.hash == h && g.depth == depth && g.number == number && (k == nil || g.key == *k) {
			return g
		}
		x = s.groups[x].next
	}
	return nil
}

// Make returns the group with a hash and a key. If there is none it makes one. It returns nil if all are in use.
func (s *Store) Make(k *Key, h uint64) *Group {
	if g := s.Find(k, h); g != nil {
		return g
	}
	g := s.newGroup(k, h, 0, 0)
	if g != nil {
		s.linkBeside(g)
	}
	return g
}

// head is where the chain of a group begins.
func (s *Store) head(h uint64, depth uint8, number uint16) (head *Head, mark uint32) {
	return headOf(s.heads, h^(uint64(depth)<<16|uint64(number))*golden)
}

func (s *Store) newGroup(k *Key, h uint64, depth uint8, number uint16) *Group {
	x := s.freeGroup
	switch {
	case x != 0:
		s.freeGroup = s.groups[x].next
	case int(s.usedGroups) < len(s.groups)-1:
		x = atomic.AddUint32(&s.usedGroups, 1) // Groups reads it without the lock
	default:
		return nil
	}
	g := &s.groups[x]
	head, mark := s.head(h, depth, number)
	g.key, g.hash, g.index, g.depth, g.number = *k, h, x, depth, number
	g.full, g.refused = 0, false
	g.noted.Store(0)
	g.next = head.first
	head.begin(x, mark)
	return g
}

// drop frees a group that has no slots and no branches, and the one whose last branch it was, if that one has no slots and is not in use.
func (s *Store) drop(g *Group) {
	if head, _ := s.head(g.hash, g.depth, g.number); head.first == g.index {
		head.follow(g.next)
	} else {
		x := head.first
		for s.groups[x].next != g.index {
			x = s.groups[x].next
		}
		s.groups[x].next = g.next
	}
	g.next, s.freeGroup = s.freeGroup, g.index
	if g.depth == 0 {
		s.unlinkBeside(g)
		return
	}
	above := &s.groups[g.beside[0]]
	above.branches.Add(^uint32(0))
	if above.lock.Try() { // otherwise a flow is about to get a slot there
		s.Tidy(above)
		above.lock.Release()
	}
}

func (s *Store) linkBeside(g *Group) {
	head, mark := headOf(s.hosts, g.key.hostsHash())
	g.beside = [2]uint32{head.first, 0}
	s.groups[head.first].beside[1] = g.index // group 0 has no neighbors, so its links are never read
	head.begin(g.index, mark)
}

func (s *Store) unlinkBeside(g *Group) {
	next, previous := g.beside[0], g.beside[1]
	s.groups[next].beside[1] = previous
	if previous != 0 {
		s.groups[previous].beside[0] = next
	} else {
		head, _ := headOf(s.hosts, g.key.hostsHash())
		head.follow(next)
	}
}

// Beside finds the groups between the hosts of a key, behind the same ports, in other scopes than the key's. all: there are no more.
func (s *Store) Beside(k *Key, to *[MaxBeside]*Group) (n int, all bool) {
	head, mark := headOf(s.hosts, k.hostsHash())
	x := head.of(mark)
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

// Tell makes a group news.
func (s *Store) Tell(g *Group) { s.news[g.index/64].Or(1 << (g.index % 64)) }

// TellBetween makes the groups between the hosts of a key, behind the same ports, news: MaxBeside of them at most, and not their branches. It needs Lock.
func (s *Store) TellBetween(k *Key) {
	head, mark := headOf(s.hosts, k.hostsHash())
	x := head.of(mark)
	for n := 0; x != 0 && n < MaxBeside; n++ {
		g := &s.groups[x]
		if x = g.beside[0]; g.key.Hosts == k.Hosts && g.key.Scope.Port() == k.Scope.Port() {
			s.Tell(g)
		}
	}
}

// News appends the numbers of the groups that are news: they have got a flow, or one of theirs has begun another connection, since the last call. One goroutine at a
// time may call it.
func (s *Store) News(to []int) []int {
	for i := range s.news {
		if s.news[i].Load() == 0 {
			continue
		}
		for set := s.news[i].Swap(0); set != 0; set &= set - 1 {
			to = append(to, 64*i+bits.TrailingZeros64(set))
		}
	}
	return to
}

// Empty returns an empty slot for a new flow on a side of a group, and false if there is none. Only if the side is full, it returns the slot of
// a flow that has ended: the caller has to vacate it. Empty needs the group's lock, too.
func (s *Store) Empty(g *Group, side int, now int64, ended func(Ref) bool) (slot Slot, ok bool) {
	used := g.Used(side)
	if g.Flows(side) < used {
		for n := range used {
			if slot, ok = s.Slot(g, side, n); !ok {
				return s.attach(g, side, n)
			} else if slot.Ref() == 0 {
				return slot, true
			}
		}
	}
	if used < g.slots() {
		return s.attach(g, side, used)
	}
	if now < g.full {
		return Slot{}, false
	}
	for n := range used {
		if slot, ok = s.Slot(g, side, n); ok && ended(slot.Ref()) {
			return slot, true
		}
	}
	g.full = now + searchPause
	return Slot{}, false
}

// Groups is the number of groups that were ever in use at a time.
func (s *Store) Groups() int { return int(atomic.LoadUint32(&s.usedGroups)) }

// Group is group n, 1 to Groups().
func (s *Store) Group(n int) *Group { return &s.groups[n] }

// Used is the number of slots and of groups that flows have, and how many there are. Any goroutine may call it; it reads all of them.
func (s *Store) Used() (slots, groups, allSlots, allGroups int) {
	for i := range s.slots {
		if s.slots[i].owner.Load() != 0 {
			slots++
		}
	}
	for i := range s.groups {
		if g := &s.groups[i]; g.flows[0].Load()+g.flows[1].Load() > 0 {
			groups++
		}
	}
	return slots, groups, len(s.slots) - 1, len(s.groups) - 1
}
