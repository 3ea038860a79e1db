package respond

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// lawSenders is what a worker's control law has learned of senders that were above F. Where a new one finds no free entry, it takes that of the sender that was above F
// the longest time ago.
type lawSenders struct {
	keys    [][lawWays]uint64 // by set, hashes of the addresses; 0: the entry is free
	entries [][lawWays]lawSender
	secret  [3]uint64
}

type lawSender struct {
	congestion.LawSender
	reaction congestion.Reaction
	noted    int64 // when it was noted as unresponsive last, ns; 0: it isn't
	used     int64 // when it was above F last, ns
}

// There are lawSets sets of lawWays entries; an address has its place in one set.
const (
	lawSets = 1024
	lawWays = 8
)

func lawSendersSize() int {
	return lawSets * int(unsafe.Sizeof([lawWays]uint64{})+unsafe.Sizeof([lawWays]lawSender{}))
}

// newLawSenders needs memory that is zero and 8-byte aligned.
func newLawSenders(memory []byte, seed uint64) lawSenders {
	s := lawSenders{keys: unsafe.Slice((*[lawWays]uint64)(unsafe.Pointer(unsafe.SliceData(memory))), lawSets)}
	behind := memory[lawSets*int(unsafe.Sizeof(s.keys[0])):]
	s.entries = unsafe.Slice((*[lawWays]lawSender)(unsafe.Pointer(unsafe.SliceData(behind))), lawSets)
	keyhash.Spread(s.secret[:], seed) // with the bare seed, a small one of a test, neighbors' addresses would have one place
	return s
}

// of returns the entry of the sender of a flow that is above F, or was lately, at a time in ns.
func (s *lawSenders) of(k *flowtable.Key, now int64) *lawSender {
	e := s.find(k)
	if e == nil {
		e = s.begin(s.hash(k.Src, k.Scope()))
	}
	e.used = now
	return e
}

// begin gives a new sender an entry.
func (s *lawSenders) begin(key uint64) *lawSender {
	n := setOf(key)
	set, oldest := &s.entries[n], 0
	for way := range set {
		if set[way].used < set[oldest].used {
			oldest = way
		}
	}
	s.keys[n][oldest] = key
	e := &set[oldest]
	*e = lawSender{}
	e.Begin()
	return e
}

// unresponsive reports whether a flow's sender doesn't react to notifications.
func (s *lawSenders) unresponsive(k *flowtable.Key) bool {
	e := s.find(k)
	return e != nil && e.noted != 0
}

// ignores reports whether a flow's sender counts as one that doesn't react to notifications.
func (s *lawSenders) ignores(k *flowtable.Key) bool {
	e := s.find(k)
	return e != nil && e.reaction.Unresponsive()
}

// find returns the entry of a flow's sender, nil if it isn't known, as most are not: then it touches one cache line.
func (s *lawSenders) find(k *flowtable.Key) *lawSender {
	key := s.hash(k.Src, k.Scope())
	keys := &s.keys[setOf(key)]
	for way := range keys {
		if keys[way] == key {
			return &s.entries[setOf(key)][way]
		}
	}
	return nil
}

func setOf(key uint64) uint64 { return key >> 32 % lawSets }

func (s *lawSenders) hash(a packet.Addr, scope packet.Scope) uint64 {
	return keyhash.Fold(keyhash.Fold(a.Hi^s.secret[0], a.Lo^s.secret[1])^s.secret[2], uint64(scope)^s.secret[0]) | 1
}

// UnresponsiveSender is a sender that doesn't react to notifications.
type UnresponsiveSender struct {
	Host  packet.Host
	Port  int   // egress port of its flows
	Since int64 // when that was noticed first, ns by the workers' clock
	Last  int64 // and last
}

// maxUnresponsive bounds the unresponsive senders that are kept; the one that was noticed longest ago is replaced.
const maxUnresponsive = 256

// unresponsiveSenders are those of all workers. A worker never waits for the lock: what it can't note, it notes at the next window of a
// flow.
type unresponsiveSenders struct {
	found atomic.Uint64 // so far
	lock  sync.Mutex
	of    [maxUnresponsive]UnresponsiveSender
	n     int
}

// note adds or updates a sender. isNew is false if it was known; ok is false if another goroutine holds the lock.
func (u *unresponsiveSenders) note(host packet.Host, port int, now int64) (isNew, ok bool) {
	if !u.lock.TryLock() {
		return false, false
	}
	defer u.lock.Unlock()
	oldest := 0
	for i := range u.of[:u.n] {
		if u.of[i].Host == host {
			u.of[i].Last = now
			return false, true
		}
		if u.of[i].Last < u.of[oldest].Last {
			oldest = i
		}
	}
	if u.n < maxUnresponsive {
		oldest = u.n
		u.n++
	}
	u.of[oldest] = UnresponsiveSender{host, port, now, now}
	u.found.Add(1)
	return true, true
}

// remove forgets a sender that has reacted. It returns false if another goroutine holds the lock.
func (u *unresponsiveSenders) remove(host packet.Host) bool {
	if !u.lock.TryLock() {
		return false
	}
	defer u.lock.Unlock()
	for i := range u.of[:u.n] {
		if u.of[i].Host == host {
			u.n--
			u.of[i] = u.of[u.n]
			return true
		}
	}
	return true
}

// list returns the senders, and how many were found so far.
func (u *unresponsiveSenders) list() (senders []UnresponsiveSender, found uint64) {
	if found = u.found.Load(); found == 0 {
		return nil, 0
	}
	u.lock.Lock()
	defer u.lock.Unlock()
	return slices.Clone(u.of[:u.n]), found
}

// UnresponsiveSenders returns the senders that don't react to notifications, and how many were found so far. Any goroutine may call it.
func (s *Shared) UnresponsiveSenders() (senders []UnresponsiveSender, found uint64) {
	return s.unresponsive.list()
}

// unresponsiveAgain is how often a sender that stays unresponsive is noted, ns.
const unresponsiveAgain = 100_000_000

// noteReaction notes whether a sender of flows that leave by a port is unresponsive.
func (l *Law) noteReaction(host packet.Host, port int, s *lawSender) {
	switch {
	case s.reaction.Unresponsive():
		if s.noted != 0 && l.Now-s.noted < unresponsiveAgain {
			return
		}
		isNew, ok := l.unresponsive.note(host, port, l.Now)
		if ok {
			s.noted = l.Now
		}
		if isNew {
			l.Counters.Add(port, counters.SendersUnresponsive, 1)
		}
	case s.noted != 0 && l.unresponsive.remove(host):
		s.noted = 0
	}
}
