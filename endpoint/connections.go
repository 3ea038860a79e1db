package endpoint

import (
	"fmt"
	"math/bits"

	"github.com/cnpgate/cnpgate/internal/cm"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/transport"
)

// CMConfig makes RDMA-CM set up and tear down RC connections, by messages between QPs 1 (IBTA 12). A zero field takes the default that its
// comment gives.
type CMConfig struct {
	Enabled     bool
	Listen      uint16 // RDMA-CM's port at which peers may connect; 0: none
	Connections int    // most connections that the host keeps, including recently ended ones; 64
	Timeout     uint8  // a message without an answer is repeated after 4.096 us * 2^Timeout; 15: 134 ms
	Retries     uint8  // repetitions before the connection fails; 15
	Seed        uint64 // of communication IDs, starting PSNs and ports
	Rping       bool   // serve peers that begin rping's or perftest's exchange, also at RpingPort and PerftestPort; the payload must be real
	// Accept decides whether a peer may connect: it returns 0, or the reason for a REJ. nil: all peers may.
	Accept func(from Peer) (reason uint16)
	// Changed is called when a connection is established, and when it has ended. It may call Start, Dial and Disconnect.
	Changed func(now int64, c Connection)
}

// Connection is a connection of RDMA-CM.
type Connection struct {
	ID   uint64 // as given to Dial; 0 if the peer requested the connection
	QP   uint32 // of this host
	Peer Peer   // Peer.QP is 0 if the peer never named it
	Up   bool   // both ends may use it; otherwise it has ended
	// Outcome says why it ended; Reason is that of the peer's REJ.
	Outcome cm.Outcome
	Reason  uint16
}

// complete sets defaults, and makes the checks that package cm can't.
func (c *CMConfig) complete(mtu int, firstQP uint32) error {
	setDefault(&c.Connections, 64)
	setDefault(&c.Timeout, 15)
	setDefault(&c.Retries, 15)
	const lowest = packet.GSIQP + 1
	highest := uint32(max(lowest, packet.MaxQP-1-c.Connections))
	switch {
	case !c.Enabled:
	case mtu < 256 || mtu > 4096 || mtu&(mtu-1) != 0:
		return fmt.Errorf("MTU is %d bytes, but RDMA-CM knows 256, 512, 1024, 2048 and 4096 only", mtu)
	case firstQP < lowest || firstQP > highest:
		return fmt.Errorf("the first QP is %d, expected %d to %d for %d connections of RDMA-CM", firstQP, lowest, highest, c.Connections)
	}
	return nil
}

// newManager makes the host's connection manager; nil if RDMA-CM isn't enabled.
func (h *Host) newManager() (*cm.Manager, error) {
	c := &h.c.CM
	if !c.Enabled {
		return nil, nil
	}
	const mtu256 = 8 // 2^8 bytes have code 1
	var also []uint16
	if c.Rping {
		also = []uint16{RpingPort, PerftestPort}
	}
	return cm.New(cm.Config{Also: also, Addr: h.c.Addr, GUID: eui64(h.c.MAC), MTU: uint8(bits.Len(uint(h.c.MTU)) - mtu256), Port: c.Listen, Timeout: c.Timeout,
		Retries: c.Retries, Connections: c.Connections, ReadDepth: transport.MaxReads, Seed: c.Seed, Handler: connections{h}})
}

// eui64 is the GUID that Soft-RoCE makes from a MAC address (RFC 4291 appendix A).
func eui64(mac [6]byte) (id uint64) {
	for _, b := range [8]byte{mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]} {
		id = id<<8 | uint64(b)
	}
	return id
}

// Dial requests a connection from a peer by RDMA-CM, to the service at a port, and returns the number that this host's QP will have.
// CMConfig.Changed reports the outcome. to.QP isn't used.
func (h *Host) Dial(now int64, to Peer, port uint16, id uint64) (qp uint32, err error) {
	switch {
	case h.manager == nil:
		return 0, fmt.Errorf("endpoint: RDMA-CM isn't enabled; set CM.Enabled")
	case to.Addr.Is4() != h.c.Addr.Is4():
		return 0, fmt.Errorf("endpoint: the peer %v has a different IP version from the host", to.Addr.Netip())
	}
	qp = h.freeNumber()
	c, err := h.manager.Connect(now, cm.Peer{Addr: to.Addr, MAC: to.MAC}, port, cm.QP{Number: qp, PSN: h.manager.RandomPSN()}, id)
	if err != nil {
		return 0, fmt.Errorf("endpoint: %w", err)
	}
	h.byNumber[qp] = nil // reserve the number
	h.conns[qp] = c
	return qp, nil
}

// Disconnect ends a connection of RDMA-CM by DREQ. Its QP stops sending at once, and is closed when the peer has answered or the DREQ times
// out.
func (h *Host) Disconnect(now int64, qp uint32) {
	if q := h.byNumber[qp]; q != nil {
		q.dead = true
	}
	if c := h.conns[qp]; c != nil {
		h.manager.Disconnect(now, c)
	}
}

// DisconnectAll ends all connections of RDMA-CM by DREQ.
func (h *Host) DisconnectAll(now int64) {
	if h.manager == nil {
		return
	}
	for _, c := range h.manager.InUse() {
		h.Disconnect(now, c.Local.Number)
	}
}

// Connections is the number of RDMA-CM connections that are being set up, in use or being ended.
func (h *Host) Connections() int { return len(h.conns) }

// Disconnected reports whether there are no connections of RDMA-CM, and Next has returned all messages about earlier ones.
func (h *Host) Disconnected() bool {
	return h.manager == nil || len(h.conns) == 0 && !h.manager.Pending()
}

// CMCounters returns the connection manager's counters, or zeros without a connection manager.
func (h *Host) CMCounters() (c cm.Counters) {
	if h.manager != nil {
		c = h.manager.Counters()
	}
	return c
}

// connections is the interface of the host to its connection manager.
type connections struct{ *Host }

// Open opens the QP of a connection. Both ends use the UDP source port that Linux derives from the REQ's flow label.
func (h connections) Open(_ int64, c *cm.Conn) (reason uint16) {
	if c.Active {
		delete(h.byNumber, c.Local.Number) // it was reserved
	} else {
		if accept := h.c.CM.Accept; accept != nil {
			if reason = accept(peerOf(c)); reason != 0 {
				return reason
			}
		}
		c.Local = cm.QP{Number: h.freeNumber(), PSN: h.manager.RandomPSN()}
	}
	q := QP{Number: c.Local.Number, Peer: peerOf(c), SendPSN: c.Remote.PSN, ReceivePSN: c.Local.PSN}
	if c.FlowLabel != 0 {
		q.SrcPort = packet.LabelPort(c.FlowLabel)
	}
	if err := h.Host.Open(q); err != nil {
		return packet.CMNoQP
	}
	h.conns[c.Local.Number] = c
	open := h.byNumber[c.Local.Number]
	open.unconfirmed, open.mayServe = c, !c.Active && h.c.CM.Rping
	return 0
}

func peerOf(c *cm.Conn) Peer { return Peer{Addr: c.Peer.Addr, MAC: c.Peer.MAC, QP: c.Remote.Number} }

// Established notifies the host's user that a connection may be used.
func (h connections) Established(now int64, c *cm.Conn) {
	h.byNumber[c.Local.Number].unconfirmed = nil
	h.changed(now, Connection{ID: c.ID, QP: c.Local.Number, Peer: peerOf(c), Up: true})
}

// Ended closes the QP of a connection.
func (h connections) Ended(now int64, c *cm.Conn, o cm.Outcome) {
	number := c.Local.Number
	delete(h.conns, number)
	if h.byNumber[number] == nil {
		delete(h.byNumber, number) // it was reserved
	}
	h.Close(number)
	h.changed(now, Connection{ID: c.ID, QP: number, Peer: peerOf(c), Outcome: o, Reason: c.Reason})
}

func (h *Host) changed(now int64, c Connection) {
	if h.c.CM.Changed != nil {
		h.c.CM.Changed(now, c)
	}
}

// receiveMAD processes a packet to QP 1.
func (h *Host) receiveMAD(now int64, frame []byte, p *packet.Parsed) {
	if !icrcOK(frame, p) {
		h.counters.WrongICRC++
		return
	}
	h.counters.CMReceived++
	from := cm.Peer{Addr: p.Src, MAC: [6]byte(frame[6:12])}
	m, ok := packet.CMMessage(frame, p)
	if !ok || packet.DecodeDETH(frame[p.Ext():]).QKey != packet.GSIQKey {
		h.manager.Receive(now, from, nil)
		return
	}
	h.manager.Receive(now, from, &m)
}

// putMAD writes a message of the connection manager. All its bytes are present in every payload mode, as its receiver checks the ICRC.
func (h *Host) putMAD(m *cm.Message, out []byte) (n, length int) {
	to := Peer{Addr: m.To.Addr, MAC: m.To.MAC, QP: packet.GSIQP}
	t := h.c.template(h.scratch[:0], to, packet.SoftRoCEPort(packet.GSIQP), nil)
	t.put(out, 0, packet.UDSendOnly, h.madPSN, packet.DETHLen+packet.MADLen+packet.ICRCLen)
	h.madPSN++
	h.counters.CMSent++
	at := t.bth + packet.BTHLen
	(&packet.DETH{QKey: packet.GSIQKey, SourceQP: packet.GSIQP}).Put(out[at:])
	m.Put(out[at+packet.DETHLen:])
	length = at + packet.DETHLen + packet.MADLen + packet.ICRCLen
	packet.PutICRC(out, l3, t.bth, length-packet.ICRCLen, true)
	return length, length
}
