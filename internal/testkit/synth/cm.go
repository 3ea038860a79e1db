package synth

import (
	"encoding/binary"
	"math/bits"

	"github.com/cnpgate/cnpgate/internal/cm"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/transport"
)

// manager is the state of an end's communication manager for a connection (IBTA 12.9).
type manager struct {
	id      uint32
	waits   int32 // index in mads of the message that it repeats until it is answered, plus 1; 0: none
	tries   int
	answers int32 // index of its last answer, plus 1, for repetitions
	again   int64 // time of the next repetition, ns
	open    bool  // it knows that the connection is established
}

const cmService = 4420 // TCP-like port, NVMe over Fabrics

// connect sends REQ, or SIDR REQ for a UD QP.
func (l *live) connect() {
	for end := range l.sides {
		l.sides[end].cm.id = uint32(l.rng.Next())
	}
	attr := packet.CMREQ
	if l.service == UD {
		attr = packet.CMSIDRREQ
	}
	l.sides[l.t.conns[l.id].Active].ask(attr)
}

// shut ends a connection, by DREQ and DREP if the Config asks for them.
func (l *live) shut() {
	if l.leaving {
		return
	}
	l.closing = true
	if !l.t.conns[l.id].ByCM || l.t.c.NoDREQ || l.service == UD || !l.up {
		l.finish()
		return
	}
	l.leaving = true
	end := End(l.rng.Below(2))
	l.sides[end].dead = true
	l.sides[1-end].cm.waits = 0
	l.sides[end].ask(packet.CMDREQ)
}

// ask sends a message that needs an answer.
func (s *side) ask(attr packet.CMAttribute) {
	s.cm.waits = s.compose(attr)
	s.cm.tries, s.cm.again = 0, s.t.now
	s.manage()
}

// askLater sends a message that needs an answer after a delay.
func (s *side) askLater(attr packet.CMAttribute, delay int64) {
	s.cm.waits = s.compose(attr)
	s.cm.tries, s.cm.again = 0, s.t.now+delay
	s.t.queue.push(s.cm.again, taskManage, s.subject())
}

// manage repeats a message without an answer, and gives up at last.
func (s *side) manage() {
	if s.cm.waits == 0 || s.t.now < s.cm.again {
		return
	}
	if s.cm.tries++; s.cm.tries > s.t.c.Timeouts.MADs {
		s.l.fail()
		return
	}
	s.sendMAD(s.cm.waits)
	s.cm.again = s.t.now + s.t.c.Timeouts.Manager
	s.t.queue.push(s.cm.again, taskManage, s.subject())
}

// answer sends an answer, and repeats it when the message that it answers is repeated.
func (s *side) answer(attr packet.CMAttribute) {
	if last := s.cm.answers; last == 0 || attrOf(s.t.mads[last-1]) != attr {
		s.cm.answers = s.compose(attr)
	}
	s.sendMAD(s.cm.answers)
}

func (s *side) sendMAD(place int32) {
	h := &s.t.hosts[s.end][s.t.conns[s.l.id].place[s.end]]
	psn := h.gsiPSN & packet.PSNMask
	h.gsiPSN++
	// Soft-RoCE sets AckReq in packets of QP 1, though it has no meaning there.
	f := flight{conn: s.l.id, to: s.l.id, from: s.end, psn: psn, kind: mad, op: packet.UDSendOnly, octets: packet.MADLen,
		mad: place - 1, ackReq: true}
	s.t.launch(s.l, f)
	if s.t.rng.hit(s.t.c.Managers.Stale) {
		f.psn = h.gsiPSN & packet.PSNMask
		h.gsiPSN++
		f.port = s.t.port(&f)
		s.t.fly(f, s.t.now+s.t.c.Delay[s.end]+s.t.rng.upTo(s.t.c.Managers.StaleDelay))
	}
}

// managed processes a MAD.
func (s *side) managed(b *[packet.MADLen]byte) {
	switch attr := attrOf(b); attr {
	case packet.CMREQ:
		switch {
		case s.cm.waits != 0 || s.cm.open || s.l.closing: // REP has been sent, and is repeated until RTU arrives
		case s.cm.answers == 0 && !s.l.rng.hit(s.t.c.CMReject):
			if s.l.rng.hit(s.t.c.Managers.MRA) {
				s.answer(packet.CMMRA)
				s.askLater(packet.CMREP, s.t.c.Managers.MRADelay)
				return
			}
			s.ask(packet.CMREP)
		default:
			s.answer(packet.CMREJ)
		}
	case packet.CMMRA:
		if s.cm.waits != 0 {
			s.cm.again = s.t.now + s.t.c.Managers.MRADelay + s.t.c.Timeouts.Manager
			s.t.queue.push(s.cm.again, taskManage, s.subject())
		}
	case packet.CMREP:
		if !s.l.closing {
			s.cm.waits, s.cm.open = 0, true
			s.answer(packet.CMRTU)
			s.establish()
		}
	case packet.CMRTU:
		if !s.l.closing && !s.cm.open {
			s.cm.waits, s.cm.open = 0, true
			s.establish()
		}
	case packet.CMREJ:
		s.cm.waits = 0
		s.t.conns[s.l.id].Refused = true
		s.l.finish()
	case packet.CMDREQ:
		s.dead = true
		s.answer(packet.CMDREP)
	case packet.CMSIDRREQ:
		s.answer(packet.CMSIDRREP)
	case packet.CMDREP:
		s.l.finish()
	case packet.CMSIDRREP:
		if s.cm.waits != 0 {
			s.cm.waits = 0
			s.l.sides[Fabric].establish()
			s.l.sides[WAN].establish()
		}
	}
}

// compose makes a MAD and returns its index in mads plus 1.
func (s *side) compose(attr packet.CMAttribute) int32 {
	c := &s.t.conns[s.l.id]
	m := message(attr, c.Host[s.end], c.Host[1-s.end])
	m.LocalComm, m.RemoteComm, m.QPN, m.PSN = s.cm.id, s.l.sides[1-s.end].cm.id, c.QP[s.end], c.StartPSN[1-s.end]
	m.MTU, m.Reason = uint8(bits.Len(uint(s.t.c.MTU))-8), packet.CMConsumerReject
	ask(&m, s.l.source)
	asker := c.Active
	switch attr {
	case packet.CMSIDRREP:
		m.LocalComm = s.l.sides[asker].cm.id // the request's
	case packet.CMDREQ:
		m.QPN, asker = c.QP[1-s.end], s.end
	case packet.CMDREP:
		asker = 1 - s.end
	}
	m.TransactionID = cm.Transaction(s.l.sides[asker].cm.id)
	switch s.l.service {
	case UC:
		m.Transport = packet.CMUC
	case XRC:
		m.Transport, m.Extended = packet.CMExtended, packet.CMXRC
	}
	s.t.mads = append(s.t.mads, datagram(&m))
	return int32(len(s.t.mads))
}

// message makes a message with the fields common to all of a host's messages.
func message(attr packet.CMAttribute, from, to packet.Addr) packet.CM {
	const timeout, retries, mtu1024 = 20, 15, 3 // as in Linux's RDMA-CM
	return packet.CM{Attribute: attr, LocalGID: from, RemoteGID: to, GUID: guid(from), QKey: udQKey, Timeout: timeout, Retries: retries, MTU: mtu1024,
		ResponderResources: transport.MaxReads, InitiatorDepth: transport.MaxReads}
}

// ask makes m a message for cmService, from a port.
func ask(m *packet.CM, source uint16) {
	protocol := uint8(packet.ProtoTCP)
	if m.Attribute == packet.CMSIDRREQ || m.Attribute == packet.CMSIDRREP {
		protocol = packet.ProtoUDP
	}
	m.ServiceID, m.SourcePort, m.FlowLabel = packet.ServiceID(protocol, cmService), source, cm.FlowLabel(source, cmService)
}

// datagram is the MAD of a message.
func datagram(m *packet.CM) *[packet.MADLen]byte {
	b := new([packet.MADLen]byte)
	m.Put(b[:])
	return b
}

func attrOf(b *[packet.MADLen]byte) packet.CMAttribute {
	return packet.CMAttribute(binary.BigEndian.Uint16(b[16:]))
}

// guid makes a channel adapter's GUID from the host's address.
func guid(a packet.Addr) uint64 { return 0xfffe<<24 | a.Lo&0xffffff }
