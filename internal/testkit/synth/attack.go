package synth

import (
	"github.com/cnpgate/cnpgate/internal/cm"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/transport"
)

// attacker makes the packets of an attacker, and of hosts that answer it.
type attacker struct {
	*Traffic
	planned pool[Event] // later packets
}

// attack forges a packet that arrives from the WAN with the address of some host. It continues while there is traffic.
func (a *attacker) attack() {
	if a.over() {
		return
	}
	a.queue.push(a.now+1+a.rng.upTo(2*a.c.Attack.Interval), taskAttack, 0)
	var can []func(int) Event
	if a.c.Attack.ACK {
		can = append(can, a.forgeACK)
	}
	if a.c.Attack.CNP {
		can = append(can, a.forgeCNP)
	}
	if a.c.Attack.CM {
		can = append(can, a.forgeCM)
	}
	if a.c.Attack.Request {
		can = append(can, a.forgeRequest)
	}
	if a.c.Attack.Managers.Connect {
		can = append(can, a.forgeConnect)
	}
	if len(can) == 0 {
		return
	}
	if e := can[a.rng.Below(uint64(len(can)))](a.recent()); e.Length() > 0 {
		a.plan(a.now, e.asForged())
	}
}

// recent picks one of the latest connections.
func (a *attacker) recent() int {
	n := min(len(a.conns), a.c.Connections)
	return len(a.conns) - 1 - int(a.rng.Below(uint64(n)))
}

func (e Event) asForged() Event {
	e.Forged, e.Conn, e.SourceQP = true, -1, 0
	e.Resent, e.Lost = false, false
	return e
}

// plan schedules a packet to pass the tap.
func (a *attacker) plan(at int64, e Event) { a.queue.push(at, taskPlanned, a.planned.put(e)) }

// blank begins a packet from the victim's WAN host to its fabric host. Unknown fields are guessed.
func (a *attacker) blank(victim int, op packet.Opcode, payload uint16) Event {
	e := Event{From: WAN, Packet: a.shown[victim][WAN]}
	p := &e.Packet
	p.Opcode, p.DSCP, p.ECN, p.SrcPort = op, dataDSCP, a.c.ecn(), packet.LowestSourcePort|uint16(a.rng.Below(1<<14))
	p.DestQP = a.guessQP(victim, Fabric)
	if a.c.Attack.KnowsPSNs {
		p.SrcPort = a.conns[victim].Port[WAN]
	}
	setLengths(p, payload)
	return e
}

// guessQP guesses a QPN of a connection's host.
func (a *attacker) guessQP(victim int, end End) uint32 {
	if !a.c.Attack.KnowsQPs {
		return uint32(a.rng.Below(1 << 24))
	}
	c := &a.conns[victim]
	for range 8 {
		if other := &a.conns[a.recent()]; other.Host[end] == c.Host[end] && other.VID == c.VID && other.TPID == c.TPID {
			return other.QP[end]
		}
	}
	return c.QP[end]
}

// guessPSN guesses a PSN that an end of a connection has sent, and the number of messages up to it.
func (a *attacker) guessPSN(victim int, end End) (psn, msn uint32) {
	l := a.live[victim]
	switch {
	case !a.c.Attack.KnowsPSNs:
		return uint32(a.rng.Below(1 << 24)), uint32(a.rng.Below(1 << 24))
	case l == nil:
		return a.conns[victim].StartPSN[end], 0
	}
	s := &l.sides[end]
	una, n := s.requester.InFlight()
	return (una + uint32(a.rng.Below(uint64(n)+1))) & packet.PSNMask, uint32(s.posted - s.requester.Posted())
}

func (a *attacker) forgeACK(victim int) Event {
	e := a.blank(victim, packet.RCAcknowledge, 0)
	e.Syndrome = transport.SyndromeACK
	e.Packet.PSN, e.MSN = a.guessPSN(victim, Fabric)
	return e
}

func (a *attacker) forgeCNP(victim int) Event {
	e := a.blank(victim, packet.CNP, cnpReserved)
	p := &e.Packet
	p.DSCP, p.ECN, p.BTHFlags, p.SrcPort = cnpDSCP, 0, packet.BECN, 0
	return e
}

var forgedAttrs = [...]packet.CMAttribute{packet.CMREQ, packet.CMREP, packet.CMRTU, packet.CMDREQ, packet.CMDREP, packet.CMREJ, packet.CMSIDRREP, packet.CMMRA, packet.CMLAP, packet.CMAPR}

// forgeCM forges a message of RDMA-CM that would pair the wrong QPs or end a connection.
func (a *attacker) forgeCM(victim int) Event {
	c := &a.conns[victim]
	attrs := forgedAttrs[:7]
	if a.c.Attack.Managers.All {
		attrs = forgedAttrs[:]
	}
	m := message(attrs[a.rng.Below(uint64(len(attrs)))], c.Host[WAN], c.Host[Fabric])
	m.LocalComm, m.RemoteComm, m.PSN, m.QPN = uint32(a.rng.Next()), uint32(a.rng.Next()), uint32(a.rng.Below(1<<24)), a.guessQP(victim, WAN)
	ask(&m, uint16(32768+a.rng.Below(28232)))
	if l := a.live[victim]; l != nil && (a.c.Attack.KnowsPSNs || a.c.Attack.Managers.KnowsIDs) { // an attacker that knows PSNs knows communication IDs
		m.LocalComm, m.RemoteComm = l.sides[WAN].cm.id, l.sides[Fabric].cm.id
	}
	if m.Attribute == packet.CMDREQ || m.Attribute == packet.CMLAP { // these name the receiver's QPN
		m.QPN = a.guessQP(victim, Fabric)
	}
	m.TransactionID = cm.Transaction(m.LocalComm)
	e := a.blank(victim, packet.UDSendOnly, packet.MADLen)
	e.carry(&m)
	e.Packet.PSN = uint32(a.rng.Below(256))
	return e
}

// carry makes an event a MAD from QP 1 to QP 1.
func (e *Event) carry(m *packet.CM) {
	e.MAD, e.AckReq = datagram(m), true
	p := &e.Packet
	p.Opcode, p.DestQP, p.SourceQP, p.DSCP, p.ECN, p.SrcPort = packet.UDSendOnly, packet.GSIQP, packet.GSIQP, 0, 0, packet.SoftRoCEPort(packet.GSIQP)
	setLengths(p, packet.MADLen)
}

// forgeRequest forges a WRITE to a QP of a fabric host. If the attacker knows PSNs, it has a PSN that the WAN end has sent, or will send
// next.
func (a *attacker) forgeRequest(victim int) Event {
	e := a.blank(victim, packet.RCWriteOnly, uint16(a.c.MTU))
	e.DMALength, e.AckReq = uint32(a.c.MTU), true
	e.Packet.PSN, _ = a.guessPSN(victim, WAN)
	return e
}

// mimic is the attacker on the path: it copies a response or CNP to another QP of the same host, just before or after it.
func (a *attacker) mimic(e *Event) {
	p := &e.Packet
	if p.Opcode.Headers()&packet.HasAETH == 0 && p.Opcode != packet.CNP {
		return
	}
	c, to := &a.conns[e.Conn], 1-e.From
	for range 8 {
		other := &a.conns[a.recent()]
		if other.Host[to] != c.Host[to] || other.VID != c.VID || other.TPID != c.TPID || other.QP[to] == p.DestQP {
			continue
		}
		second := *e
		forged := e
		if a.rng.Next()&1 == 0 {
			forged = &second
		}
		forged.Packet.DestQP = other.QP[to]
		*forged = forged.asForged()
		a.plan(a.now, second)
		return
	}
}
