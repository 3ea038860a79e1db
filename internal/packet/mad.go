package packet

import "encoding/binary"

const (
	// MADLen is the length of a management datagram in octets (IBTA 13.4.2).
	MADLen = 256
	// madHeaderLen is the length of the common MAD header (IBTA 13.4.3).
	madHeaderLen = 24
	// GSIQP is the general services interface, to which management datagrams go (IBTA 3.9.3).
	GSIQP = 1
)

// A communication management datagram: its base version, class, class version and the one method it uses (IBTA 12.6, 13.4.3).
const (
	madBaseVersion = 1
	madClassCM     = 7
	madVersionCM   = 2
	madMethodSend  = 3
)

// CMAttribute is the kind of a communication management message (IBTA 12.6, table 99).
type CMAttribute uint16

// The messages that say something of queue pairs.
const (
	CMREQ     CMAttribute = 0x10 // request for communication
	CMMRA     CMAttribute = 0x11 // message receipt acknowledgement
	CMREJ     CMAttribute = 0x12 // reject
	CMREP     CMAttribute = 0x13 // reply to request for communication
	CMRTU     CMAttribute = 0x14 // ready to use
	CMDREQ    CMAttribute = 0x15 // request for communication release
	CMDREP    CMAttribute = 0x16 // reply to request for communication release
	CMSIDRREQ CMAttribute = 0x17 // service ID resolution request
	CMSIDRREP CMAttribute = 0x18 // service ID resolution response
)

// CM is what a communication management message tells of a connection. Fields that a message doesn't have are 0.
//
//	          offset after the MAD header, octets
//	          LocalComm RemoteComm  QPN  PSN  GIDs
//	REQ           0         -       32    44  56, 72   IBTA 12.6.5; the flow label lies in the upper 20 bits at 88
//	REJ           0         4        -     -   -       IBTA 12.6.7
//	REP           0         4       12    20   -       IBTA 12.6.8
//	RTU           0         4        -     -   -       IBTA 12.6.9
//	DREQ          0         4        8     -   -       IBTA 12.6.10
//	DREP          0         4        -     -   -       IBTA 12.6.11
//	SIDR_REQ      0         -        -     -   -       IBTA 12.11.1
//	SIDR_REP      0         -        8     -   -       IBTA 12.11.2
//
// A SIDR message's request ID stands in LocalComm.
type CM struct {
	Attribute             CMAttribute
	LocalComm, RemoteComm uint32
	// QPN is the sender's own QP in REQ and REP, the receiver's in DREQ, the UD service's in SIDR_REP. 24 bits.
	QPN uint32
	// PSN is the starting PSN of a REQ or REP, 24 bits: of the requests to QPN, so of those that the receiver of the message sends.
	PSN uint32
	// FlowLabel is the primary path's in a REQ, 20 bits.
	FlowLabel uint32
	// LocalGID and RemoteGID are the addresses of the primary path; for RoCEv2 the IP addresses that the connection will use.
	LocalGID, RemoteGID Addr
}

// cmLayout says where a message has its fields, in octets after the MAD header; 0 where it has none.
type cmLayout struct{ remote, qpn, psn, gids uint8 }

var cmLayouts = [...]cmLayout{
	0:                 {qpn: 32, psn: 44, gids: 56},
	CMMRA - CMREQ:     {remote: 4},
	CMREJ - CMREQ:     {remote: 4},
	CMREP - CMREQ:     {remote: 4, qpn: 12, psn: 20},
	CMRTU - CMREQ:     {remote: 4},
	CMDREQ - CMREQ:    {remote: 4, qpn: 8},
	CMDREP - CMREQ:    {remote: 4},
	CMSIDRREQ - CMREQ: {},
	CMSIDRREP - CMREQ: {qpn: 8},
}

// DecodeCM reads a management datagram; ok is false for one that is shorter than MADLen, of another class or of a kind not listed.
func DecodeCM(b []byte) (m CM, ok bool) {
	if len(b) < MADLen || b[0] != madBaseVersion || b[1] != madClassCM || b[2] != madVersionCM || b[3] != madMethodSend {
		return m, false
	}
	m.Attribute = CMAttribute(binary.BigEndian.Uint16(b[16:]))
	if m.Attribute < CMREQ || m.Attribute > CMSIDRREP {
		return m, false
	}
	l, b := cmLayouts[m.Attribute-CMREQ], b[madHeaderLen:]
	m.LocalComm = binary.BigEndian.Uint32(b)
	if l.remote != 0 {
		m.RemoteComm = binary.BigEndian.Uint32(b[l.remote:])
	}
	if l.qpn != 0 {
		m.QPN = binary.BigEndian.Uint32(b[l.qpn:]) >> 8
	}
	if l.psn != 0 {
		m.PSN = binary.BigEndian.Uint32(b[l.psn:]) >> 8
	}
	if l.gids != 0 {
		m.LocalGID, m.RemoteGID = AddrFrom16(b[l.gids:]), AddrFrom16(b[l.gids+16:])
		m.FlowLabel = binary.BigEndian.Uint32(b[l.gids+32:]) >> 12
	}
	return m, true
}

// CMMessage is the communication management message in a parsed frame b: a UD packet from one GSI QP to another (IBTA 13.5.1).
func CMMessage(b []byte, p *Parsed) (m CM, ok bool) {
	if p.Kind != RoCEv2 || p.Opcode != UDSendOnly || p.DestQP != GSIQP || p.SourceQP != GSIQP || len(b) < int(p.Payload)+MADLen {
		return m, false
	}
	return DecodeCM(b[p.Payload:])
}
