package cm

import (
	"slices"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Receive processes a message that a peer sent to QP 1; nil stands for a packet without one. Each is counted once, by its verdict.
func (m *Manager) Receive(now int64, from Peer, x *packet.CM) Verdict {
	v := Malformed
	if x != nil {
		v = m.receive(now, from, x)
	}
	m.counters.Received[v]++
	return v
}

func (m *Manager) receive(now int64, from Peer, x *packet.CM) Verdict {
	switch x.Attribute {
	case packet.CMREQ:
		return m.request(now, from, x)
	case packet.CMSIDRREQ, packet.CMSIDRREP, packet.CMLAP, packet.CMAPR:
		return Unsupported
	}
	c := m.byComm[x.RemoteComm]
	switch {
	case c == nil:
		return UnknownID
	case c.Peer.Addr != from.Addr || c.state != reqSent && c.comm[1] != x.LocalComm:
		return WrongPeer
	}
	switch x.Attribute {
	case packet.CMREP:
		return c.reply(now, x)
	case packet.CMRTU:
		return c.ready(now)
	case packet.CMMRA:
		return c.receipt(now, x)
	case packet.CMREJ:
		return c.rejected(now, x)
	case packet.CMDREQ:
		return c.disconnect(now, x)
	}
	return c.disconnected(now) // DREP
}

// request processes a REQ, new or repeated.
func (m *Manager) request(now int64, from Peer, x *packet.CM) Verdict {
	if !packet.ConnectionQP(x.QPN) {
		return Malformed
	}
	remote := QP{x.QPN, x.PSN}
	for _, c := range m.conns {
		switch {
		case c.state == forgotten || c.Active || c.Peer.Addr != from.Addr:
		case c.comm[1] == x.LocalComm && c.Remote == remote:
			if c.state == repSent {
				c.say(packet.CMREP)
			}
			return Duplicate
		case c.over():
		case c.comm[1] == x.LocalComm:
			return m.reject(from, x, packet.CMDuplicateLocalComm)
		case c.Remote.Number == x.QPN:
			c.endStale(now)
			return m.reject(from, x, packet.CMStaleConnection)
		}
	}
	if reason := m.unacceptable(from, x); reason != 0 {
		return m.reject(from, x, reason)
	}
	c := &Conn{
		m: m, Peer: from, Remote: remote, FlowLabel: x.FlowLabel, comm: [2]uint32{m.newComm(), x.LocalComm}, transaction: x.TransactionID, state: repSent,
	}
	if reason := m.c.Handler.Open(now, c); reason != 0 {
		return m.reject(from, x, reason)
	}
	m.add(c)
	c.transmit(now)
	return Taken
}

// endStale ends a connection that the peer has lost, as it uses the QP for another one (IBTA 12.9). The peer is notified, once, in case the
// REQ is forged.
func (c *Conn) endStale(now int64) {
	if c.state == established {
		c.say(packet.CMDREQ)
	}
	c.withdraw(packet.CMStaleConnection)
	c.end(now, Closed)
}

// listens reports whether a REQ is for a service at this port.
func (m *Manager) listens(port uint16, x *packet.CM) bool {
	return port != 0 && x.ServiceID == packet.ServiceID(packet.ProtoTCP, port)
}

// unacceptable returns the reason to refuse a new connection; 0 if there is none.
func (m *Manager) unacceptable(from Peer, x *packet.CM) (reason uint16) {
	switch {
	case !m.listens(m.c.Port, x) && !slices.ContainsFunc(m.c.Also, func(port uint16) bool { return m.listens(port, x) }):
		return packet.CMInvalidServiceID
	case x.Transport != packet.CMRC:
		return packet.CMInvalidTransport
	case x.LocalGID != from.Addr || x.RemoteGID != m.c.Addr:
		return packet.CMInvalidGID
	case x.MTU != m.c.MTU:
		return packet.CMInvalidMTU
	case !m.makePlace():
		return packet.CMNoResources
	}
	return 0
}

// reply processes a REP.
func (c *Conn) reply(now int64, x *packet.CM) Verdict {
	remote := QP{x.QPN, x.PSN}
	switch {
	case !packet.ConnectionQP(x.QPN):
		return Malformed
	case c.state == reqSent:
	case !c.Active || c.state != established:
		return OutOfState
	case c.Remote != remote:
		return WrongPeer
	default: // the RTU was lost
		c.say(packet.CMRTU)
		return Duplicate
	}
	c.Remote, c.comm[1] = remote, x.LocalComm
	if reason := c.m.c.Handler.Open(now, c); reason != 0 {
		c.m.reject(c.Peer, x, reason)
		c.end(now, OpenFailed)
		return Rejected
	}
	c.say(packet.CMRTU)
	c.establish(now)
	return Taken
}

// ready processes an RTU.
func (c *Conn) ready(now int64) Verdict {
	switch {
	case c.state == repSent:
		c.establish(now)
		return Taken
	case !c.Active && c.state == established:
		return Duplicate
	}
	return OutOfState
}

// Confirm treats a packet on the connection's QP as the RTU, as it implies it (IBTA 12.9).
func (m *Manager) Confirm(now int64, c *Conn) {
	if c.state == repSent {
		c.establish(now)
	}
}

func (c *Conn) establish(now int64) {
	c.state, c.at = established, never
	c.m.counters.Established++
	c.m.c.Handler.Established(now, c)
}

// receipt processes an MRA: the peer has the REQ or REP, and needs more time. It is obeyed once for each message sent.
func (c *Conn) receipt(now int64, x *packet.CM) Verdict {
	switch {
	case c.state == reqSent && x.Answers == packet.CMAnswersREQ, c.state == repSent && x.Answers == packet.CMAnswersREP:
	default:
		return OutOfState
	}
	if c.delayed {
		return Duplicate
	}
	c.delayed = true
	c.wait(now + min(maxDelay, int64(timeUnit)<<x.Timeout) + c.m.timeout())
	return Taken
}

// rejected processes a REJ.
func (c *Conn) rejected(now int64, x *packet.CM) Verdict {
	switch c.state {
	case timeWait:
		return Duplicate
	case dreqSent:
		c.end(now, Closed)
	default:
		c.Reason = x.Reason
		c.end(now, Refused)
	}
	return Taken
}

// disconnect processes a DREQ.
func (c *Conn) disconnect(now int64, x *packet.CM) Verdict {
	switch {
	case c.state == reqSent:
		return OutOfState
	case x.QPN != c.Local.Number:
		return WrongPeer
	}
	c.release = x.TransactionID
	c.say(packet.CMDREP)
	if c.state == timeWait {
		return Duplicate
	}
	c.end(now, Closed)
	return Taken
}

// disconnected processes a DREP.
func (c *Conn) disconnected(now int64) Verdict {
	switch c.state {
	case dreqSent:
		c.end(now, Closed)
		return Taken
	case timeWait:
		return Duplicate
	}
	return OutOfState
}
