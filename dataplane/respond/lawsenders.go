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

// lawSenders is what a worker's control law has learned of senders, and of their prefixes for senders that it doesn't know yet. An entry
// is replaced by the next sender with its place.
type lawSenders struct {
	entries  []lawSender
	secret   [3]uint64
	replaced uint
}

type lawSender struct {
	key uint64 // hash of the address or the prefix, 0: the entry is free
	congestion.LawSender
	reaction congestion.Reaction
	noted    int64 // when it was noted as unresponsive last, ns; 0: it isn't
}

// lawPlaces is the number of entries, half for senders, half for prefixes; lawWays that of places where an address may be.
const (
	lawPlaces = 8192
	lawWays   = 4
)

func lawSendersSize() int { return lawPlaces * int(unsafe.Sizeof(lawSender{})) }

// newLawSenders needs memory that is zero and 8-byte aligned.
func newLawSenders(memory []byte, seed uint64) lawSenders {
	s := lawSenders{entries: unsafe.Slice((*lawSender)(unsafe.Pointer(unsafe.SliceData(memory))), lawPlaces)}
	keyhash.Spread(s.secret[:], seed) // with the bare seed, a small one of a test, neighbors' addresses would have one place
	return s
}

// of returns the entry of a flow's sender: what is known of it, or of its prefix.
func (s *lawSenders) of(k *flowtable.Key) *lawSender {
	e, known := s.entry(k.Src, k.Scope(), 0)
	if !known {
		e.Begin(&s.prefix(k).LawSender)
		e.reaction, e.noted = congestion.Reaction{}, 0
	}
	return e
}

// unresponsive reports whether a flow's sender doesn't react to notifications.
func (s *lawSenders) unresponsive(k *flowtable.Key) bool {
	e, known := s.find(k.Src, k.Scope(), 0)
	return known && e.noted != 0
}

// ignores reports whether a flow's sender counts as one that doesn't react to notifications.
func (s *lawSenders) ignores(k *flowtable.Key) bool {
	e, known := s.find(k.Src, k.Scope(), 0)
	return known && e.reaction.Unresponsive()
}

// teach passes on what was learned of a flow's sender to the unknown senders of its prefix.
func (s *lawSenders) teach(k *flowtable.Key, learned *lawSender) {
	s.prefix(k).Begin(&learned.LawSender)
}

func (s *lawSenders) prefix(k *flowtable.Key) *lawSender {
	e, known := s.entry(prefixOf(k.Src), k.Scope(), lawPlaces/2)
	if !known {
		e.LawSender = congestion.LawSender{}
	}
	return e
}

// entry returns the entry of an address in the half of the table that begins at a place, and whether it was its own.
func (s *lawSenders) entry(a packet.Addr, scope packet.Scope, first int) (e *lawSender, known bool) {
	if e, known = s.find(a, scope, first); !known {
		e.key = s.hash(a, scope)
		s.replaced++
	}
	return e, known
}

// find is entry without making it the address's own.
func (s *lawSenders) find(a packet.Addr, scope packet.Scope, first int) (e *lawSender, known bool) {
	key := s.hash(a, scope)
	set := s.entries[first+int(key>>32%(lawPlaces/2/lawWays))*lawWays:][:lawWays]
	e = &set[s.replaced%lawWays]
	for i := range set {
		switch set[i].key {
		case key:
			return &set[i], true
		case 0:
			e = &set[i]
		}
	}
	return e, false
}

func (s *lawSenders) hash(a packet.Addr, scope packet.Scope) uint64 {
	return keyhash.Fold(keyhash.Fold(a.Hi^s.secret[0], a.Lo^s.secret[1])^s.secret[2], uint64(scope)^s.secret[0]) | 1
}

// prefixOf is the prefix of a sender: /24 (IPv4) or /64 (IPv6).
func prefixOf(a packet.Addr) packet.Addr {
	const host4, mark = 0xff, 1 << 63
	if a.Is4() {
		return packet.Addr{Hi: a.Hi | mark, Lo: a.Lo &^ host4}
	}
	return packet.Addr{Hi: a.Hi, Lo: mark}
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
