// Package cm keeps what RDMA-CM's messages (IBTA 12.6) say about connections. REQ and REP carry the QP of their sender, and the PSN at
// which requests to that QP begin. So the receiver of the message will use that PSN first. REQ and REP together make a claim about each of
// the connection's two flows: which QP sends it, and at which PSN it begins. Anyone can forge a REQ, and a listener sends a genuine REP for
// it. So a claim changes nothing by itself: it counts once data begins at the PSN that it names. The package knows no flows and no lock:
// only Records.Added is for several goroutines.
package cm

import (
	"math/bits"
	"sync/atomic"

	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
)

const waysASet = 8

// Message is what a REQ, REP, REJ or DREQ says.
type Message struct {
	Group         uint64 // the hash of the group of its connection's flows
	Time          int64  // of its arrival, ns
	Local, Remote uint32 // communication IDs
	QPN, PSN      uint32
	Port          uint16 // the UDP source port that results from a REQ's flow label, 0 for none
	Attribute     packet.CMAttribute
	Side          uint8 // of the sender
}

// Record (a CM record) describes a connection that RDMA-CM sets up (IBTA 12.9): the communication ID and the QP of each end, by side of the
// group.
type Record struct {
	hash uint64 // of the group, the requester's side and its communication ID; 0 for none
	time int64  // of the last message, ns; after both messages also the time of the claims
	comm [2]uint32
	qpn  [2]uint32
	psn  [2]uint32 // starting PSN of the requests to the QP
	have uint8     // a bit for each side: its REQ or REP was seen
	_    uint8
	port uint16 // the UDP source port that results from the REQ's flow label, 0 for none
	_    uint32
}

// Claim is RDMA-CM's claim about a flow.
type Claim struct {
	hash     uint64 // of the group, the side and the destination QP; 0 for none
	Time     int64  // ns
	SourceQP uint32
	PSN      uint32 // of the flow's first request
	Owner    uint64 // names the flow, once it has a slot; 0 before
	Port     uint16 // the flow's UDP source port, 0 for any
	_        [6]byte
}

// RecordSet is a set of CM records.
type RecordSet [waysASet]Record

// ClaimSet is a set of claims.
type ClaimSet [waysASet]Claim

// Records holds the CM records and the claims, each in sets of eight. In a full set a new one replaces the oldest.
type Records struct {
	records []RecordSet
	claims  []ClaimSet
	aging   int64
	added   atomic.Uint32 // claims
}

// New makes empty records of sets that must be zero. Claims are valid for the aging time, ns; 0 or less: forever.
func New(records []RecordSet, claims []ClaimSet, aging int64) *Records {
	return &Records{records: records, claims: claims, aging: aging}
}

// Added changes with each claim that is added, and comes back to a value after 2^16-2 of them. It is 1 before the first claim, and never 0. It
// needs no lock.
func (r *Records) Added() uint16 {
	n := r.added.Load()
	if n == 0 {
		return 1
	}
	return uint16(2 + (n-1)%(1<<16-2))
}

func mix(h uint64, side int, number uint32) uint64 {
	return keyhash.Fold(h^0x9e3779b97f4a7c15, uint64(side+1)<<32|uint64(number)) | 1
}

func claimHash(group uint64, side int, destQP uint32) uint64 { return mix(group, side, destQP) }
func recordHash(group uint64, side int, comm uint32) uint64 {
	return mix(bits.RotateLeft64(group, 32), side, comm)
}

// claimsOf is the set of the claims with a hash, recordsOf that of the CM records. They don't use the lowest bit of a hash, which is always
// set.
func (r *Records) claimsOf(h uint64) *ClaimSet   { return &r.claims[h>>1%uint64(len(r.claims))] }
func (r *Records) recordsOf(h uint64) *RecordSet { return &r.records[h>>1%uint64(len(r.records))] }

// Claim returns the claim that the flow from a side to a QP comes from a QP, or nil.
func (r *Records) Claim(group uint64, side int, destQP, sourceQP uint32) *Claim {
	h := claimHash(group, side, destQP)
	set := r.claimsOf(h)
	for i := range set {
		if set[i].hash == h && set[i].SourceQP == sourceQP {
			return &set[i]
		}
	}
	return nil
}

// Add adds a claim about the flow from a side to a QP. There may be several claims about a flow, with different source QPs: data shows
// which one is true.
func (r *Records) Add(group uint64, side int, destQP uint32, c Claim) {
	c.hash = claimHash(group, side, destQP)
	at := r.Claim(group, side, destQP, c.SourceQP)
	if at == nil {
		at = oldest(r.claimsOf(c.hash)[:], func(c *Claim) int64 { return c.Time })
	}
	*at = c
	r.added.Add(1)
}

// Remove removes the two claims of a connection between a QP of each side, if they were made at the given time. A claim made later is about
// a later connection of the same two QPs.
func (r *Records) Remove(group uint64, qpn [2]uint32, made int64) {
	for side := range 2 {
		if at := r.Claim(group, side, qpn[1-side], qpn[side]); at != nil && at.Time == made {
			*at = Claim{}
		}
	}
}

// find returns the CM record with a hash, or nil.
func (r *Records) find(h uint64) *Record {
	set := r.recordsOf(h)
	for i := range set {
		if set[i].hash == h {
			return &set[i]
		}
	}
	return nil
}

// make returns the CM record with a hash. If there is none it begins one, which replaces the oldest of the set.
func (r *Records) make(h uint64, now int64) *Record {
	if c := r.find(h); c != nil {
		return c
	}
	c := oldest(r.recordsOf(h)[:], func(c *Record) int64 { return c.time })
	*c = Record{hash: h, time: now}
	return c
}

// oldest is the element of a set with the lowest time. An empty one has the time 0.
func oldest[T any](set []T, time func(*T) int64) *T {
	at := &set[0]
	for i := range set {
		if time(&set[i]) < time(at) {
			at = &set[i]
		}
	}
	return at
}

// Request reads a REQ, of a new connection or retransmitted.
func (r *Records) Request(m *Message) {
	c := r.make(recordHash(m.Group, int(m.Side), m.Local), m.Time)
	if c.have>>m.Side&1 != 0 && c.qpn[m.Side] == m.QPN && c.psn[m.Side] == m.PSN {
		return // sent again
	}
	if c.have>>m.Side&1 != 0 { // the communication ID now belongs to another connection
		c.have, c.port = 0, 0
	}
	if m.Port != 0 {
		c.port = m.Port
	}
	r.half(m, c)
}

// Reply reads a REP. It may come before the REQ, which another worker may read.
func (r *Records) Reply(m *Message) {
	c := r.make(recordHash(m.Group, 1-int(m.Side), m.Remote), m.Time)
	if c.have == 3 || c.have>>m.Side&1 != 0 {
		return // retransmitted, or another one, perhaps forged: the first one counts
	}
	r.half(m, c)
	c.comm[1-m.Side] = m.Remote
}

// half records one end of a connection. Once both ends are known, it adds a claim about each of the two flows.
func (r *Records) half(m *Message, c *Record) {
	c.have |= 1 << m.Side
	c.comm[m.Side], c.qpn[m.Side], c.psn[m.Side], c.time = m.Local, m.QPN, m.PSN, m.Time
	if c.have != 3 {
		return
	}
	for side := range 2 { // the flow from this side goes to the other side's QP
		r.Add(m.Group, side, c.qpn[1-side], Claim{Time: m.Time, SourceQP: c.qpn[side], PSN: c.psn[1-side], Port: c.port})
	}
}

// About returns the connection that a DREQ or REJ of its requester (0) or its responder (1) ends; nil if there is none. Only a REJ may come
// before the REP, and then one ID is enough.
func (r *Records) About(m *Message, by int) *Record {
	c := r.find([2]uint64{recordHash(m.Group, int(m.Side), m.Local), recordHash(m.Group, 1-int(m.Side), m.Remote)}[by])
	switch rej := m.Attribute == packet.CMREJ; {
	case c == nil || c.have != 3 && !rej:
		return nil
	case c.have == 3 && (c.comm[m.Side] != m.Local || c.comm[1-m.Side] != m.Remote || !rej && c.qpn[1-m.Side] != m.QPN):
		return nil
	}
	return c
}

// Port is the connection's UDP source port by the REQ's flow label, 0 for any.
func (c *Record) Port() uint16 { return c.port }

// QPs returns the QPs of a connection by side, and when its claims were made; ok is false before both are known.
func (c *Record) QPs() (qpn [2]uint32, made int64, ok bool) { return c.qpn, c.time, c.have == 3 }

// End forgets a connection of a group and the claims about it.
func (r *Records) End(group uint64, c *Record) {
	if c.have == 3 {
		r.Remove(group, c.qpn, c.time)
	}
	*c = Record{}
}

// claimDelay is the maximum time in milliseconds from a connection's first packet to the messages that claim it: RDMA-CM sets up a
// connection before its data, apart from reordering. So nobody can try claims about a flow in use until one fits. What counts is when the
// messages arrived; they may have waited to be read.
const claimDelay = 1

// Milliseconds is a time, ns, in milliseconds modulo 2^32.
func Milliseconds(ns int64) uint32 { return uint32(ns / 1e6) }

// Flow is what is known of a flow when a claim about it is looked for.
type Flow struct {
	Group        uint64
	Side         int
	DestQP       uint32
	First, Slack uint32 // it began at most Slack PSNs before First
	Began        uint32 // when its present connection began, Milliseconds
	Owner        uint64 // for Claim.Owner
}

// Find returns RDMA-CM's claim about a flow, if there is also a claim about the flow of the other direction. The claim must not be older
// than the aging time, nor made later than claimDelay allows. Among several it prefers one whose PSN is near the flow's first. It notes in
// the claim that it is about this flow.
func (r *Records) Find(f *Flow, now int64) (c Claim, ok bool) {
	h := claimHash(f.Group, f.Side, f.DestQP)
	set := r.claimsOf(h)
	var found *Claim
	for i := range set {
		at := &set[i]
		if at.hash != h || r.aging > 0 && now-at.Time > r.aging || int32(Milliseconds(at.Time)-f.Began) > claimDelay ||
			r.Claim(f.Group, 1-f.Side, at.SourceQP, f.DestQP) == nil {
			continue
		}
		near := (f.First-at.PSN)&(1<<24-1) <= f.Slack
		if found == nil || near {
			found = at
		}
		if near {
			break
		}
	}
	if found == nil {
		return c, false
	}
	found.Owner = f.Owner
	return *found, true
}

// Forget removes the claims about two flows to QPs of a group, by side, if one of the claims is noted as its flow's: first that of the flow
// from the given side.
func (r *Records) Forget(group uint64, side int, to [2]uint32, owners [2]uint64) {
	for _, side := range [2]int{side, 1 - side} {
		if c := r.Claim(group, side, to[side], to[1-side]); c != nil && c.Owner == owners[side] {
			r.Remove(group, [2]uint32{to[1], to[0]}, c.Time)
			return
		}
	}
}
