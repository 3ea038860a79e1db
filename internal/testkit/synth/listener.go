package synth

// lure is a REQ that the attacker forges to a listener of a fabric host, and what comes of it.
type lure struct {
	victim  int   // connection of which the addresses are, but for the fabric host's
	place   int32 // of the fabric host
	message cmMessage
}

// plan makes a packet pass the tap at a time.
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
		l.message.psn, _ = t.guessPSN(victim, Fabric)
	}
	t.listen(&l)
	return t.forgedMAD(&l)
}

func (t *Traffic) attackable(victim int) bool {
	c := &t.conns[victim]
	return c.Transport != UD && c.Start <= t.now && t.live[victim] != nil
}

// foresee has the attacker act on a connection that is to begin.
func (t *Traffic) foresee(id int) {
	c := &t.conns[id]
	if c.Transport == UD {
		return
	}
	l := t.lure(id, c.place[Fabric], t.known(c.QP[WAN]))
	if t.c.Attack.KnowsPSNs {
		l.message.psn = c.StartPSN[Fabric]
	}
	t.listen(&l)
	t.plan(t.now, t.forgedMAD(&l).asForged())
	if t.rng.next()&1 == 0 {
		peer := l.message.localID
		l.message = t.chosen(id, attrREP, t.known(c.QP[Fabric]))
		l.message.peerID, l.message.tid = peer, transaction(peer)
		if t.c.Attack.KnowsPSNs {
			l.message.psn = c.StartPSN[Fabric]
		}
		t.plan(t.now+1+t.rng.upTo(4*t.c.Delay[Fabric]), t.forgedMAD(&l).asForged())
	}
}

// answerFirst has the attacker answer a REQ that comes from the fabric.
func (t *Traffic) answerFirst(f *flight, e *Event) {
	if attrOf(e.MAD) != attrREQ || f.from != Fabric || !t.rng.hit(t.c.fakeREP) {
		return
	}
	victim := int(f.conn)
	l := lure{victim: victim, place: t.conns[victim].place[Fabric], message: t.chosen(victim, attrREP, t.guessQP(victim, WAN))}
	l.message.peerID = uint32(t.rng.next())
	if v := t.live[victim]; v != nil && (t.c.Attack.Managers.KnowsIDs || t.c.Attack.KnowsPSNs) {
		l.message.peerID = v.cm.id[Fabric]
	}
	l.message.tid = transaction(l.message.peerID)
	at := t.now + 1
	if t.rng.next()&1 == 0 {
		at += t.rng.upTo(4 * (t.c.Delay[Fabric] + t.c.Delay[WAN]))
	}
	t.plan(at, t.forgedMAD(&l).asForged())
}

// known is a QPN as the attacker has it: right, or random.
func (t *Traffic) known(qp uint32) uint32 {
	if t.c.Attack.KnowsQPs {
		return qp
	}
	return uint32(t.rng.below(1 << 24))
}

// lure makes a REQ from a connection's WAN host to a fabric host.
func (t *Traffic) lure(victim int, place int32, qp uint32) lure {
	l := lure{victim: victim, place: place, message: t.chosen(victim, attrREQ, qp)}
	l.message.peer = t.hosts[Fabric][place].addr
	return l
}

// chosen makes a message from a connection's WAN host, of which the attacker chooses communication ID and start PSN.
func (t *Traffic) chosen(victim int, attr uint16, qp uint32) cmMessage {
	c := &t.conns[victim]
	m := cmMessage{attr: attr, localID: uint32(t.rng.next()), psn: uint32(t.rng.below(1 << 24)), qp: qp, local: c.Host[WAN], peer: c.Host[Fabric],
		guid: guid(c.Host[WAN]), service: cmService, source: uint16(32768 + t.rng.below(28232)), mtu: 3, responders: window, deep: window}
	m.flowLabel, m.tid = cmFlowLabel(m.source, m.service), transaction(m.localID)
	return m
}

// forgedMAD is the packet of a forged message.
func (t *Traffic) forgedMAD(l *lure) Event {
	e := t.madBetween(l, WAN, &l.message)
	e.Packet.PSN = uint32(t.rng.below(256))
	return e
}

// listen has the listener answer a REQ, and the WAN host refuse the answer or ignore it.
func (t *Traffic) listen(l *lure) {
	h := &t.hosts[Fabric][l.place]
	rep := cmMessage{attr: attrREP, localID: uint32(t.rng.next()), peerID: l.message.localID, tid: l.message.tid, qp: t.freshQP(Fabric, l.place),
		psn: uint32(t.rng.below(1 << 24)), guid: guid(h.addr), responders: window, deep: window}
	if t.c.StartPSN == PSNZero {
		rep.psn = 0
	}
	at := t.now + 2*t.c.Delay[Fabric] + t.c.AckDelay
	n := t.c.Timeouts.MADs
	if t.rng.hit(t.c.refuse) {
		n = 1
		rej := cmMessage{attr: attrREJ, localID: rep.peerID, peerID: rep.localID, tid: rep.tid, refused: 1, reason: 6} // invalid communication ID
		t.plan(at+2*t.c.Delay[WAN]+t.c.AckDelay, t.genuineMAD(l, WAN, &rej))
	}
	for range n {
		t.plan(at, t.genuineMAD(l, Fabric, &rep))
		at += t.c.Timeouts.Manager
	}
	if t.c.Attack.Managers.Recycle {
		h.spent = append(h.spent, spentQP{rep.qp, at})
	}
}

// genuineMAD is a packet of a host that the attacker has provoked.
func (t *Traffic) genuineMAD(l *lure, from End, m *cmMessage) Event {
	e := t.madBetween(l, from, m)
	h := &t.hosts[Fabric][l.place]
	if from == WAN {
		h = &t.hosts[WAN][t.conns[l.victim].place[WAN]]
	}
	e.SourceQP, e.Packet.PSN = gsiQP, h.gsiPSN&0xffffff
	h.gsiPSN++
	return e
}

// madBetween is a MAD between the WAN host and the fabric host of a lure.
func (t *Traffic) madBetween(l *lure, from End, m *cmMessage) Event {
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
