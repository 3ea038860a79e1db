package pairing

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// This file reads RDMA-CM's messages (IBTA 12.6). REQ and REP carry the QP of their sender, and the PSN at which requests to that QP begin. So
// the receiver of the message will use that PSN first. REQ and REP together make a claim about each of the connection's two flows: which QP
// sends it, and at which PSN it begins. Anyone can forge a REQ, and a listener sends a genuine REP for it. So a claim changes nothing by itself.
// It counts once data begins at the PSN that it names (cmrule.go).

const waysACMSet = 8

// cmRecord (a CM record) describes a connection that RDMA-CM sets up (IBTA 12.9): the communication ID and the QP of each end, by side of
// the group.
type cmRecord struct {
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

type cmSet [waysACMSet]cmRecord

// flowClaim is RDMA-CM's claim about a flow.
type flowClaim struct {
	hash     uint64 // of the group, the side and the destination QP; 0 for none
	time     int64  // ns
	sourceQP uint32
	psn      uint32  // of the flow's first request
	owner    flowRef // the flow, once it has a slot; 0 before
	port     uint16  // the flow's UDP source port, 0 for any
	_        [6]byte
}

type claimSet [waysACMSet]flowClaim

// cmRecords holds the CM records and the claims, each in sets of eight. In a full set a new one replaces the oldest.
type cmRecords struct {
	lock   tryLock // protects sets and claims
	sets   []cmSet
	claims []claimSet
	number sequence // counts added claims
}

func mix(h uint64, side int, number uint32) uint64 {
	return keyhash.Fold(h^0x9e3779b97f4a7c15, uint64(side+1)<<32|uint64(number)) | 1
}

func claimHash(group uint64, side int, destQP uint32) uint64 { return mix(group, side, destQP) }
func cmHash(group uint64, side int, comm uint32) uint64 {
	return mix(bits.RotateLeft64(group, 32), side, comm)
}

// addClaim adds a claim. There may be several claims about a flow, with different source QPs: data shows which one is true.
func (r *cmRecords) addClaim(c flowClaim) {
	at := r.claimThat(c.hash, c.sourceQP)
	if at == nil {
		at = oldest(r.claimsOf(c.hash)[:], func(c *flowClaim) int64 { return c.time })
	}
	*at = c
	r.number.next()
}

// claimsOf is the set of the claims with a hash, recordsOf that of the CM records. They don't use the lowest bit of a hash, which is always
// set.
func (r *cmRecords) claimsOf(h uint64) *claimSet { return &r.claims[h>>1%uint64(len(r.claims))] }
func (r *cmRecords) recordsOf(h uint64) *cmSet   { return &r.sets[h>>1%uint64(len(r.sets))] }

// claimThat returns the claim that a flow comes from a QP, or nil.
func (r *cmRecords) claimThat(h uint64, sourceQP uint32) *flowClaim {
	set := r.claimsOf(h)
	for i := range set {
		if set[i].hash == h && set[i].sourceQP == sourceQP {
			return &set[i]
		}
	}
	return nil
}

// removeClaim removes the claim that a flow comes from a QP, if it was made at the given time, and returns it; the zero claim if there is none.
// A claim made later is about a later connection of the same two QPs.
func (r *cmRecords) removeClaim(h uint64, sourceQP uint32, made int64) (c flowClaim) {
	if at := r.claimThat(h, sourceQP); at != nil && at.time == made {
		c, *at = *at, flowClaim{}
	}
	return c
}

// find returns the CM record with a hash, or nil.
func (r *cmRecords) find(h uint64) *cmRecord {
	set := r.recordsOf(h)
	for i := range set {
		if set[i].hash == h {
			return &set[i]
		}
	}
	return nil
}

// make returns the CM record with a hash. If there is none it begins one, which replaces the oldest of the set.
func (r *cmRecords) make(h uint64, now int64) *cmRecord {
	if c := r.find(h); c != nil {
		return c
	}
	c := oldest(r.recordsOf(h)[:], func(c *cmRecord) int64 { return c.time })
	*c = cmRecord{hash: h, time: now}
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

// madCost is the budget that a message of a connection uses.
const madCost = 128

// cmMessage is what a REQ, REP, REJ or DREQ says.
type cmMessage struct {
	group         uint64 // its hash
	time          int64  // of its arrival, ns
	local, remote uint32 // communication IDs
	qpn, psn      uint32
	port          uint16 // the UDP source port that results from a REQ's flow label, 0 for none
	attribute     packet.CMAttribute
	side          uint8 // of the sender
}

// observeMAD reads a packet to QP 1, which may carry a communication management message.
func (l *Learner) observeMAD(k *flowtable.Key, p *packet.Parsed, b []byte, now int64) {
	if m, ok := packet.CMMessage(b, p); ok {
		l.observeCM(k, &m, now)
	}
}

// observeCM learns from a communication management message. k is the key of the packet that carried it.
func (l *Learner) observeCM(k *flowtable.Key, m *packet.CM, now int64) {
	l.counts.Evidence[EvidenceCM]++
	l.dirty = true
	switch m.Attribute {
	case packet.CMREQ, packet.CMREP:
		if !connectionQP(m.QPN) || m.Attribute == packet.CMREQ && (m.LocalGID != k.Src || m.RemoteGID != k.Dst) {
			return
		}
	case packet.CMREJ, packet.CMDREQ:
	default:
		return
	}
	key, side := l.pairing.groupOf(k)
	c := cmMessage{group: l.pairing.hashOf(&key), time: now, local: m.LocalComm, remote: m.RemoteComm, qpn: m.QPN, psn: m.PSN,
		attribute: m.Attribute, side: uint8(side)}
	if m.FlowLabel != 0 {
		c.port = labelPort(m.FlowLabel)
	}
	l.receiveCM(&c)
}

// connectionQP reports whether a QP can be one end of a connection.
func connectionQP(qp uint32) bool { return qp > packet.GSIQP && qp < 0xffffff }

// read learns from a message, under cmRecords.lock. It returns false if another worker holds a lock; then the message must be read again.
func (m *cmMessage) read(l *Learner) bool {
	switch m.attribute {
	case packet.CMREQ:
		m.request(l.pairing)
	case packet.CMREP:
		m.reply(l.pairing)
	default:
		return m.release(l)
	}
	return true
}

// request reads a REQ, of a new connection or retransmitted.
func (m *cmMessage) request(p *Pairing) {
	r := p.cm.make(cmHash(m.group, int(m.side), m.local), m.time)
	if r.have>>m.side&1 != 0 && r.qpn[m.side] == m.qpn && r.psn[m.side] == m.psn {
		return // sent again
	}
	if r.have>>m.side&1 != 0 { // the communication ID now belongs to another connection
		r.have, r.port = 0, 0
	}
	if m.port != 0 {
		r.port = m.port
	}
	m.half(p, r)
}

// reply reads a REP. It may come before the REQ, which another worker may read.
func (m *cmMessage) reply(p *Pairing) {
	r := p.cm.make(cmHash(m.group, 1-int(m.side), m.remote), m.time)
	if r.have == 3 || r.have>>m.side&1 != 0 {
		return // retransmitted, or another one, perhaps forged: the first one counts
	}
	m.half(p, r)
	r.comm[1-m.side] = m.remote
}

// half records one end of a connection. Once both ends are known, it adds a claim about each of the two flows.
func (m *cmMessage) half(p *Pairing, r *cmRecord) {
	r.have |= 1 << m.side
	r.comm[m.side], r.qpn[m.side], r.psn[m.side], r.time = m.local, m.qpn, m.psn, m.time
	if r.have != 3 {
		return
	}
	for side := range 2 { // the flow from this side goes to the other side's QP
		p.cm.addClaim(flowClaim{
			hash: claimHash(m.group, side, r.qpn[1-side]), time: m.time, sourceQP: r.qpn[side], psn: r.psn[1-side], port: r.port,
		})
	}
}

// release reads a DREQ, or a REJ: the connection is not set up. Either end may send it.
func (m *cmMessage) release(l *Learner) bool {
	for _, h := range [2]uint64{cmHash(m.group, int(m.side), m.local), cmHash(m.group, 1-int(m.side), m.remote)} {
		if r := l.pairing.cm.find(h); r != nil && m.isAbout(r) && !m.end(l, r) {
			return false
		}
	}
	return true
}

// isAbout reports whether a DREQ or REJ has the IDs of a connection. Only a REJ may come before the REP, and then one ID is enough.
func (m *cmMessage) isAbout(r *cmRecord) bool {
	if r.have != 3 {
		return m.attribute == packet.CMREJ
	}
	return r.comm[m.side] == m.local && r.comm[1-m.side] == m.remote && (m.attribute == packet.CMREJ || r.qpn[1-m.side] == m.qpn)
}

// end forgets a connection and the claims about it, and closes the flow records of its flows. It returns false if another worker holds a
// lock.
func (m *cmMessage) end(l *Learner, r *cmRecord) bool {
	if r.have == 3 {
		if !m.close(l, r) {
			return false
		}
		for side := range 2 {
			l.pairing.cm.removeClaim(claimHash(m.group, side, r.qpn[1-side]), r.qpn[side], r.time)
		}
	}
	*r = cmRecord{}
	return true
}

// close closes the flow records of a connection: those of the flows between its two QPs, unless there is a claim about a later connection
// of the same two QPs.
func (m *cmMessage) close(l *Learner, r *cmRecord) bool {
	p := l.pairing
	if !p.allocation.try() {
		return false
	}
	x := p.findGroup(nil, m.group)
	g := &p.groups[x]
	held := x != 0 && g.lock.try()
	p.allocation.release()
	if !held {
		return x == 0
	}
	defer g.lock.release()
	for side := range 2 {
		to, from := r.qpn[1-side], r.qpn[side]
		if c := p.cm.claimThat(claimHash(m.group, side, to), from); c != nil && c.time != r.time {
			continue
		}
		used := int(g.used[side].Load())
		l.budget -= used
		for n := range used {
			if pl, ok := p.occupied(g, side, n); ok && pl.id().qp() == to {
				p.closeFlow(&pl, from, m.time)
			}
		}
	}
	return true
}

// closeFlow closes a flow record, if the flow comes from the given QP.
func (p *Pairing) closeFlow(pl *Slot, sourceQP uint32, now int64) {
	if a, ok := p.answerOf(pl.owner()); !ok || a.SourceQP() != sourceQP {
		return
	}
	pl.p.ended[pl.k].Store(milliseconds(now))
	p.update(pl.owner(), func(a Answer) Answer {
		if a.SourceQP() != sourceQP || fixed(a) || a.Ended() != Open {
			return a
		}
		return a.closed(EndedDREQ)
	})
}

// claimOf returns RDMA-CM's claim about a flow whose present connection began at a time in milliseconds, if there is also a claim about the
// flow of the other direction. The claim must not be older than the aging time, nor made later than claimDelay allows. Among several it prefers one whose PSN is near the given first PSN. It notes in the claim that it is about this flow. busy:
// another worker held the lock.
func (l *Learner) claimOf(x flowtable.Index, first, began uint32, now int64) (c flowClaim, ok, busy bool) {
	p := l.pairing
	if !p.cm.lock.try() {
		return c, false, true
	}
	defer p.cm.lock.release()
	qp := l.table.Key(x).DestQP
	key, side := p.groupOf(l.table.Key(x))
	group := p.hashOf(&key)
	h := claimHash(group, side, qp)
	set := p.cm.claimsOf(h)
	var found *flowClaim
	for i := range set {
		at := &set[i]
		if at.hash != h || p.aging > 0 && now-at.time > p.aging || int32(milliseconds(at.time)-began) > claimDelay || p.cm.claimThat(claimHash(group, 1-side, at.sourceQP), qp) == nil {
			continue
		}
		near := (first-at.psn)&psnMask <= firstSlack
		if found == nil || near {
			found = at
		}
		if near {
			break
		}
	}
	if found == nil {
		return c, false, false
	}
	found.owner = l.ref(x)
	return *found, true, false
}

// forgetClaims removes the claims that made two flows peer flows, when their connection has ended.
func (l *Learner) forgetClaims(pl, peer *Slot) {
	p := l.pairing
	if !p.cm.lock.trySoon() {
		l.skipped()
		return
	}
	defer p.cm.lock.release()
	h := p.hashOf(&pl.g.key)
	there, back := claimHash(h, pl.side, pl.id().qp()), claimHash(h, peer.side, peer.id().qp())
	for _, c := range [...]struct {
		claim *flowClaim
		owner flowRef
	}{{p.cm.claimThat(there, peer.id().qp()), pl.owner()}, {p.cm.claimThat(back, pl.id().qp()), peer.owner()}} {
		if c.claim == nil || c.claim.owner != c.owner {
			continue
		}
		made := c.claim.time
		p.cm.removeClaim(there, peer.id().qp(), made)
		p.cm.removeClaim(back, pl.id().qp(), made)
		return
	}
}
