package cm

import "github.com/cnpgate/cnpgate/internal/packet"

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
		return m.reply(now, c, x)
	case packet.CMRTU:
		return m.ready(now, c)
	case packet.CMMRA:
		return m.receipt(now, c, x)
	case packet.CMREJ:
		return m.rejected(now, c, x)
	case packet.CMDREQ:
		return m.disconnect(now, c, x)
	}
	return m.disconnected(now, c) // DREP
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
				m.say(c, packet.CMREP)
			}
			return Duplicate
		case c.over():
		case c.comm[1] == x.LocalComm:
			return m.reject(from, x, packet.CMDuplicateLocalComm)
		case c.Remote.Number == x.QPN:
			m.endStale(now, c)
			return m.reject(from, x, packet.CMStaleConnection)
		}
	}
	if reason := m.unacceptable(from, x); reason != 0 {
		return m.reject(from, x, reason)
	}
	c := &Conn{Peer: from, Remote: remote, FlowLabel: x.FlowLabel, comm: [2]uint32{m.newComm(), x.LocalComm}, transaction: x.TransactionID, state: repSent}
	if reason := m.c.Handler.Open(now, c); reason != 0 {
		return m.reject(from, x, reason)
	}
	m.add(c)
	m.transmit(now, c)
	return Taken
}

// endStale ends a connection that the peer has lost, as it uses the QP for another one (IBTA 12.9). The peer is notified, once, in case the
// REQ is forged.
func (m *Manager) endStale(now int64, c *Conn) {
	if c.state == established {
		m.say(c, packet.CMDREQ)
	}
	m.withdraw(c, packet.CMStaleConnection)
	m.end(now, c, Closed)
}

// listens reports whether a REQ is for a service at this port.
func (m *Manager) listens(port uint16, x *packet.CM) bool {
	return port != 0 && x.ServiceID == packet.ServiceID(packet.ProtoTCP, port)
}

// unacceptable returns the reason to refuse a new connection; 0 if there is none.
func (m *Manager) unacceptable(from Peer, x *packet.CM) (reason uint16) {
	switch {
	case !m.listens(m.c.Port, x) && !m.listens(m.c.Also, x):
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
func (m *Manager) reply(now int64, c *Conn, x *packet.CM) Verdict {
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
		m.say(c, packet.CMRTU)
		return Duplicate
	}
	c.Remote, c.comm[1] = remote, x.LocalComm
	if reason := m.c.Handler.Open(now, c); reason != 0 {
		m.reject(c.Peer, x, reason)
		m.end(now, c, OpenFailed)
		return Rejected
	}
	m.say(c, packet.CMRTU)
	m.establish(now, c)
	return Taken
}

// ready processes an RTU.
func (m *Manager) ready(now int64, c *Conn) Verdict {
	switch {
	case c.state == repSent:
		m.establish(now, c)
		return Taken
	case !c.Active && c.state == established:
		return Duplicate
	}
	return OutOfState
}

// Confirm treats a packet on the connection's QP as the RTU, as it implies it (IBTA 12.9).
func (m *Manager) Confirm(now int64, c *Conn) {
	if c.state == repSent {
		m.establish(now, c)
	}
}

func (m *Manager) establish(now int64, c *Conn) {
	c.state, c.at = established, never
	m.counters.Established++
	m.c.Handler.Established(now, c)
}

// receipt processes an MRA: the peer has the REQ or REP, and needs more time. It is obeyed once for each message sent.
func (m *Manager) receipt(now int64, c *Conn, x *packet.CM) Verdict {
	switch {
	case c.state == reqSent && x.Answers == packet.CMAnswersREQ, c.state == repSent && x.Answers == packet.CMAnswersREP:
	default:
		return OutOfState
	}
	if c.delayed {
		return Duplicate
	}
	c.delayed = true
	m.wait(c, now+min(maxDelay, int64(timeUnit)<<x.Timeout)+m.timeout())
	return Taken
}

// rejected processes a REJ.
func (m *Manager) rejected(now int64, c *Conn, x *packet.CM) Verdict {
	switch c.state {
	case timeWait:
		return Duplicate
	case dreqSent:
		m.end(now, c, Closed)
	default:
		c.Reason = x.Reason
		m.end(now, c, Refused)
	}
	return Taken
}

// disconnect processes a DREQ.
func (m *Manager) disconnect(now int64, c *Conn, x *packet.CM) Verdict {
	switch {
	case c.state == reqSent:
		return OutOfState
	case x.QPN != c.Local.Number:
		return WrongPeer
	}
	c.release = x.TransactionID
	m.say(c, packet.CMDREP)
	if c.state == timeWait {
		return Duplicate
	}
	m.end(now, c, Closed)
	return Taken
}

// disconnected processes a DREP.
func (m *Manager) disconnected(now int64, c *Conn) Verdict {
	switch c.state {
	case dreqSent:
		m.end(now, c, Closed)
		return Taken
	case timeWait:
		return Duplicate
	}
	return OutOfState
}
