package synth

import "github.com/cnpgate/cnpgate/internal/packet"

// Event is a packet that the tap sees, with the truth about it.
type Event struct {
	Packet packet.Parsed // what packet.Parse finds in the frame

	// What Parse leaves in the frame's octets.
	MSN       uint32 // of the AETH
	DMALength uint32 // of the RETH, octets
	MAD       *[MADLen]byte
	Pad       uint8
	Syndrome  uint8 // of the AETH
	AckReq    bool

	// The truth.
	Forged   bool   // by an attacker; what follows isn't known then
	Resent   bool   // an earlier packet had the same PSN and was sent, though perhaps lost before the tap
	Lost     bool   // gets lost behind the tap
	From     End    // the side it comes in from, of forged packets too
	Conn     int32  // -1 of forged packets, and of MADs that answer them
	Time     int64  // ns
	SourceQP uint32 // of the sender; 1 of MADs
	Message  uint32 // requests and READ or atomic responses: the requester's message, from 0
}

// Length is the frame's length in octets without FCS.
func (e *Event) Length() uint32 { return e.Packet.IPEnd }

// gsiQP is the general service interface's QP, which MADs of the communication managers go from and to.
const gsiQP = 1

// show makes the event of a packet.
func (t *Traffic) show(f *flight, e *Event) {
	*e = Event{Packet: t.shown[f.conn][f.from], MSN: f.msn & 0xffffff, Syndrome: f.syndrome, AckReq: f.ackReq, Resent: f.resent,
		Lost: f.lost, From: f.from, Conn: f.conn, Time: t.now, SourceQP: t.conns[f.conn].QP[f.from], Message: f.number}
	p := &e.Packet
	p.Opcode, p.PSN, p.SrcPort = packet.Opcode(f.op), f.psn&0xffffff, f.port
	p.DSCP, p.ECN = f.dscp, f.ecn
	switch f.kind {
	case mad:
		e.MAD = t.mads[f.mad]
		p.DestQP, e.SourceQP = gsiQP, gsiQP
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

// setLengths fills in what follows from the opcode and the length of the padded payload.
func setLengths(p *packet.Parsed, payload uint16) {
	p.Payload = p.Ext + uint16(p.Opcode.HeadersLen())
	p.ICRC = uint32(p.Payload + payload)
	p.IPEnd = p.ICRC + packet.ICRCLen
	p.Len = p.IPEnd
}
