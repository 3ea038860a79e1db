package packet

import (
	"encoding/binary"
	"fmt"
)

const (
	// MADLen is the length of a management datagram in octets (IBTA 13.4.2).
	MADLen = 256
	// MADHeaderLen is the length of the common MAD header (IBTA 13.4.3).
	MADHeaderLen = 24
	// GSIQP is the QP of the general services interface, the destination of management datagrams (IBTA 3.9.3).
	GSIQP = 1
	// GSIQKey is the Q_Key of GSIQP (IBTA 10.2).
	GSIQKey = 0x80010000
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

// The messages of connections, and of the resolution of service IDs.
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
	CMLAP     CMAttribute = 0x19 // load alternate path
	CMAPR     CMAttribute = 0x1a // alternate path response
)

// CM is a communication management message. Each message has some of the fields; the others are 0. Put gives what stands in no field the value
// that Linux's RDMA-CM gives it, so that a message of RDMA-CM without data of its consumer is the same after DecodeCM and Put.
//
//	          offset after the MAD header, octets
//	          LocalComm RemoteComm  QPN  PSN  GIDs
//	REQ           0         -       32    44  56, 72   IBTA 12.6.5; the flow label is in the upper 20 bits at 88
//	MRA           0         4        -     -   -       IBTA 12.6.6
//	REJ           0         4        -     -   -       IBTA 12.6.7
//	REP           0         4       12    20   -       IBTA 12.6.8
//	RTU           0         4        -     -   -       IBTA 12.6.9
//	DREQ          0         4        8     -   -       IBTA 12.6.10
//	DREP          0         4        -     -   -       IBTA 12.6.11
//	LAP           0         4       12     -  24, 40   IBTA 12.8.1
//	APR           0         4        -     -   -       IBTA 12.8.2
//	SIDR_REQ      0         -        -     -  20, 36   IBTA 12.11.1; the GIDs are those of RDMA-CM's private data
//	SIDR_REP      0         -        8     -   -       IBTA 12.11.2
//
// A SIDR message's request ID is in LocalComm.
type CM struct {
	Attribute             CMAttribute
	TransactionID         uint64
	LocalComm, RemoteComm uint32
	// QPN is the sender's own QP in REQ and REP, the receiver's in DREQ and LAP, the UD service's in SIDR_REP. 24 bits.
	QPN uint32
	// PSN is the starting PSN of a REQ or REP, 24 bits: of the requests to QPN, which the receiver of the message sends.
	PSN uint32
	// QKey is the UD service's in SIDR_REP.
	QKey uint32
	// FlowLabel is the primary path's in a REQ, 20 bits.
	FlowLabel uint32
	// LocalGID and RemoteGID are the addresses of the primary path; for RoCEv2 the IP addresses that the connection will use.
	LocalGID, RemoteGID Addr
	// ServiceID names what a REQ or SIDR message asks for: see ServiceID.
	ServiceID uint64
	// GUID is that of the sender's channel adapter, in REQ and REP.
	GUID uint64
	// SourcePort is RDMA-CM's port of the asking side, in REQ and SIDR_REQ for a service ID of RDMA-CM (IBTA Annex A11).
	SourcePort uint16
	// Reason says why a REJ rejects.
	Reason uint16
	// Answers says which message an MRA or REJ is about: 0 REQ, 1 REP, 2 another.
	Answers uint8
	// Transport is a REQ's transport service type: 0 RC, 1 UC, 2 RD, 3 the one in Extended, of which 1 is XRC.
	Transport, Extended uint8
	// MTU is the code of a REQ's path MTU: 1 is 256 bytes, 5 is 4096.
	MTU uint8
	// ResponderResources and InitiatorDepth are how many READs and atomics the sender of a REQ or REP takes, and has outstanding.
	ResponderResources, InitiatorDepth uint8
	// Timeout is for how long to wait, 4.096 us * 2^Timeout, 5 bits: for an answer to any message of the connection in REQ, for the REP or RTU in MRA.
	Timeout uint8
	// Retries is how often a message is repeated until its sender gives up, in REQ, 4 bits.
	Retries uint8
}

// Values of CM's fields.
const (
	CMAnswersREQ, CMAnswersREP = 0, 1 // Answers

	CMRC, CMUC, CMExtended = 0, 1, 3 // Transport
	CMXRC                  = 1       // Extended
)

// Reasons of a REJ (IBTA 12.6.7.2).
const (
	CMNoQP               = 1
	CMNoResources        = 3
	CMTimeout            = 4 // the rejecting end has waited long enough
	CMInvalidCommID      = 6
	CMInvalidServiceID   = 8 // nobody listens
	CMInvalidTransport   = 9
	CMStaleConnection    = 10 // of an earlier life of the QP
	CMInvalidGID         = 12
	CMInvalidMTU         = 26
	CMConsumerReject     = 28
	CMDuplicateLocalComm = 30
)

// The IP protocols for which RDMA-CM's service IDs stand (IBTA Annex A11).
const (
	servicePrefix = 0x01 // of the IP addressing annex: bits 24 to 63
	prefixShift   = 24
	protocolShift = 16
)

// ServiceID is RDMA-CM's service ID of a port of an IP protocol: ProtoTCP for connections, ProtoUDP for datagrams (IBTA Annex A11).
func ServiceID(protocol uint8, port uint16) uint64 {
	return servicePrefix<<prefixShift | uint64(protocol)<<protocolShift | uint64(port)
}

// ofRDMACM reports whether the message has a service ID of RDMA-CM, so that RDMA-CM's header begins its private data.
func (m *CM) ofRDMACM() bool { return m.ServiceID>>prefixShift == servicePrefix }

// CMMessage returns the communication management message in a parsed frame b: a UD packet from one GSI QP to another (IBTA 13.5.1).
func CMMessage(b []byte, p *Parsed) (m CM, ok bool) {
	if p.Kind != RoCEv2 || p.Opcode != UDSendOnly || p.DestQP != GSIQP || p.SourceQP != GSIQP || len(b) < int(p.Payload)+MADLen {
		return m, false
	}
	return DecodeCM(b[p.Payload:])
}

// DecodeCM reads a management datagram; ok is false for one that is shorter than MADLen, of another class or of a kind not listed.
func DecodeCM(b []byte) (m CM, ok bool) {
	if len(b) < MADLen || b[0] != madBaseVersion || b[1] != madClassCM || b[2] != madVersionCM || b[3] != madMethodSend {
		return m, false
	}
	m.Attribute = CMAttribute(binary.BigEndian.Uint16(b[16:]))
	if m.Attribute < CMREQ || m.Attribute > CMAPR {
		return m, false
	}
	m.TransactionID = binary.BigEndian.Uint64(b[8:])
	m.decode((*[cmLen]byte)(b[MADHeaderLen:]))
	return m, true
}

// Put writes MADLen octets.
func (m *CM) Put(b []byte) {
	b = b[:MADLen]
	clear(b)
	b[0], b[1], b[2], b[3] = madBaseVersion, madClassCM, madVersionCM, madMethodSend
	binary.BigEndian.PutUint64(b[8:], m.TransactionID)
	binary.BigEndian.PutUint16(b[16:], uint16(m.Attribute))
	m.put((*[cmLen]byte)(b[MADHeaderLen:]))
}

// CMReason says what a reason of a REJ means.
func CMReason(reason uint16) string {
	text := map[uint16]string{
		CMNoQP: "it has no QP left", CMNoResources: "it has no place for another connection", CMTimeout: "it got no answer in time",
		CMInvalidCommID: "it doesn't know the communication ID", CMInvalidServiceID: "nobody listens at this port",
		CMInvalidTransport: "it doesn't accept this transport", CMStaleConnection: "it had an earlier connection with this QP, and has ended it; try again",
		CMInvalidGID: "the addresses in the request are not those of the packet", CMInvalidMTU: "it has another path MTU",
		CMConsumerReject: "it doesn't accept this peer", CMDuplicateLocalComm: "it has a connection with this communication ID",
	}[reason]
	if text == "" {
		text = "for a reason that IBTA 12.6.7.2 lists"
	}
	return fmt.Sprintf("%s (reason %d)", text, reason)
}
