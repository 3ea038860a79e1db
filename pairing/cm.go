package pairing

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// This file reads RDMA-CM's messages (IBTA 12.6). REQ and REP carry the QP of their sender, and the PSN at which requests to that QP begin. So
// the receiver of the message will use that PSN first. REQ and REP together claim of each of the connection's two flows which QP sends
// it, and at which PSN it begins. Anyone can forge a REQ, and a listener will answer it. So a claim changes nothing by itself: it counts when
// data begins where it says (cmrule.go).

const waysACMSet = 4

// cmRecord is a connection that RDMA-CM sets up (IBTA 12.9): the communication ID and the QP of each end, by side of the group.
type cmRecord struct {
	hash uint64 // of the group, the requester's side and its communication ID; 0 for none
	time int64  // of the last message, ns
	comm [2]uint32
	qpn  [2]uint32
	psn  [2]uint32 // starting PSN of the requests to the QP
	have uint8     // a bit for each side whose REQ or REP was seen
	_    uint8
	port uint16 // the UDP source port that the REQ's flow label makes, 0 for none
	_    uint32
}

type cmSet [waysACMSet]cmRecord

// flowClaim is what RDMA-CM claims of a flow.
type flowClaim struct {
	hash     uint64 // of the group, the side and the destination QP; 0 for none
	time     int64  // ns
	sourceQP uint32
	psn      uint32  // of the flow's first request
	owner    flowRef // the flow, once it has a place; 0 before
	slot     uint32  // the flow's place
	port     uint16  // the flow's UDP source port, 0 for any
	_        uint16
}

type claimSet [waysACMSet]flowClaim

// cmRecords holds the records and claims, each in sets of four. In a full set the oldest one makes room.
type cmRecords struct {
	writing claim // guards sets and claims
	sets    []cmSet
	claims  []claimSet
	number  sequence // of claims that were added
}

func mix(h uint64, side int, number uint32) uint64 {
	return fold(h^0x9e3779b97f4a7c15, uint64(side+1)<<32|uint64(number)) | 1
}

func claimHash(group uint64, side int, destQP uint32) uint64 { return mix(group, side, destQP) }
func cmHash(group uint64, side int, comm uint32) uint64 {
	return mix(bits.RotateLeft64(group, 32), side, comm)
}

// addClaim adds a claim. There may be several claims about a flow, with different source QPs: data shows which one is true.
func (r *cmRecords) addClaim(c flowClaim) {
	set := &r.claims[c.hash%uint64(len(r.claims))]
	at := &set[0]
	for i := range set {
		if set[i].hash == c.hash && set[i].sourceQP == c.sourceQP {
			at = &set[i]
			break
		}
		if set[i].time < at.time {
			at = &set[i]
		}
	}
	*at = c
	r.number.next()
}

// removeClaim removes the claim that a flow comes from a QP, and returns it; the zero claim if there is none.
func (r *cmRecords) removeClaim(h uint64, sourceQP uint32) (c flowClaim) {
	set := &r.claims[h%uint64(len(r.claims))]
	for i := range set {
		if set[i].hash == h && set[i].sourceQP == sourceQP {
			c, set[i] = set[i], flowClaim{}
		}
	}
	return c
}

// find is the record with a hash, or nil.
func (r *cmRecords) find(h uint64) *cmRecord {
	set := &r.sets[h%uint64(len(r.sets))]
	for i := range set {
		if set[i].hash == h {
			return &set[i]
		}
	}
	return nil
}

// make is the record with a hash. If there is none it begins one, in place of the oldest of the set.
func (r *cmRecords) make(h uint64, now int64) *cmRecord {
	if c := r.find(h); c != nil {
		return c
	}
	set := &r.sets[h%uint64(len(r.sets))]
	oldest := &set[0]
	for i := range set {
		if set[i].time < oldest.time {
			oldest = &set[i]
		}
	}
	*oldest = cmRecord{hash: h, time: now}
	return oldest
}

// madCost is what a packet to QP 1 takes from the budget.
const madCost = 128

// observeMAD reads a packet to QP 1, which may carry a communication management message.
func (l *Learner) observeMAD(k *flowtable.Key, p *packet.Parsed, b []byte, now int64) {
	if !l.spend(madCost) {
		return
	}
	if m, ok := packet.CMMessage(b, p); ok {
		l.observeCM(k, &m, now)
	}
}

// observeCM learns from a communication management message. k is the key of the packet that carried it.
func (l *Learner) observeCM(k *flowtable.Key, m *packet.CM, now int64) {
	p := l.pairing
	if !p.cm.writing.trySoon() {
		l.skipped()
		return
	}
	defer p.cm.writing.release()
	l.counts.Evidence[EvidenceCM]++
	l.dirty = true
	key, side := p.groupOf(k)
	c := cmMessage{l: l, h: p.hashOf(&key), side: side, m: m, now: now}
	switch m.Attribute {
	case packet.CMREQ:
		if m.LocalGID == k.Src && m.RemoteGID == k.Dst {
			c.request()
		}
	case packet.CMREP:
		c.reply()
	case packet.CMREJ:
		c.reject()
	case packet.CMDREQ:
		c.disconnect()
	}
}

// cmMessage is the message at hand. Its methods are called under cmRecords.writing.
type cmMessage struct {
	l    *Learner
	h    uint64 // of the group
	side int    // of the sender
	m    *packet.CM
	now  int64
}

// connectionQP reports whether a QP can be one end of a connection.
func connectionQP(qp uint32) bool { return qp > packet.GSIQP && qp < 0xffffff }

// request reads a REQ: of a new connection, or sent again.
func (c *cmMessage) request() {
	if !connectionQP(c.m.QPN) {
		return
	}
	r := c.l.pairing.cm.make(cmHash(c.h, c.side, c.m.LocalComm), c.now)
	if r.have>>c.side&1 != 0 && r.qpn[c.side] == c.m.QPN && r.psn[c.side] == c.m.PSN {
		return // sent again
	}
	if r.have>>c.side&1 != 0 { // the communication ID serves another connection now
		r.have = 0
	}
	if c.m.FlowLabel != 0 {
		r.port = labelPort(c.m.FlowLabel)
	}
	c.half(r)
}

// reply reads a REP. It may come before the REQ, which another worker sees.
func (c *cmMessage) reply() {
	if !connectionQP(c.m.QPN) {
		return
	}
	r := c.l.pairing.cm.make(cmHash(c.h, 1-c.side, c.m.RemoteComm), c.now)
	if r.have == 3 || r.have>>c.side&1 != 0 {
		return // sent again. Or another's, or forged: the first one stands
	}
	c.half(r)
	r.comm[1-c.side] = c.m.RemoteComm
}

// half notes one end of a connection. When it knows both ends, it claims which QP sends each of the two flows.
func (c *cmMessage) half(r *cmRecord) {
	r.have |= 1 << c.side
	r.comm[c.side], r.qpn[c.side], r.psn[c.side], r.time = c.m.LocalComm, c.m.QPN, c.m.PSN, c.now
	if r.have != 3 {
		return
	}
	for side := range 2 { // the flow from this side goes to the other side's QP
		c.l.pairing.cm.addClaim(flowClaim{
			hash: claimHash(c.h, side, r.qpn[1-side]), time: c.now, sourceQP: r.qpn[side], psn: r.psn[1-side], port: r.port,
		})
	}
}

// reject reads a REJ: the connection is not set up.
func (c *cmMessage) reject() {
	for _, h := range [2]uint64{cmHash(c.h, c.side, c.m.LocalComm), cmHash(c.h, 1-c.side, c.m.RemoteComm)} {
		r := c.l.pairing.cm.find(h)
		if r == nil || r.have == 3 && (r.comm[c.side] != c.m.LocalComm || r.comm[1-c.side] != c.m.RemoteComm) {
			continue
		}
		c.end(r)
	}
}

// disconnect reads a DREQ, from either end.
func (c *cmMessage) disconnect() {
	for _, h := range [2]uint64{cmHash(c.h, c.side, c.m.LocalComm), cmHash(c.h, 1-c.side, c.m.RemoteComm)} {
		r := c.l.pairing.cm.find(h)
		if r != nil && r.have == 3 && r.comm[c.side] == c.m.LocalComm && r.comm[1-c.side] == c.m.RemoteComm && r.qpn[1-c.side] == c.m.QPN {
			c.end(r)
		}
	}
}

// end forgets a connection and the claims about it, and closes the records of its flows.
func (c *cmMessage) end(r *cmRecord) {
	for side := range 2 {
		if r.have != 3 {
			break
		}
		to, from := r.qpn[1-side], r.qpn[side]
		if claim := c.l.pairing.cm.removeClaim(claimHash(c.h, side, to), from); claim.owner != 0 {
			c.close(&claim)
		}
	}
	*r = cmRecord{}
}

// close closes the record of the flow that a claim was about, if the flow's source QP is the one that the claim names.
func (c *cmMessage) close(claim *flowClaim) {
	p := c.l.pairing
	pg, k := &p.pages[claim.slot/placesAPage], claim.slot%placesAPage
	if a, ok := p.answerOf(claim.owner); !ok || a.SourceQP() != claim.sourceQP || flowRef(pg.owner[k].Load()) != claim.owner {
		return
	}
	pg.ended[k].Store(milliseconds(c.now))
	p.update(claim.owner, func(a Answer) Answer {
		if a.SourceQP() != claim.sourceQP || settled(a) || a.Ended() != Open {
			return a
		}
		return a.closed(EndedDREQ)
	})
}

// claimOf is what RDMA-CM claims of a flow, not longer than the aging time ago: where there are several, the one that begins with the
// packet at hand. It notes the flow's place, if it has one, for the DREQ to find. busy is whether somebody else had the claims.
func (l *Learner) claimOf(x flowtable.Index, first uint32, now int64) (c flowClaim, ok, busy bool) {
	p := l.pairing
	if !p.cm.writing.try() {
		return c, false, true
	}
	defer p.cm.writing.release()
	key, side := p.groupOf(l.table.Key(x))
	h := claimHash(p.hashOf(&key), side, l.table.Key(x).DestQP)
	set := &p.cm.claims[h%uint64(len(p.cm.claims))]
	for i := range set {
		if set[i].hash != h || p.aging > 0 && now-set[i].time > p.aging {
			continue
		}
		if near := (first-set[i].psn)&psnMask <= firstSlack; !ok || near {
			set[i].slot, set[i].owner = l.tracks[x].slot, l.ref(x)
			c, ok = set[i], true
			if near {
				break
			}
		}
	}
	return c, ok, false
}

// forgetClaims removes the claims about both flows of a connection that is over.
func (l *Learner) forgetClaims(x flowtable.Index, a Answer) {
	p := l.pairing
	if !p.cm.writing.trySoon() {
		l.skipped()
		return
	}
	defer p.cm.writing.release()
	from, to := a.SourceQP(), l.table.Key(x).DestQP
	key, side := p.groupOf(l.table.Key(x))
	h := p.hashOf(&key)
	p.cm.removeClaim(claimHash(h, side, to), from)
	p.cm.removeClaim(claimHash(h, 1-side, from), to)
}
