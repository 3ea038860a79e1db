package synth

import (
	"encoding/binary"
	"math/bits"

	"github.com/cnpgate/cnpgate/internal/cm"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/transport"
)

// manager is the state of both communication managers of a connection (IBTA 12.9).
type manager struct {
	source  uint16 // the active side's RDMA-CM port
	id      [2]uint32
	waits   [2]int32 // index in mads of the message that an end repeats until it is answered, plus 1; 0: none
	tries   [2]int
	answers [2]int32 // index of the last answer of an end, plus 1, for repetitions
	again   [2]int64 // time of the next repetition, ns
	open    [2]bool  // the end knows that the connection is established
	leaving bool     // one end has sent DREQ
}

const (
	cmService = 4420 // TCP-like port, NVMe over Fabrics
)

// connect sends REQ, or SIDR REQ for a UD QP.
func (t *Traffic) connect(l *live) {
	for end := range l.cm.id {
		l.cm.id[end] = uint32(l.rng.next())
	}
	attr := packet.CMREQ
	if l.kind == UD {
		attr = packet.CMSIDRREQ
	}
	t.ask(l, t.conns[l.id].Active, attr)
}

// shut ends a connection, by DREQ and DREP if the Config asks for them.
func (t *Traffic) shut(l *live) {
	if l.cm.leaving {
		return
	}
	l.closing = true
	if !t.conns[l.id].ByCM || t.c.NoDREQ || l.kind == UD || !l.up {
		t.finish(l)
		return
	}
	l.cm.leaving = true
	end := End(l.rng.below(2))
	l.sides[end].dead = true
	l.cm.waits[1-end] = 0
	t.ask(l, end, packet.CMDREQ)
}

// ask sends a message that needs an answer.
func (t *Traffic) ask(l *live, end End, attr packet.CMAttribute) {
	l.cm.waits[end] = t.compose(l, end, attr)
	l.cm.tries[end], l.cm.again[end] = 0, t.now
	t.manage(l, end)
}

// askLater sends a message that needs an answer after a delay.
func (t *Traffic) askLater(l *live, end End, attr packet.CMAttribute, delay int64) {
	l.cm.waits[end] = t.compose(l, end, attr)
	l.cm.tries[end], l.cm.again[end] = 0, t.now+delay
	t.queue.push(l.cm.again[end], taskManage, t.whose(l, end))
}

// manage repeats a message without an answer, and gives up at last.
func (t *Traffic) manage(l *live, end End) {
	if l.cm.waits[end] == 0 || t.now < l.cm.again[end] {
		return
	}
	if l.cm.tries[end]++; l.cm.tries[end] > t.c.Timeouts.MADs {
		t.fail(l)
		return
	}
	t.sendMAD(l, end, l.cm.waits[end])
	l.cm.again[end] = t.now + t.c.Timeouts.Manager
	t.queue.push(l.cm.again[end], taskManage, t.whose(l, end))
}

// answer sends an answer, and repeats it when the message that it answers is repeated.
func (t *Traffic) answer(l *live, end End, attr packet.CMAttribute) {
	if last := l.cm.answers[end]; last == 0 || attrOf(t.mads[last-1]) != attr {
		l.cm.answers[end] = t.compose(l, end, attr)
	}
	t.sendMAD(l, end, l.cm.answers[end])
}

func (t *Traffic) sendMAD(l *live, end End, place int32) {
	h := &t.hosts[end][t.conns[l.id].place[end]]
	psn := h.gsiPSN & 0xffffff
	h.gsiPSN++
	// Soft-RoCE sets AckReq in packets of QP 1, though it has no meaning there.
	f := flight{conn: l.id, to: l.id, from: end, psn: psn, kind: mad, op: packet.UDSendOnly, octets: packet.MADLen,
		mad: place - 1, ackReq: true}
	t.launch(l, f)
	if t.rng.hit(t.c.stale) {
		f.psn = h.gsiPSN & 0xffffff
		h.gsiPSN++
		f.port = t.port(&f)
		t.fly(f, t.now+t.c.Delay[end]+t.rng.upTo(t.c.Managers.StaleDelay))
	}
}

// managed processes a MAD.
func (t *Traffic) managed(l *live, end End, b *[packet.MADLen]byte) {
	switch attr := attrOf(b); attr {
	case packet.CMREQ:
		switch {
		case l.cm.waits[end] != 0 || l.cm.open[end] || l.closing: // REP has been sent, and is repeated until RTU arrives
		case l.cm.answers[end] == 0 && !l.rng.hit(t.c.reject):
			if l.rng.hit(t.c.mra) {
				t.answer(l, end, packet.CMMRA)
				t.askLater(l, end, packet.CMREP, t.c.Managers.MRADelay)
				return
			}
			t.ask(l, end, packet.CMREP)
		default:
			t.answer(l, end, packet.CMREJ)
		}
	case packet.CMMRA:
		if l.cm.waits[end] != 0 {
			l.cm.again[end] = t.now + t.c.Managers.MRADelay + t.c.Timeouts.Manager
			t.queue.push(l.cm.again[end], taskManage, t.whose(l, end))
		}
	case packet.CMREP:
		if !l.closing {
			l.cm.waits[end], l.cm.open[end] = 0, true
			t.answer(l, end, packet.CMRTU)
			t.establish(l, end)
		}
	case packet.CMRTU:
		if !l.closing && !l.cm.open[end] {
			l.cm.waits[end], l.cm.open[end] = 0, true
			t.establish(l, end)
		}
	case packet.CMREJ:
		l.cm.waits[end] = 0
		t.conns[l.id].Refused = true
		t.finish(l)
	case packet.CMDREQ:
		l.sides[end].dead = true
		t.answer(l, end, packet.CMDREP)
	case packet.CMSIDRREQ:
		t.answer(l, end, packet.CMSIDRREP)
	case packet.CMDREP:
		t.finish(l)
	case packet.CMSIDRREP:
		if l.cm.waits[end] != 0 {
			l.cm.waits[end] = 0
			t.establish(l, Fabric)
			t.establish(l, WAN)
		}
	}
}

// compose makes a MAD and returns its index in mads plus 1.
func (t *Traffic) compose(l *live, end End, attr packet.CMAttribute) int32 {
	c := &t.conns[l.id]
	m := message(attr, c.Host[end], c.Host[1-end])
	m.LocalComm, m.RemoteComm, m.QPN, m.PSN = l.cm.id[end], l.cm.id[1-end], c.QP[end], c.StartPSN[1-end]
	m.MTU, m.Reason = uint8(bits.Len(uint(t.c.MTU))-8), packet.CMConsumerReject
	ask(&m, l.cm.source)
	asker := c.Active
	switch attr {
	case packet.CMSIDRREP:
		m.LocalComm = l.cm.id[asker] // the request's
	case packet.CMDREQ:
		m.QPN, asker = c.QP[1-end], end
	case packet.CMDREP:
		asker = 1 - end
	}
	m.TransactionID = cm.Transaction(l.cm.id[asker])
	switch l.kind {
	case UC:
		m.Transport = packet.CMUC
	case XRC:
		m.Transport, m.Extended = packet.CMExtended, packet.CMXRC
	}
	t.mads = append(t.mads, datagram(&m))
	return int32(len(t.mads))
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
