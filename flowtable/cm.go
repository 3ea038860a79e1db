package flowtable

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/internal/packet"
)

const waysACMSet = 4

// cmRecord is a connection that RDMA-CM sets up (IBTA 12.9): the communication ID and the QP of each end, by side of the group.
type cmRecord struct {
	hash uint64 // of the group, the requester's side and its communication ID; 0 for none
	time int64  // of the last message, ns
	comm [2]uint32
	qpn  [2]uint32 // 0 until the end has said it
	have uint8     // a bit for each side whose message was seen
	_    [7]byte
}

type cmSet [waysACMSet]cmRecord

// knownQP is what RDMA-CM said of a flow: which QP sends it.
type knownQP struct {
	hash     uint64 // of the group, the side and the destination QP; 0 for none
	time     int64  // ns
	sourceQP uint32
	_        uint32
}

type knownSet [waysACMSet]knownQP

func mix(h uint64, side int, number uint32) uint64 {
	return fold(h^0x9e3779b97f4a7c15, uint64(side+1)<<32|uint64(number)) | 1
}

func knownHash(group uint64, side int, destQP uint32) uint64 { return mix(group, side, destQP) }
func cmHash(group uint64, side int, comm uint32) uint64 {
	return mix(bits.RotateLeft64(group, 32), side, comm)
}

// findKnown is what RDMA-CM has said of a flow, not longer than the aging time ago. Under the claim.
func (p *Pairing) findKnown(h uint64, now int64) *knownQP {
	set := &p.known[h%uint64(len(p.known))]
	for i := range set {
		if k := &set[i]; k.hash == h && (p.aging <= 0 || now-k.time <= p.aging) {
			return k
		}
	}
	return nil
}

// keepKnown remembers a flow's source QP, in the place of what was said longest ago if need be. Under the claim.
func (p *Pairing) keepKnown(h uint64, sourceQP uint32, now int64) {
	set := &p.known[h%uint64(len(p.known))]
	oldest := &set[0]
	for i := range set {
		if set[i].hash == h {
			oldest = &set[i]
			break
		}
		if set[i].time < oldest.time {
			oldest = &set[i]
		}
	}
	*oldest = knownQP{hash: h, time: now, sourceQP: sourceQP}
}

// forgetKnown forgets that a flow comes from a QP, unless another has been said since. Under the claim.
func (p *Pairing) forgetKnown(h uint64, sourceQP uint32) {
	set := &p.known[h%uint64(len(p.known))]
	for i := range set {
		if set[i].hash == h && set[i].sourceQP == sourceQP {
			set[i] = knownQP{}
		}
	}
}

// findCM is the record with a hash, or nil. Under the claim.
func (p *Pairing) findCM(h uint64) *cmRecord {
	set := &p.cm[h%uint64(len(p.cm))]
	for i := range set {
		if set[i].hash == h {
			return &set[i]
		}
	}
	return nil
}

// makeCM is the record with a hash, a new one in the place of the one that was used longest ago if there was none. Under the claim.
func (p *Pairing) makeCM(h uint64, now int64) *cmRecord {
	if r := p.findCM(h); r != nil {
		return r
	}
	set := &p.cm[h%uint64(len(p.cm))]
	oldest := &set[0]
	for i := range set {
		if set[i].time < oldest.time {
			oldest = &set[i]
		}
	}
	*oldest = cmRecord{hash: h, time: now}
	return oldest
}

// ObserveCM learns from a communication management message (IBTA 12.6). k is the flow of the packet that carried it: to QP 1, as Lookup
// takes it.
func (t *Table) ObserveCM(k *Key, m *packet.CM, now int64) {
	p := t.pairing
	if p == nil {
		return
	}
	if !p.claimSoon() {
		t.skipped++
		return
	}
	defer p.release()
	t.taken[EvidenceCM]++
	t.dirty = true
	key, side := p.groupOf(k)
	c := cmMessage{t: t, key: key, h: p.hashOf(&key), side: side, m: m, now: now}
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

// cmMessage is a message being taken in, under the claim.
type cmMessage struct {
	t    *Table
	key  groupKey
	h    uint64 // of key
	side int    // of the sender
	m    *packet.CM
	now  int64
}

// connectionQP tells whether a QP can be one end of a connection.
func connectionQP(qp uint32) bool { return qp > packet.GSIQP && qp < 0xffffff }

// request takes a REQ: a new connection, or the same again.
func (c *cmMessage) request() {
	if !connectionQP(c.m.QPN) {
		return
	}
	r := c.t.pairing.makeCM(cmHash(c.h, c.side, c.m.LocalComm), c.now)
	if r.have>>c.side&1 != 0 && r.qpn[c.side] == c.m.QPN {
		return // sent again
	}
	if r.have>>c.side&1 != 0 { // the ID serves another connection now
		r.have = 0
	}
	c.half(r)
}

// reply takes a REP, which may come before the REQ that another worker has yet to see.
func (c *cmMessage) reply() {
	if !connectionQP(c.m.QPN) {
		return
	}
	r := c.t.pairing.makeCM(cmHash(c.h, 1-c.side, c.m.RemoteComm), c.now)
	if r.have == 3 || r.have>>c.side&1 != 0 && r.qpn[c.side] == c.m.QPN && r.comm[c.side] == c.m.LocalComm {
		return // sent again; or another's, or forged, and then the first one stands
	}
	c.half(r)
	r.comm[1-c.side] = c.m.RemoteComm
}

// half notes one end of a connection, whose QP no other connection can use any more, and ties the two when both are there.
func (c *cmMessage) half(r *cmRecord) {
	r.have |= 1 << c.side
	r.comm[c.side], r.qpn[c.side], r.time = c.m.LocalComm, c.m.QPN, c.now
	c.reuse()
	if r.have == 3 {
		c.connect(r)
	}
}

// connect makes known which QP sends each of the connection's flows, to those there are and to those that begin later.
func (c *cmMessage) connect(r *cmRecord) {
	p := c.t.pairing
	var places [2]place
	var found [2]bool
	for side := range 2 { // the flow of a side goes to the other side's QP
		to, from := r.qpn[1-side], r.qpn[side]
		p.keepKnown(knownHash(c.h, side, to), from, c.now)
		places[side], found[side] = c.flow(side, to)
		if found[side] {
			c.t.confirm(places[side].owner(), from, EvidenceCM)
		}
	}
	if found[0] && found[1] {
		p.tie(&places[0], &places[1])
	}
}

// flow is the place of the flow from a side to a QP of the other.
func (c *cmMessage) flow(side int, to uint32) (place, bool) {
	g, used := c.flows(side)
	for n := range used {
		if pl, _, ok := c.t.pairing.live(g, side, n); ok && pl.id().qp() == to {
			return pl, true
		}
	}
	return place{}, false
}

// flows are the group's, and how many places of a side were ever in use.
func (c *cmMessage) flows(side int) (g *group, used int) {
	x := c.t.pairing.findGroup(&c.key, c.h)
	if x == 0 {
		return nil, 0
	}
	g = &c.t.pairing.groups[x]
	return g, int(g.used[side].Load())
}

// live is the place n of a side with the state of its flow; ok is false if it is empty.
func (p *Pairing) live(g *group, side, n int) (pl place, s state, ok bool) {
	if pl, ok = p.at(g, side, n); !ok {
		return pl, 0, false
	}
	e, s := p.entryOf(pl.owner())
	return pl, s, e != nil
}

// reuse closes the records of flows that the sender's QP had in another connection.
func (c *cmMessage) reuse() {
	if pl, ok := c.flow(1-c.side, c.m.QPN); ok {
		c.close(&pl, EndedReuse)
	}
	g, used := c.flows(c.side)
	for n := range used {
		if pl, s, ok := c.t.pairing.live(g, c.side, n); ok && s.qpState() == Confirmed && s.qp() == c.m.QPN {
			c.close(&pl, EndedReuse)
		}
	}
}

// close ends a flow's record, and the tie to its mate.
func (c *cmMessage) close(pl *place, why Ending) {
	p := c.t.pairing
	for {
		e, s := p.entryOf(pl.owner())
		if e == nil || s.ending() >= why || s.qpState() == Confirmed && (s.evidence() == EvidenceStatic || s.evidence() == EvidenceHint) {
			return
		}
		if e.close(s, why) {
			break
		}
	}
	if why == EndedReuse {
		c.t.reuses++
	}
	p.part(pl)
}

// reject takes a REJ: the connection does not come about.
func (c *cmMessage) reject() {
	p := c.t.pairing
	for _, h := range [2]uint64{cmHash(c.h, c.side, c.m.LocalComm), cmHash(c.h, 1-c.side, c.m.RemoteComm)} {
		r := p.findCM(h)
		if r == nil || r.have == 3 && (r.comm[c.side] != c.m.LocalComm || r.comm[1-c.side] != c.m.RemoteComm) {
			continue
		}
		c.end(r, EndedDREQ)
	}
}

// disconnect takes a DREQ, from either end.
func (c *cmMessage) disconnect() {
	p := c.t.pairing
	for _, h := range [2]uint64{cmHash(c.h, c.side, c.m.LocalComm), cmHash(c.h, 1-c.side, c.m.RemoteComm)} {
		r := p.findCM(h)
		if r != nil && r.have == 3 && r.comm[c.side] == c.m.LocalComm && r.comm[1-c.side] == c.m.RemoteComm && r.qpn[1-c.side] == c.m.QPN {
			c.end(r, EndedDREQ)
		}
	}
}

// end forgets a connection, and closes the records of its flows.
func (c *cmMessage) end(r *cmRecord, why Ending) {
	p := c.t.pairing
	for side := range 2 {
		if r.have != 3 {
			break
		}
		to, from := r.qpn[1-side], r.qpn[side]
		p.forgetKnown(knownHash(c.h, side, to), from)
		if pl, ok := c.flow(side, to); ok {
			if e, s := p.entryOf(pl.owner()); e != nil && s.qp() == from {
				pl.p.ended[pl.k].Store(c.now)
				c.close(&pl, why)
			}
		}
	}
	*r = cmRecord{}
}
