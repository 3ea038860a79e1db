package cm

import "github.com/cnpgate/cnpgate/internal/packet"

// timeout is how long to wait for an answer, ns.
func (m *Manager) timeout() int64 { return timeUnit << m.c.Timeout }

// transmit sends the message whose answer a connection waits for, and sets the time at which to repeat it.
func (c *Conn) transmit(now int64) {
	c.tries++
	c.delayed = false
	c.wait(now + c.m.timeout())
	switch c.state {
	case reqSent:
		c.say(packet.CMREQ)
	case repSent:
		c.say(packet.CMREP)
	case dreqSent:
		c.say(packet.CMDREQ)
	}
}

// wait sets the time at which Expire handles a connection.
func (c *Conn) wait(at int64) {
	c.at = at
	c.m.due = min(c.m.due, at)
}

// say sends a message of a connection.
func (c *Conn) say(attribute packet.CMAttribute) {
	x := packet.CM{Attribute: attribute, TransactionID: c.transaction, LocalComm: c.comm[0], RemoteComm: c.comm[1]}
	switch attribute {
	case packet.CMREQ:
		x.QPN, x.PSN, x.FlowLabel = c.Local.Number, c.Local.PSN, c.FlowLabel
		x.LocalGID, x.RemoteGID = c.m.c.Addr, c.Peer.Addr
		x.ServiceID, x.SourcePort, x.MTU = c.service, c.source, c.m.c.MTU
		x.Timeout, x.Retries = c.m.c.Timeout, c.m.c.Retries
	case packet.CMREP:
		x.QPN, x.PSN = c.Local.Number, c.Local.PSN
	case packet.CMDREQ:
		x.TransactionID, x.QPN = Transaction(c.comm[0]), c.Remote.Number
	case packet.CMDREP:
		x.TransactionID = c.release
	}
	x.GUID, x.ResponderResources, x.InitiatorDepth = c.m.c.GUID, c.m.c.ReadDepth, c.m.c.ReadDepth
	c.m.push(x, c.Peer)
}

// reject answers a REQ or REP by REJ.
func (m *Manager) reject(to Peer, r *packet.CM, reason uint16) Verdict {
	x := packet.CM{Attribute: packet.CMREJ, TransactionID: r.TransactionID, LocalComm: r.RemoteComm, RemoteComm: r.LocalComm, Reason: reason}
	if r.Attribute == packet.CMREP {
		x.Answers = packet.CMAnswersREP
	}
	m.push(x, to)
	return Rejected
}

// withdraw notifies the peer by REJ that this end no longer waits for the RTU. An end that waits for the REP doesn't know the peer's
// communication ID yet, and sends nothing.
func (c *Conn) withdraw(reason uint16) {
	if c.state == repSent {
		x := packet.CM{Attribute: packet.CMREJ, TransactionID: c.transaction, LocalComm: c.comm[0], RemoteComm: c.comm[1], Reason: reason}
		c.m.push(x, c.Peer)
	}
}

// push queues a message. If a flood of requests has filled the queue, the message is dropped and the peer repeats its request.
func (m *Manager) push(x packet.CM, to Peer) {
	const each = 4 // messages that a connection can have in the queue: one that it repeats, and answers
	if m.out.Len() >= each*m.c.Connections {
		m.counters.Dropped++
		return
	}
	m.out.Push(Message{x, to})
}

// end ends a connection. It keeps answering the peer's repetitions until the peer must have given up.
func (c *Conn) end(now int64, o Outcome) {
	if c.state == reqSent { // the peer can only repeat the REP, which needs no answer any more
		c.m.Forget(c)
	} else {
		c.state = timeWait
		c.wait(now + c.m.timeout()*int64(c.m.c.Retries+1))
	}
	c.m.counters.Ended[o]++
	c.m.c.Handler.Ended(now, c, o)
}

// Expire does what is due: it repeats messages, gives up connections, and removes those that ended.
func (m *Manager) Expire(now int64) {
	if now < m.due {
		return
	}
	for i := 0; i < len(m.conns); i++ { // the Handler may add some
		if c := m.conns[i]; c.at <= now && c.state != forgotten {
			c.expire(now)
		}
	}
	m.compact()
}

// expire does what is due for one connection.
func (c *Conn) expire(now int64) {
	switch {
	case c.state == timeWait:
		c.m.Forget(c)
	case c.tries > c.m.c.Retries:
		c.withdraw(packet.CMTimeout)
		c.end(now, Unanswered)
	default:
		c.m.counters.Repeated++
		c.transmit(now)
	}
}

// compact removes forgotten connections from the list, and computes when Expire is next needed.
func (m *Manager) compact() {
	kept := m.conns[:0]
	m.due = never
	for _, c := range m.conns {
		if c.state != forgotten {
			kept = append(kept, c)
			m.due = min(m.due, c.at)
		}
	}
	clear(m.conns[len(kept):])
	m.conns = kept
}
