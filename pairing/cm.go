package pairing

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/cm"
	"github.com/cnpgate/cnpgate/pairing/store"
)

const (
	// madCost is the budget that a message of a connection uses.
	madCost = 128
	// readsAtOnce bounds the waiting messages that a StartBurst or a Sweep reads. They use no budget, so they are also read in steps
	// without a burst.
	readsAtOnce = 4
)

// milliseconds is a time, ns, in milliseconds modulo 2^32.
func milliseconds(ns int64) uint32 { return cm.Milliseconds(ns) }

// observeCM learns from a communication management message. k is the key of the packet that carried it.
func (l *Learner) observeCM(k *flowtable.Key, m *packet.CM, now int64) {
	l.counts.change().Evidence[EvidenceCM]++
	switch m.Attribute {
	case packet.CMREQ, packet.CMREP:
		if !packet.ConnectionQP(m.QPN) || m.Attribute == packet.CMREQ && (m.LocalGID != k.Src || m.RemoteGID != k.Dst) {
			return
		}
	case packet.CMREJ, packet.CMDREQ:
	default:
		return
	}
	key, side := l.pairing.groupOf(k)
	c := cm.Message{Group: l.pairing.hashOf(&key), Time: now, Local: m.LocalComm, Remote: m.RemoteComm, QPN: m.QPN, PSN: m.PSN,
		Attribute: m.Attribute, Side: uint8(side)}
	if m.FlowLabel != 0 {
		c.Port = packet.LabelPort(m.FlowLabel)
	}
	l.receiveCM(&c)
}

// receiveCM reads a message, or lets it wait. A message is dropped if the queue has no space for it.
func (l *Learner) receiveCM(m *cm.Message) {
	if l.waiting.Len() == 0 && l.budget > 0 && l.pairing.readCM(l, m) {
		l.budget -= madCost
		return
	}
	if !l.waiting.Add(m) {
		l.counts.change().CMDropped++
	}
	l.waiting.publish()
}

// readWaiting reads messages that have waited.
func (l *Learner) readWaiting() {
	if l.waiting.Len() == 0 {
		return
	}
	for range readsAtOnce {
		m := l.waiting.Oldest()
		if m == nil || !l.pairing.readCM(l, m) {
			break
		}
		l.waiting.Remove()
	}
	l.waiting.publish()
}

// waiting has the messages of RDMA-CM that wait.
type waiting struct {
	cm.Queue
	oldest atomic.Int64 // when the first of them arrived, 0 if there is none; for the other workers
}

// publish informs the other workers about the time of the oldest message.
func (w *waiting) publish() {
	time := int64(0)
	if m := w.Oldest(); m != nil {
		time = m.Time
	}
	if w.oldest.Load() != time {
		w.oldest.Store(time)
	}
}

// readCM reads a message if no other worker has an older one and no lock is held: the messages of a connection may come through two
// workers, and a DREQ before its REP means nothing.
func (p *Pairing) readCM(l *Learner, m *cm.Message) bool {
	for _, o := range p.learners {
		if t := o.waiting.oldest.Load(); o != l && t != 0 && t < m.Time {
			return false
		}
	}
	if !p.cmLock.Try() {
		return false
	}
	defer p.cmLock.Release()
	switch m.Attribute {
	case packet.CMREQ:
		p.cm.Request(m)
	case packet.CMREP:
		p.cm.Reply(m)
	default: // a DREQ, or a REJ: the connection is not set up. Either end may send it
		for by := range 2 {
			c := p.cm.About(m, by)
			if c == nil {
				continue
			}
			if !p.closeFlows(l, m, c) {
				return false
			}
			p.cm.End(m.Group, c)
		}
	}
	return true
}

// closeFlows closes the flow records of a connection: those of the flows between its two QPs, unless there is a claim about a later
// connection of the same two QPs. It returns false if another worker holds a lock; then the message must be read again.
func (p *Pairing) closeFlows(l *Learner, m *cm.Message, c *cm.Record) bool {
	qpn, made, ok := c.QPs()
	if !ok {
		return true
	}
	s := p.store
	if !s.Lock.Try() {
		return false
	}
	var on [2][store.Depths]*store.Group
	var n [2]int
	whole := s.Find(nil, m.Group)
	for i, port := range [...]uint16{packet.SourcePort(qpn[0], qpn[1]), c.Port()} {
		n[i] = s.Way(whole, port, &on[i])
	}
	s.Lock.Release()
	for i := range on {
		for _, g := range on[i][:n[i]] {
			if !p.closeFlowsIn(l, g, m, qpn, made) {
				return false
			}
		}
	}
	return true
}

// closeFlowsIn is closeFlows in one group.
func (p *Pairing) closeFlowsIn(l *Learner, g *store.Group, m *cm.Message, qpn [2]uint32, made int64) bool {
	s := p.store
	if !g.Lock().Try() {
		return false
	}
	defer g.Lock().Release()
	if g.Flows(0)+g.Flows(1) == 0 || g.Hash() != m.Group { // it was dropped
		return true
	}
	for side := range 2 {
		to, from := qpn[1-side], qpn[side]
		if c := p.cm.Claim(m.Group, side, to, from); c != nil && c.Time != made {
			continue
		}
		used := g.Used(side)
		l.budget -= used
		for n := range used {
			if slot, ok := s.Occupied(g, side, n); ok && slot.Identity().QP() == to {
				p.closeFlow(&slot, from, m.Time)
			}
		}
	}
	return true
}

// closeFlow closes a flow record, if the flow comes from the given QP.
func (p *Pairing) closeFlow(slot *store.Slot, sourceQP uint32, now int64) {
	if a, ok := p.answers.of(slot.Ref()); !ok || a.SourceQP() != sourceQP {
		return
	}
	slot.Ended().Store(milliseconds(now))
	p.answers.change(slot.Ref(), func(a Answer) Answer {
		if a.SourceQP() != sourceQP || a.fixed() || a.Ended() != Open {
			return a
		}
		return a.closed(EndedDREQ)
	})
}

// claimOf returns RDMA-CM's claim about a flow whose present connection began at a time in milliseconds; busy: another worker held the lock.
func (p *Pairing) claimOf(k *flowtable.Key, flow store.Ref, first, began uint32, now int64) (c cm.Claim, ok, busy bool) {
	if !p.cmLock.Try() {
		return c, false, true
	}
	defer p.cmLock.Release()
	key, side := p.groupOf(k)
	c, ok = p.cm.Find(&cm.Flow{Group: p.hashOf(&key), Side: side, DestQP: k.DestQP, First: first, Slack: firstSlack, Began: began,
		Owner: uint64(flow)}, now)
	return c, ok, false
}

// findClaim looks for RDMA-CM's claim about the flow, if claims were added since the last call.
func (f *flow) findClaim(now int64) {
	added := f.l.pairing.cm.Added()
	if f.seenCM == added || added == 1 || !f.l.spend(madCost/4) {
		return
	}
	c, ok, busy := f.l.pairing.claimOf(f.l.table.Key(f.index), f.l.ref(f.index), f.first, f.began, now)
	if busy { // look again at the flow's next judgement
		return
	}
	f.seenCM = added
	if !ok {
		return
	}
	if f.lock() {
		f.slot.SetClaim(store.MakeClaim(c.SourceQP, c.PSN, c.Port))
		f.unlock()
	} else {
		f.seenCM = 0
	}
}

// forgetClaims removes the claims by which two flows were paired, when their connection has ended. It returns false if another worker held
// the lock.
func (p *Pairing) forgetClaims(slot, peer *store.Slot) bool {
	if !p.cmLock.TrySoon() {
		return false
	}
	defer p.cmLock.Release()
	var to [2]uint32
	var owners [2]uint64
	for _, s := range [...]*store.Slot{slot, peer} {
		to[s.Side()], owners[s.Side()] = s.Identity().QP(), uint64(s.Ref())
	}
	p.cm.Forget(slot.Group().Hash(), slot.Side(), to, owners)
	return true
}
