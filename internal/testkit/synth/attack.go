package synth

import (
	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/cm"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/transport"
)

// attack forges a packet that arrives from the WAN with the address of some host. It continues while there is traffic.
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

// later makes a packet the next one to pass the tap.
func (t *Traffic) later(e Event) {
	t.pending = append(t.pending, e)
	t.queue.push(t.now, taskShow, 0)
}

// blank begins a packet from the victim's WAN host to its fabric host. Unknown fields are guessed.
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

// guessPSN guesses a PSN that an end of a connection has sent, and the number of messages up to it.
func (t *Traffic) guessPSN(victim int, end End) (psn, msn uint32) {
	l := t.live[victim]
	switch {
	case !t.c.Attack.KnowsPSNs:
		return uint32(t.rng.below(1 << 24)), uint32(t.rng.below(1 << 24))
	case l == nil:
		return t.conns[victim].StartPSN[end], 0
	}
	s := &l.sides[end]
	una, n := s.requester.InFlight()
	return (una + uint32(t.rng.below(uint64(n)+1))) & 0xffffff, uint32(s.posted - s.requester.Posted())
}

func (t *Traffic) forgeACK(victim int) Event {
	e := t.blank(victim, packet.RCAcknowledge, 0)
	e.Syndrome = transport.SyndromeACK
	e.Packet.PSN, e.MSN = t.guessPSN(victim, Fabric)
	return e
}

func (t *Traffic) forgeCNP(victim int) Event {
	e := t.blank(victim, packet.CNP, cnpReserved)
	p := &e.Packet
	p.DSCP, p.ECN, p.BTHFlags, p.SrcPort = cnpDSCP, 0, packet.BECN, 0
	return e
}

var forgedAttrs = [...]packet.CMAttribute{packet.CMREQ, packet.CMREP, packet.CMRTU, packet.CMDREQ, packet.CMDREP, packet.CMREJ, packet.CMSIDRREP, packet.CMMRA, packet.CMLAP, packet.CMAPR}

// forgeCM forges a message of RDMA-CM that would pair the wrong QPs or end a connection.
func (t *Traffic) forgeCM(victim int) Event {
	c := &t.conns[victim]
	attrs := forgedAttrs[:7]
	if t.c.Attack.Managers.All {
		attrs = forgedAttrs[:]
	}
	m := message(attrs[t.rng.below(uint64(len(attrs)))], c.Host[WAN], c.Host[Fabric])
	m.LocalComm, m.RemoteComm, m.PSN, m.QPN = uint32(t.rng.next()), uint32(t.rng.next()), uint32(t.rng.below(1<<24)), t.guessQP(victim, WAN)
	ask(&m, uint16(32768+t.rng.below(28232)))
	if l := t.live[victim]; l != nil && (t.c.Attack.KnowsPSNs || t.c.Attack.Managers.KnowsIDs) { // an attacker that knows PSNs knows communication IDs
		m.LocalComm, m.RemoteComm = l.cm.id[WAN], l.cm.id[Fabric]
	}
	if m.Attribute == packet.CMDREQ || m.Attribute == packet.CMLAP { // these name the receiver's QPN
		m.QPN = t.guessQP(victim, Fabric)
	}
	m.TransactionID = cm.Transaction(m.LocalComm)
	e := t.blank(victim, packet.UDSendOnly, packet.MADLen)
	e.carry(&m)
	e.Packet.PSN = uint32(t.rng.below(256))
	return e
}

// carry makes an event a MAD from QP 1 to QP 1.
func (e *Event) carry(m *packet.CM) {
	e.MAD, e.AckReq = datagram(m), true
	p := &e.Packet
	p.Opcode, p.DestQP, p.SourceQP, p.DSCP, p.ECN, p.SrcPort = packet.UDSendOnly, packet.GSIQP, packet.GSIQP, 0, 0, endpoint.SourcePort(endpoint.UD, packet.GSIQP, packet.GSIQP)
	setLengths(p, packet.MADLen)
}

// forgeRequest forges a WRITE to a QP of a fabric host. If the attacker knows PSNs, it has a PSN that the WAN end has sent, or will send
// next.
func (t *Traffic) forgeRequest(victim int) Event {
	e := t.blank(victim, packet.RCWriteOnly, uint16(t.c.MTU))
	e.DMALength, e.AckReq = uint32(t.c.MTU), true
	e.Packet.PSN, _ = t.guessPSN(victim, WAN)
	return e
}

// mimic is the attacker on the path: it copies a response or CNP to another QP of the same host, just before or after it.
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
