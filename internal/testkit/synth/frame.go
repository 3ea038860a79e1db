package synth

import (
	"encoding/binary"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/splitmix"
)

// Frame builds an event's frame, with correct checksums and ICRC. The payload is a pattern, unless it is a MAD.
func Frame(e *Event) []byte {
	b := make([]byte, e.Length())
	Head(e, b)
	p := &e.Packet
	if e.MAD == nil && p.Opcode != packet.CNP {
		for i := int(p.Payload); i < int(p.ICRC)-int(e.Pad); i++ {
			b[i] = byte(i)
		}
	}
	packet.PutICRC(b, int(p.L3), int(p.BTH), int(p.ICRC), true)
	return b
}

// Head writes the frame's headers, and its MAD if it has one, into b and returns their length. The whole frame is e.Length() bytes long. b
// must have room for HeadLen bytes.
func Head(e *Event, b []byte) int {
	p := &e.Packet
	n := int(p.Payload)
	clear(b[:n])
	putEthernet(e, b)
	putIP(p, b[p.L3:])
	udp := packet.UDPHeader{SrcPort: p.SrcPort, DstPort: p.DstPort, Length: uint16(p.IPEnd) - p.L4}
	udp.Put(b[p.L4:])
	bth := packet.BTH{Opcode: p.Opcode, PadCount: e.Pad, PKey: packet.DefaultPKey, Flags: p.BTHFlags, DestQP: p.DestQP,
		AckReq: e.AckReq, PSN: p.PSN}
	bth.Put(b[p.BTH:])
	putExtended(e, b[p.Ext():])
	if e.MAD != nil {
		n += copy(b[n:], e.MAD[:])
	}
	return n
}

// HeadLen is the largest result of Head: Ethernet with a tag, IPv6, UDP, BTH, DETH and a MAD.
const HeadLen = 18 + packet.IPv6Len + packet.UDPLen + packet.BTHLen + packet.DETHLen + packet.MADLen

func putEthernet(e *Event, b []byte) {
	p := &e.Packet
	b[0], b[6] = 2, 2
	binary.BigEndian.PutUint32(b[2:], uint32(p.Dst.Lo))
	binary.BigEndian.PutUint32(b[8:], uint32(p.Src.Lo))
	if p.Tags > 0 {
		binary.BigEndian.PutUint16(b[12:], p.OuterTag.TPID())
		binary.BigEndian.PutUint16(b[14:], p.OuterTag.VID())
	}
	binary.BigEndian.PutUint16(b[p.L3-2:], p.EtherType)
}

func putIP(p *packet.Parsed, b []byte) {
	const hopLimit = 64
	class := p.DSCP<<2 | p.ECN
	if p.Family == 6 {
		packet.PutIPv6(b, uint16(p.IPEnd)-p.L4, class, p.Proto, hopLimit, &p.Src, &p.Dst)
	} else {
		packet.PutIPv4(b, uint16(p.IPEnd)-p.L3, class, hopLimit, p.Proto, uint32(p.Src.Lo), uint32(p.Dst.Lo))
	}
}

const (
	udQKey = 0x11111111
	slot   = 1 << 24 // bytes of the peer's memory for each message
)

// putExtended writes the extended transport headers.
func putExtended(e *Event, b []byte) {
	p := &e.Packet
	h := p.Opcode.Headers()
	at := func(x packet.Headers) []byte { return b[p.Opcode.Offset(x):] }
	address := uint64(e.Message+1)*slot - uint64(e.DMALength) // the rest of a READ ends where the READ would have
	key := uint32(splitmix.Mix(uint64(p.DestQP)))
	if h&packet.HasDETH != 0 {
		qkey := uint32(udQKey)
		if p.DestQP == packet.GSIQP {
			qkey = packet.GSIQKey
		}
		(&packet.DETH{QKey: qkey, SourceQP: p.SourceQP}).Put(at(packet.HasDETH))
	}
	if h&packet.HasXRCETH != 0 {
		binary.BigEndian.PutUint32(at(packet.HasXRCETH), p.DestQP^0x800000)
	}
	if h&packet.HasRETH != 0 {
		(&packet.RETH{VirtualAddress: address, RKey: key, DMALength: e.DMALength}).Put(at(packet.HasRETH))
	}
	if h&packet.HasAtomicETH != 0 {
		atomic := at(packet.HasAtomicETH)
		binary.BigEndian.PutUint64(atomic, address)
		binary.BigEndian.PutUint32(atomic[8:], key)
		binary.BigEndian.PutUint64(atomic[12:], 1)
		binary.BigEndian.PutUint64(atomic[20:], 0)
	}
	if h&packet.HasAETH != 0 {
		packet.AETH{Syndrome: e.Syndrome, MSN: e.MSN}.Put(at(packet.HasAETH))
	}
	if h&packet.HasAtomicAckETH != 0 {
		binary.BigEndian.PutUint64(at(packet.HasAtomicAckETH), uint64(p.PSN)) // the same in a repeated response
	}
	if h&packet.HasImmDt != 0 {
		binary.BigEndian.PutUint32(at(packet.HasImmDt), e.Message)
	}
}

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
