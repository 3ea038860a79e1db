package synth

import "github.com/cnpgate/cnpgate/internal/packet"

// attack forges a packet that comes in from the WAN under the address of some host, and goes on while there is traffic.
func (t *Traffic) attack() {
	if t.over() {
		return
	}
	t.queue.push(t.now+1+t.rng.upTo(2*t.c.Attack.Interval), taskAttack, 0)
	var can []func(int) Event
	if t.c.Attack.ACK {
		can = append(can, t.forgeACK)
	}
	if t.c.Attack.CNP {
		can = append(can, t.forgeCNP)
	}
	if t.c.Attack.CM {
		can = append(can, t.forgeCM)
	}
	if t.c.Attack.Request {
		can = append(can, t.forgeRequest)
	}
	if t.c.Attack.Managers.Connect {
		can = append(can, t.forgeConnect)
	}
	if len(can) == 0 {
		return
	}
	if e := can[t.rng.below(uint64(len(can)))](t.recent()); e.Length() > 0 {
		t.later(e.asForged())
	}
}

// recent picks one of the latest connections.
func (t *Traffic) recent() int {
	n := min(len(t.conns), t.c.Connections)
	return len(t.conns) - 1 - int(t.rng.below(uint64(n)))
}

func (e Event) asForged() Event {
	e.Forged, e.Conn, e.SourceQP = true, -1, 0
	e.Resent, e.Lost = false, false
	return e
}

// later lets a packet pass the tap next.
func (t *Traffic) later(e Event) {
	t.pending = append(t.pending, e)
	t.queue.push(t.now, taskShow, 0)
}

// blank begins a packet from the victim's WAN host to its fabric host. What the attacker doesn't know is guessed.
func (t *Traffic) blank(victim int, op packet.Opcode, payload uint16) Event {
	e := Event{From: WAN, Packet: t.shown[victim][WAN]}
	p := &e.Packet
	p.Opcode, p.DSCP, p.ECN, p.SrcPort = op, t.c.DSCP, t.c.ecn(), portBase|uint16(t.rng.below(1<<14))
	p.DestQP = t.guessQP(victim, Fabric)
	if t.c.Attack.KnowsPSNs {
		p.SrcPort = t.conns[victim].Port[WAN]
	}
	setLengths(p, payload)
	return e
}

// guessQP guesses a QPN of a connection's host.
func (t *Traffic) guessQP(victim int, end End) uint32 {
	if !t.c.Attack.KnowsQPs {
		return uint32(t.rng.below(1 << 24))
	}
	c := &t.conns[victim]
	for range 8 {
		if other := &t.conns[t.recent()]; other.Host[end] == c.Host[end] && other.VID == c.VID && other.TPID == c.TPID {
			return other.QP[end]
		}
	}
	return c.QP[end]
}

// guessPSN guesses a PSN that an end of a connection has sent, and how many messages that makes.
func (t *Traffic) guessPSN(victim int, end End) (psn, msn uint32) {
	l := t.live[victim]
	switch {
	case !t.c.Attack.KnowsPSNs:
		return uint32(t.rng.below(1 << 24)), uint32(t.rng.below(1 << 24))
	case l == nil:
		return t.conns[victim].StartPSN[end], 0
	}
	s := &l.sides[end]
	return (s.una + uint32(t.rng.below(uint64(s.high-s.una)+1))) & 0xffffff, uint32(s.posted - s.count)
}

func (t *Traffic) forgeACK(victim int) Event {
	e := t.blank(victim, packet.RCAcknowledge, 0)
	e.Syndrome = syndromeACK
	e.Packet.PSN, e.MSN = t.guessPSN(victim, Fabric)
	return e
}

func (t *Traffic) forgeCNP(victim int) Event {
	e := t.blank(victim, packet.CNP, cnpReserved)
	p := &e.Packet
	p.DSCP, p.ECN, p.BTHFlags, p.SrcPort = cnpDSCP, 0, packet.BECN, 0
	return e
}

var forgedAttrs = [...]uint16{attrREQ, attrREP, attrRTU, attrDREQ, attrDREP, attrREJ, attrSIDRREP, attrMRA, attrLAP, attrAPR}

// forgeCM forges a message of RDMA-CM that would tie wrong QPs together or cut right ones.
func (t *Traffic) forgeCM(victim int) Event {
	c := &t.conns[victim]
	attrs := forgedAttrs[:7]
	if t.c.Attack.Managers.All {
		attrs = forgedAttrs[:]
	}
	m := cmMessage{attr: attrs[t.rng.below(uint64(len(attrs)))], localID: uint32(t.rng.next()), peerID: uint32(t.rng.next()),
		psn: uint32(t.rng.below(1 << 24)), qp: t.guessQP(victim, WAN), local: c.Host[WAN], peer: c.Host[Fabric], guid: guid(c.Host[WAN]),
		service: cmService, source: uint16(32768 + t.rng.below(28232)), mtu: 3, responders: window, deep: window}
	if l := t.live[victim]; l != nil && (t.c.Attack.KnowsPSNs || t.c.Attack.Managers.KnowsIDs) { // who sees PSNs sees communication IDs
		m.localID, m.peerID = l.cm.id[WAN], l.cm.id[Fabric]
	}
	if m.attr == attrDREQ || m.attr == attrLAP { // these name the receiver's QPN
		m.qp = t.guessQP(victim, Fabric)
	}
	m.flowLabel, m.tid = cmFlowLabel(m.source, m.service), transaction(m.localID)
	e := t.blank(victim, packet.UDSendOnly, MADLen)
	e.carry(&m)
	e.Packet.PSN = uint32(t.rng.below(256))
	return e
}

// carry makes an event a MAD from QP 1 to QP 1.
func (e *Event) carry(m *cmMessage) {
	e.MAD, e.AckReq = m.mad(), true
	p := &e.Packet
	p.Opcode, p.DestQP, p.SourceQP, p.DSCP, p.ECN, p.SrcPort = packet.UDSendOnly, gsiQP, gsiQP, 0, 0, softUDPort(gsiQP)
	setLengths(p, MADLen)
}

// forgeRequest forges a WRITE to a QP of a fabric host. If the attacker knows PSNs, it is one that the WAN's end has sent, or sends next.
func (t *Traffic) forgeRequest(victim int) Event {
	e := t.blank(victim, packet.RCWriteOnly, uint16(t.c.MTU))
	e.DMALength, e.AckReq = uint32(t.c.MTU), true
	e.Packet.PSN, _ = t.guessPSN(victim, WAN)
	return e
}

// mimic is the attacker on the path: a copy of a response or CNP to another QP of the same host, just before or after it.
func (t *Traffic) mimic(e *Event) {
	p := &e.Packet
	if p.Opcode.Headers()&packet.HasAETH == 0 && p.Opcode != packet.CNP {
		return
	}
	c, to := &t.conns[e.Conn], 1-e.From
	for range 8 {
		other := &t.conns[t.recent()]
		if other.Host[to] != c.Host[to] || other.VID != c.VID || other.TPID != c.TPID || other.QP[to] == p.DestQP {
			continue
		}
		second := *e
		forged := e
		if t.rng.next()&1 == 0 {
			forged = &second
		}
		forged.Packet.DestQP = other.QP[to]
		*forged = forged.asForged()
		t.later(second)
		return
	}
}
