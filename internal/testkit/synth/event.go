package synth

import "github.com/cnpgate/cnpgate/internal/packet"

// Event is a packet that the tap sees, with the truth about it.
type Event struct {
	Packet packet.Parsed // as packet.Parse would return it

	// Contents of the headers that Parse doesn't return.
	MSN       uint32 // of the AETH
	DMALength uint32 // of the RETH, bytes
	MAD       *[packet.MADLen]byte
	Pad       uint8
	Syndrome  uint8 // of the AETH
	AckReq    bool

	// The truth.
	Forged   bool   // by an attacker; the fields below are then unknown
	Resent   bool   // an earlier packet had the same PSN, and may have been lost before the tap
	Lost     bool   // lost after the tap
	From     End    // the side from which it arrives, for forged packets too
	Conn     int32  // -1 for forged packets, and for MADs that answer them
	Time     int64  // ns
	SourceQP uint32 // of the sender; 1 for MADs
	Message  uint32 // requests: the requester's message, from 0; responses: the MSN
}

// Length is the frame's length in bytes without FCS.
func (e *Event) Length() uint32 { return e.Packet.IPEnd }

// show makes the event of a packet.
func (t *Traffic) show(f *flight, e *Event) {
	*e = Event{Packet: t.shown[f.conn][f.from], MSN: f.aeth.MSN, Syndrome: f.aeth.Syndrome, AckReq: f.ackReq, Resent: f.resent,
		Lost: f.lost, From: f.from, Conn: f.conn, Time: t.now, SourceQP: t.conns[f.conn].QP[f.from], Message: f.number}
	p := &e.Packet
	p.Opcode, p.PSN, p.SrcPort = f.op, f.psn, f.port
	p.DSCP, p.ECN = f.dscp, f.ecn
	switch f.kind {
	case mad:
		e.MAD = t.mads[f.mad]
		p.DestQP, e.SourceQP = packet.GSIQP, packet.GSIQP
	case cnp:
		p.BTHFlags = packet.BECN
	}
	if f.to != f.conn {
		to := &t.conns[f.to]
		p.Dst, p.DestQP = to.Host[1-f.from], to.QP[1-f.from]
	}
	if p.Opcode.Headers()&packet.HasDETH != 0 {
		p.SourceQP = e.SourceQP
	}
	if p.Opcode.Headers()&packet.HasRETH != 0 {
		e.DMALength = f.left
	}
	e.Pad = uint8(-f.octets & 3)
	setLengths(p, f.octets+uint16(e.Pad))
}

// setLengths sets the fields that follow from the opcode and the length of the padded payload.
func setLengths(p *packet.Parsed, payload uint16) {
	p.Payload = uint16(p.Ext() + p.Opcode.HeadersLen())
	p.ICRC = uint32(p.Payload + payload)
	p.IPEnd = p.ICRC + packet.ICRCLen
	p.Len = p.IPEnd
}
