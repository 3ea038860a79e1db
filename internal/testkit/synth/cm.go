package synth

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// manager is the state of both communication managers of a connection (IBTA 12.9).
type manager struct {
	source, service uint16
	id              [2]uint32
	waits           [2]int32 // place in mads of what an end repeats until it is answered, plus 1; 0: it waits for nothing
	tries           [2]int
	told            [2]int32 // the last answer an end gave, plus 1, in case it is asked again
	again           [2]int64 // when it does, ns
	open            [2]bool  // the end has come to know that the connection is up
	leaving         bool     // one end has sent DREQ
}

const (
	cmService = 4420 // TCP-like port, NVMe over Fabrics
)

// connect sends REQ, or SIDR REQ for a UD QP.
func (t *Traffic) connect(l *live) {
	for end := range l.cm.id {
		l.cm.id[end] = uint32(l.rng.next())
	}
	attr := uint16(attrREQ)
	if l.kind == UD {
		attr = attrSIDRREQ
	}
	t.ask(l, t.conns[l.id].Active, attr)
}

// shut ends a connection, by DREQ and DREP if that is how.
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
	t.ask(l, end, attrDREQ)
}

// ask sends a message that wants an answer.
func (t *Traffic) ask(l *live, end End, attr uint16) {
	l.cm.waits[end] = t.compose(l, end, attr)
	l.cm.tries[end], l.cm.again[end] = 0, t.now
	t.manage(l, end)
}

// askLater sends a message that wants an answer after a delay.
func (t *Traffic) askLater(l *live, end End, attr uint16, delay int64) {
	l.cm.waits[end] = t.compose(l, end, attr)
	l.cm.tries[end], l.cm.again[end] = 0, t.now+delay
	t.queue.push(l.cm.again[end], taskManage, t.whose(l, end))
}

// manage sends what an end still has no answer to, and gives up in the end.
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

// tell sends an answer, which is repeated when what it answers is.
func (t *Traffic) tell(l *live, end End, attr uint16) {
	if told := l.cm.told[end]; told == 0 || attrOf(t.mads[told-1]) != attr {
		l.cm.told[end] = t.compose(l, end, attr)
	}
	t.sendMAD(l, end, l.cm.told[end])
}

func (t *Traffic) sendMAD(l *live, end End, place int32) {
	h := &t.hosts[end][t.conns[l.id].place[end]]
	psn := h.gsiPSN & 0xffffff
	h.gsiPSN++
	// Soft-RoCE sets AckReq in packets of QP 1, senseless as it is.
	f := flight{conn: l.id, to: l.id, from: end, psn: psn, kind: mad, op: uint8(packet.UDSendOnly), octets: MADLen,
		mad: place - 1, ackReq: true}
	t.launch(l, f)
	if t.rng.hit(t.c.stale) {
		f.psn = h.gsiPSN & 0xffffff
		h.gsiPSN++
		f.port = t.port(&f)
		t.fly(f, t.now+t.c.Delay[end]+t.rng.upTo(t.c.Managers.StaleDelay))
	}
}

// managed takes a MAD.
func (t *Traffic) managed(l *live, end End, b *[MADLen]byte) {
	switch attr := attrOf(b); attr {
	case attrREQ:
		switch {
		case l.cm.waits[end] != 0 || l.cm.open[end] || l.closing: // REP has been sent, and is repeated until RTU comes
		case l.cm.told[end] == 0 && !l.rng.hit(t.c.reject):
			if l.rng.hit(t.c.mra) {
				t.tell(l, end, attrMRA)
				t.askLater(l, end, attrREP, t.c.Managers.MRADelay)
				return
			}
			t.ask(l, end, attrREP)
		default:
			t.tell(l, end, attrREJ)
		}
	case attrMRA:
		if l.cm.waits[end] != 0 {
			l.cm.again[end] = t.now + t.c.Managers.MRADelay + t.c.Timeouts.Manager
			t.queue.push(l.cm.again[end], taskManage, t.whose(l, end))
		}
	case attrREP:
		if !l.closing {
			l.cm.waits[end], l.cm.open[end] = 0, true
			t.tell(l, end, attrRTU)
			t.establish(l, end)
		}
	case attrRTU:
		if !l.closing && !l.cm.open[end] {
			l.cm.waits[end], l.cm.open[end] = 0, true
			t.establish(l, end)
		}
	case attrREJ:
		l.cm.waits[end] = 0
		t.conns[l.id].Refused = true
		t.finish(l)
	case attrDREQ:
		l.sides[end].dead = true
		t.tell(l, end, attrDREP)
	case attrSIDRREQ:
		t.tell(l, end, attrSIDRREP)
	case attrDREP:
		t.finish(l)
	case attrSIDRREP:
		if l.cm.waits[end] != 0 {
			l.cm.waits[end] = 0
			t.establish(l, Fabric)
			t.establish(l, WAN)
		}
	}
}

// compose makes a MAD and returns its place in mads plus 1.
func (t *Traffic) compose(l *live, end End, attr uint16) int32 {
	c := &t.conns[l.id]
	m := cmMessage{attr: attr, localID: l.cm.id[end], peerID: l.cm.id[1-end], qp: c.QP[end], psn: c.StartPSN[1-end], guid: guid(c.Host[end]),
		service: l.cm.service, source: l.cm.source, local: c.Host[end], peer: c.Host[1-end],
		flowLabel: cmFlowLabel(l.cm.source, l.cm.service), mtu: uint8(bits.Len(uint(t.c.MTU)) - 8), responders: window, deep: window,
		reason: 28} // consumer reject
	asker := c.Active
	switch attr {
	case attrSIDRREP:
		m.localID = l.cm.id[asker] // the request's
	case attrDREQ:
		m.qp, asker = c.QP[1-end], end
	case attrDREP:
		asker = 1 - end
	}
	m.tid = transaction(l.cm.id[asker])
	switch l.kind {
	case UC:
		m.transport = 1
	case XRC:
		m.transport, m.extended = 3, 1
	}
	t.mads = append(t.mads, m.mad())
	return int32(len(t.mads))
}

// transaction is Linux's transaction ID: the agent's number, then the asking side's communication ID, read the other way round.
func transaction(id uint32) uint64 { return 2<<32 | uint64(bits.ReverseBytes32(id)) }

// guid makes a channel adapter's GUID from the host's address.
func guid(a packet.Addr) uint64 { return 0xfffe<<24 | a.Lo&0xffffff }
