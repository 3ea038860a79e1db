package synth

import (
	"github.com/cnpgate/cnpgate/internal/cm"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// lure is a REQ forged to a listener of a fabric host, and its consequences.
type lure struct {
	victim  int   // the connection whose addresses are used, except for the fabric host's
	place   int32 // of the fabric host
	message packet.CM
}

// forgeConnect forges a REQ with the QPN of a live connection's WAN end, to a listener of some fabric host of the same tenant. If
// it finds no such connection, it returns a zero Event.
func (a *attacker) forgeConnect(victim int) Event {
	for range 8 {
		if a.attackable(victim) {
			break
		}
		victim = a.recent()
	}
	if !a.attackable(victim) {
		return Event{}
	}
	c := &a.conns[victim]
	hosts := int32(a.c.Hosts[Fabric])
	place := c.place[Fabric]
	if a.rng.Next()&1 == 0 {
		place = place/hosts*hosts + int32(a.rng.Below(uint64(hosts)))
	}
	l := a.lure(victim, place, a.known(c.QP[WAN]))
	if a.c.Attack.KnowsPSNs {
		l.message.PSN, _ = a.guessPSN(victim, Fabric)
	}
	a.listen(&l)
	return a.forgedMAD(&l)
}

func (a *attacker) attackable(victim int) bool {
	c := &a.conns[victim]
	return c.Transport != UD && c.Start <= a.now && a.live[victim] != nil
}

// foresee makes the attacker act on a connection before it begins.
func (a *attacker) foresee(id int) {
	c := &a.conns[id]
	if c.Transport == UD {
		return
	}
	l := a.lure(id, c.place[Fabric], a.known(c.QP[WAN]))
	if a.c.Attack.KnowsPSNs {
		l.message.PSN = c.StartPSN[Fabric]
	}
	a.listen(&l)
	a.plan(a.now, a.forgedMAD(&l).asForged())
	if a.rng.Next()&1 == 0 {
		peer := l.message.LocalComm
		l.message = a.chosen(id, packet.CMREP, a.known(c.QP[Fabric]))
		l.message.RemoteComm, l.message.TransactionID = peer, cm.Transaction(peer)
		if a.c.Attack.KnowsPSNs {
			l.message.PSN = c.StartPSN[Fabric]
		}
		a.plan(a.now+1+a.rng.upTo(4*a.c.Delay[Fabric]), a.forgedMAD(&l).asForged())
	}
}

// answerFirst makes the attacker answer a REQ that comes from the fabric.
func (a *attacker) answerFirst(f *flight, e *Event) {
	if attrOf(e.MAD) != packet.CMREQ || f.from != Fabric || !a.rng.hit(a.c.Attack.Managers.REP) {
		return
	}
	victim := int(f.conn)
	l := lure{victim: victim, place: a.conns[victim].place[Fabric], message: a.chosen(victim, packet.CMREP, a.guessQP(victim, WAN))}
	l.message.RemoteComm = uint32(a.rng.Next())
	if v := a.live[victim]; v != nil && (a.c.Attack.Managers.KnowsIDs || a.c.Attack.KnowsPSNs) {
		l.message.RemoteComm = v.sides[Fabric].cm.id
	}
	l.message.TransactionID = cm.Transaction(l.message.RemoteComm)
	at := a.now + 1
	if a.rng.Next()&1 == 0 {
		at += a.rng.upTo(4 * (a.c.Delay[Fabric] + a.c.Delay[WAN]))
	}
	a.plan(at, a.forgedMAD(&l).asForged())
}

// known is a QPN as the attacker knows it: correct, or random.
func (a *attacker) known(qp uint32) uint32 {
	if a.c.Attack.KnowsQPs {
		return qp
	}
	return uint32(a.rng.Below(1 << 24))
}

// lure makes a REQ from a connection's WAN host to a fabric host.
func (a *attacker) lure(victim int, place int32, qp uint32) lure {
	l := lure{victim: victim, place: place, message: a.chosen(victim, packet.CMREQ, qp)}
	l.message.RemoteGID = a.hosts[Fabric][place].addr
	return l
}

// chosen makes a message from a connection's WAN host. The attacker chooses its communication ID and start PSN.
func (a *attacker) chosen(victim int, attr packet.CMAttribute, qp uint32) packet.CM {
	c := &a.conns[victim]
	m := message(attr, c.Host[WAN], c.Host[Fabric])
	m.LocalComm, m.PSN, m.QPN = uint32(a.rng.Next()), uint32(a.rng.Below(1<<24)), qp
	m.TransactionID = cm.Transaction(m.LocalComm)
	ask(&m, uint16(32768+a.rng.Below(28232)))
	return m
}

// forgedMAD is the packet of a forged message.
func (a *attacker) forgedMAD(l *lure) Event {
	e := a.madBetween(l, WAN, &l.message)
	e.Packet.PSN = uint32(a.rng.Below(256))
	return e
}

// listen makes the listener answer a REQ, and the WAN host refuse or ignore the answer.
func (a *attacker) listen(l *lure) {
	h := &a.hosts[Fabric][l.place]
	rep := message(packet.CMREP, h.addr, l.message.LocalGID)
	rep.LocalComm, rep.RemoteComm, rep.TransactionID = uint32(a.rng.Next()), l.message.LocalComm, l.message.TransactionID
	rep.QPN, rep.PSN = a.freshQP(Fabric, l.place), uint32(a.rng.Below(1<<24))
	if a.c.StartPSN == PSNZero {
		rep.PSN = 0
	}
	at := a.now + 2*a.c.Delay[Fabric] + ackDelay
	n := a.c.Timeouts.MADs
	if a.rng.hit(a.c.Attack.Managers.Refused) {
		n = 1
		rej := packet.CM{Attribute: packet.CMREJ, LocalComm: rep.RemoteComm, RemoteComm: rep.LocalComm, TransactionID: rep.TransactionID,
			Answers: packet.CMAnswersREP, Reason: packet.CMInvalidCommID}
		a.plan(at+2*a.c.Delay[WAN]+ackDelay, a.genuineMAD(l, WAN, &rej))
	}
	for range n {
		a.plan(at, a.genuineMAD(l, Fabric, &rep))
		at += a.c.Timeouts.Manager
	}
	if a.c.Attack.Managers.Recycle {
		h.spent = append(h.spent, spentQP{rep.QPN, at})
	}
}

// genuineMAD is a host's own packet that the attacker has provoked.
func (a *attacker) genuineMAD(l *lure, from End, m *packet.CM) Event {
	e := a.madBetween(l, from, m)
	h := &a.hosts[Fabric][l.place]
	if from == WAN {
		h = &a.hosts[WAN][a.conns[l.victim].place[WAN]]
	}
	e.SourceQP, e.Packet.PSN = packet.GSIQP, h.gsiPSN&packet.PSNMask
	h.gsiPSN++
	return e
}

// madBetween is a MAD between the WAN host and the fabric host of a lure.
func (a *attacker) madBetween(l *lure, from End, m *packet.CM) Event {
	e := Event{From: from, Packet: a.shown[l.victim][from], Conn: -1}
	fabric := a.hosts[Fabric][l.place].addr
	if from == Fabric {
		e.Packet.Src = fabric
	} else {
		e.Packet.Dst = fabric
	}
	e.carry(m)
	return e
}
