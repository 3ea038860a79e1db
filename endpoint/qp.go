package endpoint

import (
	"fmt"

	"github.com/cnpgate/cnpgate/internal/cm"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/ring"
	"github.com/cnpgate/cnpgate/internal/transport"
)

// Peer is the other end of a QP.
type Peer struct {
	Addr packet.Addr
	MAC  [6]byte // of the peer, or of the router towards it
	QP   uint32  // QP number, 24 bits
}

// QP describes a queue pair to open, of a reliable connection.
type QP struct {
	Number     uint32 // of this host, 24 bits
	Peer       Peer
	SendPSN    uint32 // first PSN of this host's requests, 24 bits
	ReceivePSN uint32 // first PSN of the peer's requests, 24 bits
	SrcPort    uint16 // UDP source port; 0: as Linux chooses it
}

// qp is an open queue pair.
type qp struct {
	QP
	h    *Host
	dead bool     // failed or closed
	data template // of packets with data
	ack  template // of acknowledgements
	flow *Flow

	requester transport.Requester
	responder transport.Responder
	streams   ring.Ring[activeStream]
	remote    Region // of the peer, for READ and WRITE
	ping      *ping  // rping's exchange; nil without one
	mayServe  bool   // the peer's first message may begin rping's or perftest's exchange
	perftest  *perftest
	refused   uint8 // syndrome of the NAK with which the peer refused a request for good
	// unconfirmed is the QP's connection until the peer's RTU, or another packet, arrives.
	unconfirmed *cm.Conn

	cnpDue  bool
	lastCNP int64 // ns; -never if none was sent

	sentAt    int64   // when the last data packet started, ns
	sentBits  float64 // its length
	sendAt    int64   // when pacing allows the next data packet, ns
	timerAt   int64
	paceIndex int32 // in Host.pacing
	timer     int32 // index in Host.timers
	inReady   bool
	inControl bool
}

// Open opens a QP. The peer opens its own end with Peer, SendPSN and ReceivePSN the other way round.
func (h *Host) Open(c QP) error {
	switch _, taken := h.byNumber[c.Number]; {
	case c.Number == 0 || c.Number > packet.MaxQP:
		return fmt.Errorf("endpoint: QP number %d, expected 1 to %d", c.Number, packet.MaxQP)
	case c.Number == packet.GSIQP && h.manager != nil:
		return fmt.Errorf("endpoint: QP %d is the connection manager's; expected another number", packet.GSIQP)
	case taken:
		return fmt.Errorf("endpoint: QP 0x%06x is open already; close it first", c.Number)
	case c.Peer.Addr.Is4() != h.c.Addr.Is4():
		return fmt.Errorf("endpoint: the peer %v of QP 0x%06x has a different IP version from the host", c.Peer.Addr.Netip(), c.Number)
	case (c.SendPSN|c.ReceivePSN)&^packet.PSNMask != 0 || c.Peer.QP > packet.MaxQP:
		return fmt.Errorf("endpoint: QP 0x%06x: a PSN or the peer's QP number has more than 24 bits", c.Number)
	}
	if c.SrcPort == 0 {
		c.SrcPort = packet.SourcePort(c.Number, c.Peer.QP)
	}
	q := &qp{QP: c, h: h, timerAt: never, lastCNP: -never, remote: Region{regionBase, regionKey ^ c.Peer.QP}}
	if h.c.Remote != nil {
		q.remote = *h.c.Remote
	}
	q.flow = h.reaction.Open(FlowID{QP: c.Number, Dst: c.Peer.Addr, DestQP: c.Peer.QP})
	q.data, q.ack = h.c.templates(&c)
	q.requester.Start(&h.transport, &h.counted, transport.RC, c.SendPSN, func(now int64, m transport.Message, failed bool) {
		switch {
		case h.byNumber[c.Number] != q: // Completed may have closed it
		case q.ping != nil:
			q.ping.done(now, m, failed)
		case q.perftest != nil:
			q.perftest.returned(now)
		default:
			h.complete(now, m, failed)
		}
	})
	q.responder.Start(&h.transport, &h.counted, transport.RC, c.ReceivePSN)
	h.byNumber[c.Number] = q
	return nil
}

// Peer returns the other end of a QP, and the UDP source port of its packets; ok is false if there is no such QP.
func (h *Host) Peer(number uint32) (peer Peer, port uint16, ok bool) {
	q := h.byNumber[number]
	if q == nil {
		return peer, 0, false
	}
	return q.Peer, q.SrcPort, true
}

// Close ends a QP. Its messages don't complete. Frames that arrive for it are dropped and counted. The peer of an RDMA-CM connection isn't
// notified: see Disconnect.
func (h *Host) Close(number uint32) {
	q := h.byNumber[number]
	if q == nil {
		return
	}
	delete(h.byNumber, number)
	if c := h.conns[number]; c != nil {
		delete(h.conns, number)
		h.manager.Forget(c)
	}
	h.reaction.Close(q.flow)
	h.timers.remove(&q.timer)
	h.pacing.remove(&q.paceIndex)
	q.dead = true // Next skips it in the queues that still hold it
}

// Connect opens an RC connection between two hosts, with QP numbers that are free at each of them, and returns the numbers. psn is the
// starting PSN of a's and of b's requests.
func Connect(a, b *Host, psn [2]uint32) (atA, atB uint32, err error) {
	atA, atB = a.freeNumber(), b.freeNumber()
	err = a.Open(QP{Number: atA, Peer: Peer{b.c.Addr, b.c.MAC, atB}, SendPSN: psn[0], ReceivePSN: psn[1]})
	if err != nil {
		return 0, 0, err
	}
	err = b.Open(QP{Number: atB, Peer: Peer{a.c.Addr, a.c.MAC, atA}, SendPSN: psn[1], ReceivePSN: psn[0]})
	if err != nil {
		a.Close(atA)
		return 0, 0, err
	}
	return atA, atB, nil
}

// freeNumber returns the next unused QP number, counting upwards as NICs do.
func (h *Host) freeNumber() uint32 {
	for {
		n := h.nextNumber
		if h.nextNumber++; h.nextNumber >= packet.MaxQP { // the highest is the multicast QP
			h.nextNumber = h.c.FirstQP
		}
		if _, taken := h.byNumber[n]; !taken {
			return n
		}
	}
}
