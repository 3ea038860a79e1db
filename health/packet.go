package health

import (
	"encoding/binary"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Packet is what this package reads of a RoCEv2 packet.
type Packet struct {
	Time     int64 // ns
	PSN      uint32
	Len      uint32 // bytes of the frame
	Data     uint32 // bytes of payload, without padding
	Message  uint32 // bytes of the whole message, as RETH says; 0: it doesn't
	ID       uint16 // IPv4 identification; 0: none
	Opcode   packet.Opcode
	MSN      uint32 // AETH: how many messages the responder has completed, modulo 2^24
	Syndrome uint8  // AETH
	Hops     uint8  // IPv4 TTL or IPv6 hop limit
	DSCP     uint8
	AckReq   bool
	CE       bool
	NotECT   bool // it can't be marked CE
	HasAETH  bool
	HasMSN   bool
	Cut      bool // the AETH or the RETH isn't in the capture
}

// Read reads a RoCEv2 packet from the frame b of which p was parsed.
func Read(b []byte, p *packet.Parsed, now int64) (o Packet) {
	o = Packet{Time: now, PSN: p.PSN, Len: p.Len, Opcode: p.Opcode, DSCP: p.DSCP, CE: p.ECN == packet.CE}
	o.AckReq = b[p.BTH+8]&0x80 != 0
	if p.Family == 4 && int(p.L3)+6 <= len(b) {
		o.ID = binary.BigEndian.Uint16(b[p.L3+4:])
	}
	switch l3 := int(p.L3); {
	case p.Family == 4 && l3+8 < len(b):
		o.Hops = b[l3+8]
	case p.Family == 6 && l3+7 < len(b):
		o.Hops = b[l3+7]
	}
	if p.Outer != p.L3 { // either header says so (RFC 6040 4.2)
		class := b[p.L3+1]
		if p.Family == 6 {
			class >>= 4
		}
		o.CE = o.CE || class&3 == packet.CE
	}
	o.NotECT = p.ECN == 0 && !o.CE
	headers := p.Opcode.Headers()
	if headers&packet.HasAETH != 0 {
		if at := p.Ext() + p.Opcode.Offset(packet.HasAETH); at < len(b) {
			o.HasAETH, o.Syndrome = true, b[at]
			if at+packet.AETHLen <= len(b) {
				o.MSN, o.HasMSN = binary.BigEndian.Uint32(b[at:])&packet.PSNMask, true
			}
		} else {
			o.Cut = true
		}
	}
	if headers&packet.HasRETH != 0 {
		if at := p.Ext() + p.Opcode.Offset(packet.HasRETH); at+packet.RETHLen <= len(b) {
			o.Message = binary.BigEndian.Uint32(b[at+12:])
		} else {
			o.Cut = true
		}
	}
	if end := p.ICRC; p.Opcode.HasPayload() && end > uint32(p.Payload) {
		o.Data = end - uint32(p.Payload) - uint32(b[p.BTH+1]>>4&3)
	}
	return o
}

// returnsData reports whether the response to a request carries data, so that an ACK is not enough: READ and ATOMIC (IBTA 9.7.5.1.5).
func returnsData(o packet.Opcode) bool {
	switch o & 31 {
	case packet.RCReadRequest, packet.RCCmpSwap, packet.RCFetchAdd:
		return true
	}
	return false
}

// carriesData reports whether a response does.
func carriesData(o packet.Opcode) bool { return o.HasPayload() || o&31 == packet.RCAtomicAcknowledge }

// ahead is how far PSN a is ahead of b; less than 0: behind.
func ahead(a, b uint32) int32 { return int32((a-b)<<8) >> 8 }

// place is what an opcode says of a packet's place in its message.
type place uint8

const (
	first place = 1 << iota
	last
)

// asks reports whether a request is to be answered at once.
func asks(p *Packet) bool { return p.AckReq || placeOf(p.Opcode)&last != 0 }

// placeOf is first, last, both or neither.
func placeOf(o packet.Opcode) place {
	switch o & 31 {
	case packet.RCSendFirst, packet.RCWriteFirst, packet.RCReadRespFirst:
		return first
	case packet.RCSendMiddle, packet.RCWriteMiddle, packet.RCReadRespMiddle:
		return 0
	case packet.RCSendLast, packet.RCSendLastImm, packet.RCSendLastInvalidate, packet.RCWriteLast, packet.RCWriteLastImm, packet.RCReadRespLast:
		return last
	}
	return first | last
}

// Operation is the kind of a message.
type Operation uint8

// Operations.
const (
	Send Operation = iota
	Write
	ReadOp
	Atomic
	Operations = iota
)

func (o Operation) String() string {
	return [...]string{"send", "write", "read", "atomic"}[o%Operations]
}

func operationOf(o packet.Opcode) Operation {
	switch o & 31 {
	case packet.RCWriteFirst, packet.RCWriteMiddle, packet.RCWriteLast, packet.RCWriteLastImm, packet.RCWriteOnly, packet.RCWriteOnlyImm,
		packet.RCAtomicWrite, packet.RCFlush:
		return Write
	case packet.RCReadRequest, packet.RCReadRespFirst, packet.RCReadRespMiddle, packet.RCReadRespLast, packet.RCReadRespOnly:
		return ReadOp
	case packet.RCCmpSwap, packet.RCFetchAdd, packet.RCAtomicAcknowledge:
		return Atomic
	}
	return Send
}

const transportUC, transportUD = 1, 3 // the three high bits of an opcode
