package endpoint

import (
	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/transport"
)

// Receive processes a frame that arrived. frame holds at least its headers, or all bytes if it is a CNP or another notification. length is
// that of the whole frame without FCS. The host doesn't retain frame. Each frame is counted once: see Counters.
func (h *Host) Receive(now int64, frame []byte, length int) {
	p := &h.parsed
	packet.Parse(frame, uint32(length), p)
	h.counters.FramesReceived++
	switch {
	case p.Kind == packet.MACControl:
		h.flowControl(now, frame, p)
	case p.Dst != h.c.Addr, p.Encapsulated(): // no tunnel ends at this host
		h.counters.WrongDestination++
	case p.Kind == packet.RoCEv2 && p.Opcode != packet.CNP:
		h.receivePacket(now, frame, p)
	default:
		h.notified(now, frame, p)
	}
}

// receivePacket processes a RoCEv2 packet that isn't a CNP.
func (h *Host) receivePacket(now int64, frame []byte, p *packet.Parsed) {
	if p.DestQP == packet.GSIQP && h.manager != nil {
		h.receiveMAD(now, frame, p)
		return
	}
	if h.c.Payload == PayloadReal && !h.c.AnyICRC && !icrcOK(frame, p) {
		h.counters.WrongICRC++
		return
	}
	q := h.byNumber[p.DestQP]
	switch {
	case q == nil || q.dead:
		h.counters.UnknownQP++
		return
	case p.Opcode.Role() == packet.NoRole || p.Src != q.Peer.Addr:
		h.counters.WrongPeer++
		return
	case q.unconfirmed != nil:
		h.manager.Confirm(now, q.unconfirmed)
		h.receivePacket(now, frame, p)
		return
	case p.Opcode >= packet.RCReadRespFirst && p.Opcode <= packet.RCAcknowledge:
		q.response(now, frame, p)
	default:
		q.requestPacket(now, frame, p)
	}
	q.schedule(now)
}

// response processes an acknowledgement or a READ response.
func (q *qp) response(now int64, frame []byte, p *packet.Parsed) {
	if p.Opcode != packet.RCAcknowledge {
		if p.ECN == packet.CE {
			q.congested(now)
		}
		q.h.counters.ReadResponses++
		if q.ping != nil {
			q.ping.read(frame, p)
		}
		q.requester.Answer(now, p.PSN)
		return
	}
	q.h.counters.Acknowledgements++
	if aeth := packet.DecodeAETH(frame[p.Ext():]); q.requester.Acknowledge(now, p.PSN, aeth) {
		q.refused = aeth.Syndrome
		q.fail(now)
	}
}

// congested notes that a CE-marked data packet arrived for a QP. Unless the host has no notification point, the sender gets a CNP, at most
// one each CNPInterval (IBTA Annex A17).
func (q *qp) congested(now int64) {
	q.h.counters.CEReceived++
	if q.h.c.NoCNP || q.cnpDue || q.lastCNP != -never && now-q.lastCNP < q.h.c.CNPInterval {
		return
	}
	q.lastCNP, q.cnpDue = now, true
}

// requestPacket processes a request packet.
func (q *qp) requestPacket(now int64, frame []byte, p *packet.Parsed) {
	r, ok := transport.RequestOf(transport.RC, p.Opcode)
	r.PSN, r.AckReq = p.PSN, frame[p.BTH+8]&ackReq != 0
	if r.Op == transport.Read {
		r.Bytes = packet.DecodeRETH(frame[p.Ext():]).DMALength
	}
	if !ok || r.Op == transport.Atomic || q.h.transport.Packets(r.Bytes) > maxInFlight {
		q.h.counters.Unsupported++
		return
	}
	if p.ECN == packet.CE && p.Opcode.HasPayload() {
		q.congested(now)
	}
	fresh := q.responder.Expects(p.PSN)
	q.responder.Request(now, &r)
	if fresh && (q.ping != nil || q.perftest != nil || q.mayServe) {
		q.pingReceived(now, &r, frame, p)
	}
}

// flowControl obeys PFC and PAUSE of the link (IEEE 802.1Q 36, IEEE 802.3 31B).
func (h *Host) flowControl(now int64, frame []byte, p *packet.Parsed) {
	const quantum = 512 * second // bit times, in units of 1/LineRate ns
	var n cnpdec.Notification
	switch h.reaction.decoder.Decode(frame, p, &n) {
	case cnpdec.Accepted:
		h.counters.FlowControl++
	default:
		h.counters.Unsupported++
		return
	}
	for i := range h.pausedTo {
		quanta := int64(n.Pause.Time)
		if n.Kind == packet.LinkPFC {
			if n.PFC.Enabled>>i&1 == 0 {
				continue
			}
			quanta = int64(n.PFC.Time[i])
		}
		h.pausedTo[i] = now + quanta*quantum/h.c.LineRate
	}
}

// notified passes packets that don't belong to a QP to the reaction point.
func (h *Host) notified(now int64, frame []byte, p *packet.Parsed) {
	h.counters.Notifications++
	flow, decision := h.reaction.Receive(now, frame, p)
	if flow != nil && decision != SlowedDown { // DCQCN's rate applies from the next packet on: the one already scheduled is not delayed
		h.byNumber[flow.QP].repace(now)
	}
}
