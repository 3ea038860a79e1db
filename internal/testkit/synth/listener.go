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

// plan schedules a packet to pass the tap.
func (t *Traffic) plan(at int64, e Event) {
	n := len(t.unused)
	if n == 0 {
		t.unused = append(t.unused, uint32(len(t.planned)))
		t.planned = append(t.planned, Event{})
		n = 1
	}
	i := t.unused[n-1]
	t.unused = t.unused[:n-1]
	t.planned[i] = e
	t.queue.push(at, taskPlanned, i)
}

func (t *Traffic) takePlanned(i uint32) Event {
	e := t.planned[i]
	t.planned[i] = Event{}
	t.unused = append(t.unused, i)
	return e
}

// forgeConnect forges a REQ with the QPN of a live connection's WAN end, to a listener of some fabric host of the same tenant. If
// it finds no such connection, it returns a zero Event.
func (t *Traffic) forgeConnect(victim int) Event {
	for range 8 {
		if t.attackable(victim) {
			break
		}
		victim = t.recent()
	}
	if !t.attackable(victim) {
		return Event{}
	}
	c := &t.conns[victim]
	hosts := int32(t.c.Hosts[Fabric])
	place := c.place[Fabric]
	if t.rng.next()&1 == 0 {
		place = place/hosts*hosts + int32(t.rng.below(uint64(hosts)))
	}
	l := t.lure(victim, place, t.known(c.QP[WAN]))
	if t.c.Attack.KnowsPSNs {
		l.message.PSN, _ = t.guessPSN(victim, Fabric)
	}
	t.listen(&l)
	return t.forgedMAD(&l)
}

func (t *Traffic) attackable(victim int) bool {
	c := &t.conns[victim]
	return c.Transport != UD && c.Start <= t.now && t.live[victim] != nil
}

// foresee makes the attacker act on a connection before it begins.
func (t *Traffic) foresee(id int) {
	c := &t.conns[id]
	if c.Transport == UD {
		return
	}
	l := t.lure(id, c.place[Fabric], t.known(c.QP[WAN]))
	if t.c.Attack.KnowsPSNs {
		l.message.PSN = c.StartPSN[Fabric]
	}
	t.listen(&l)
	t.plan(t.now, t.forgedMAD(&l).asForged())
	if t.rng.next()&1 == 0 {
		peer := l.message.LocalComm
		l.message = t.chosen(id, packet.CMREP, t.known(c.QP[Fabric]))
		l.message.RemoteComm, l.message.TransactionID = peer, cm.Transaction(peer)
		if t.c.Attack.KnowsPSNs {
			l.message.PSN = c.StartPSN[Fabric]
		}
		t.plan(t.now+1+t.rng.upTo(4*t.c.Delay[Fabric]), t.forgedMAD(&l).asForged())
	}
}

// answerFirst makes the attacker answer a REQ that comes from the fabric.
func (t *Traffic) answerFirst(f *flight, e *Event) {
	if attrOf(e.MAD) != packet.CMREQ || f.from != Fabric || !t.rng.hit(t.c.fakeREP) {
		return
	}
	victim := int(f.conn)
	l := lure{victim: victim, place: t.conns[victim].place[Fabric], message: t.chosen(victim, packet.CMREP, t.guessQP(victim, WAN))}
	l.message.RemoteComm = uint32(t.rng.next())
	if v := t.live[victim]; v != nil && (t.c.Attack.Managers.KnowsIDs || t.c.Attack.KnowsPSNs) {
		l.message.RemoteComm = v.cm.id[Fabric]
	}
	l.message.TransactionID = cm.Transaction(l.message.RemoteComm)
	at := t.now + 1
	if t.rng.next()&1 == 0 {
		at += t.rng.upTo(4 * (t.c.Delay[Fabric] + t.c.Delay[WAN]))
	}
	t.plan(at, t.forgedMAD(&l).asForged())
}

// known is a QPN as the attacker knows it: correct, or random.
func (t *Traffic) known(qp uint32) uint32 {
	if t.c.Attack.KnowsQPs {
		return qp
	}
	return uint32(t.rng.below(1 << 24))
}

// lure makes a REQ from a connection's WAN host to a fabric host.
func (t *Traffic) lure(victim int, place int32, qp uint32) lure {
	l := lure{victim: victim, place: place, message: t.chosen(victim, packet.CMREQ, qp)}
	l.message.RemoteGID = t.hosts[Fabric][place].addr
	return l
}

// chosen makes a message from a connection's WAN host. The attacker chooses its communication ID and start PSN.
func (t *Traffic) chosen(victim int, attr packet.CMAttribute, qp uint32) packet.CM {
	c := &t.conns[victim]
	m := message(attr, c.Host[WAN], c.Host[Fabric])
	m.LocalComm, m.PSN, m.QPN = uint32(t.rng.next()), uint32(t.rng.below(1<<24)), qp
	m.TransactionID = cm.Transaction(m.LocalComm)
	ask(&m, uint16(32768+t.rng.below(28232)))
	return m
}

// forgedMAD is the packet of a forged message.
func (t *Traffic) forgedMAD(l *lure) Event {
	e := t.madBetween(l, WAN, &l.message)
	e.Packet.PSN = uint32(t.rng.below(256))
	return e
}

// listen makes the listener answer a REQ, and the WAN host refuse or ignore the answer.
func (t *Traffic) listen(l *lure) {
	h := &t.hosts[Fabric][l.place]
	rep := message(packet.CMREP, h.addr, l.message.LocalGID)
	rep.LocalComm, rep.RemoteComm, rep.TransactionID = uint32(t.rng.next()), l.message.LocalComm, l.message.TransactionID
	rep.QPN, rep.PSN = t.freshQP(Fabric, l.place), uint32(t.rng.below(1<<24))
	if t.c.StartPSN == PSNZero {
		rep.PSN = 0
	}
	at := t.now + 2*t.c.Delay[Fabric] + t.c.AckDelay
	n := t.c.Timeouts.MADs
	if t.rng.hit(t.c.refuse) {
		n = 1
		rej := packet.CM{Attribute: packet.CMREJ, LocalComm: rep.RemoteComm, RemoteComm: rep.LocalComm, TransactionID: rep.TransactionID,
			Answers: packet.CMAnswersREP, Reason: packet.CMInvalidCommID}
		t.plan(at+2*t.c.Delay[WAN]+t.c.AckDelay, t.genuineMAD(l, WAN, &rej))
	}
	for range n {
		t.plan(at, t.genuineMAD(l, Fabric, &rep))
		at += t.c.Timeouts.Manager
	}
	if t.c.Attack.Managers.Recycle {
		h.spent = append(h.spent, spentQP{rep.QPN, at})
	}
}

// genuineMAD is a host's own packet that the attacker has provoked.
func (t *Traffic) genuineMAD(l *lure, from End, m *packet.CM) Event {
	e := t.madBetween(l, from, m)
	h := &t.hosts[Fabric][l.place]
	if from == WAN {
		h = &t.hosts[WAN][t.conns[l.victim].place[WAN]]
	}
	e.SourceQP, e.Packet.PSN = packet.GSIQP, h.gsiPSN&0xffffff
	h.gsiPSN++
	return e
}

// madBetween is a MAD between the WAN host and the fabric host of a lure.
func (t *Traffic) madBetween(l *lure, from End, m *packet.CM) Event {
	e := Event{From: from, Packet: t.shown[l.victim][from], Conn: -1}
	fabric := t.hosts[Fabric][l.place].addr
	if from == Fabric {
		e.Packet.Src = fabric
	} else {
		e.Packet.Dst = fabric
	}
	e.carry(m)
	return e
}
