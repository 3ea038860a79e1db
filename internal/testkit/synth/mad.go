package synth

import (
	"encoding/binary"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// MADLen is the length of a management datagram in octets (IBTA 13.4.2).
const MADLen = 256

// Attributes of the communication management class (IBTA 12.6, 12.11).
const (
	attrREQ     = 0x10
	attrMRA     = 0x11
	attrREJ     = 0x12
	attrREP     = 0x13
	attrRTU     = 0x14
	attrDREQ    = 0x15
	attrDREP    = 0x16
	attrSIDRREQ = 0x17
	attrSIDRREP = 0x18
	attrLAP     = 0x19
	attrAPR     = 0x1a
)

// madHead is the length of the common MAD header; the offsets below count from its end, as IBTA's tables do.
const madHead = 24

// cmMessage is what the communication managers say in a MAD. Each message has some of it.
type cmMessage struct {
	attr             uint16
	tid              uint64 // transaction ID
	localID, peerID  uint32 // communication IDs; localID is SIDR's request ID, too
	qp               uint32 // the sender's QPN; of DREQ, the receiver's
	psn              uint32 // of the first request that the sender will receive
	guid             uint64 // of the sender's channel adapter
	service          uint16 // TCP-like port of RDMA-CM's service
	source           uint16 // TCP-like port of the active side
	local, peer      packet.Addr
	flowLabel        uint32 // 20 bits
	mtu              uint8  // code of the path MTU: 256 is 1, 4096 is 5
	transport        uint8  // of REQ: 0 RC, 1 UC, 3 with extended: XRC
	extended         uint8
	refused, reason  uint8 // of REJ: which message (0 REQ, 1 REP), why; refused of MRA, too
	responders, deep uint8 // responder resources, initiator depth
}

// mad builds the datagram.
func (m *cmMessage) mad() *[MADLen]byte {
	b := new([MADLen]byte)
	copy(b[:], []byte{1, 7, 2, 3}) // base version, communication management, class version, method Send
	binary.BigEndian.PutUint64(b[8:], m.tid)
	binary.BigEndian.PutUint16(b[16:], m.attr)
	x := b[madHead:]
	binary.BigEndian.PutUint32(x, m.localID)
	switch m.attr {
	case attrREQ:
		m.putREQ(x)
	case attrREP:
		m.putREP(x)
	case attrSIDRREQ:
		binary.BigEndian.PutUint16(x[4:], packet.DefaultPKey)
		binary.BigEndian.PutUint64(x[8:], m.serviceID(spaceUDP))
		m.putPrivate(x[16:])
	case attrSIDRREP:
		putQP(x[8:], m.qp)
		binary.BigEndian.PutUint64(x[12:], m.serviceID(spaceUDP))
		binary.BigEndian.PutUint32(x[20:], udQKey)
	case attrLAP: // IBTA table 118
		binary.BigEndian.PutUint32(x[4:], m.peerID)
		putQP(x[12:], m.qp)
		m.local.Put16(x[24:])
		m.peer.Put16(x[40:])
	default: // MRA, REJ, RTU, DREQ, DREP, APR
		binary.BigEndian.PutUint32(x[4:], m.peerID)
		if m.attr == attrDREQ {
			putQP(x[8:], m.qp)
		}
		if m.attr == attrMRA {
			x[8], x[9] = m.refused<<6, 20<<3 // service time-out
		}
		if m.attr == attrREJ {
			x[8] = m.refused << 6
			binary.BigEndian.PutUint16(x[10:], uint16(m.reason))
		}
	}
	return b
}

// putREQ writes IBTA table 106, with the values that Linux's RDMA-CM has where there is nothing to choose.
func (m *cmMessage) putREQ(x []byte) {
	binary.BigEndian.PutUint64(x[8:], m.serviceID(spaceTCP))
	binary.BigEndian.PutUint64(x[16:], m.guid)
	putQP(x[32:], m.qp)
	x[35], x[39] = m.responders, m.deep
	x[43] = 20<<3 | m.transport<<1 // remote CM response timeout
	putQP(x[44:], m.psn)
	x[47] = 20<<3 | 7 // local CM response timeout, retry count
	binary.BigEndian.PutUint16(x[48:], packet.DefaultPKey)
	x[50] = m.mtu<<4 | 7             // RNR retry count
	x[51] = 15<<4 | m.extended       // CM retries
	copy(x[52:], "\xff\xff\xff\xff") // LIDs, which RoCE doesn't have
	m.local.Put16(x[56:])
	m.peer.Put16(x[72:])
	binary.BigEndian.PutUint32(x[88:], m.flowLabel<<12)
	x[93] = 64      // hop limit
	x[95] = 19 << 3 // local ACK timeout
	m.putPrivate(x[140:])
}

// putREP writes IBTA table 110.
func (m *cmMessage) putREP(x []byte) {
	binary.BigEndian.PutUint32(x[4:], m.peerID)
	putQP(x[12:], m.qp)
	putQP(x[20:], m.psn)
	x[24], x[25] = m.responders, m.deep
	x[26] = 15 << 3 // target ACK delay
	x[27] = 7 << 5  // RNR retry count
	binary.BigEndian.PutUint64(x[28:], m.guid)
}

// putPrivate writes the header that RDMA-CM puts before the private data (IBTA Annex A11): IP version, source port, addresses.
func (m *cmMessage) putPrivate(x []byte) {
	binary.BigEndian.PutUint16(x[2:], m.source)
	if m.local.Is4() {
		x[1] = 4 << 4
		m.local.Put4(x[16:])
		m.peer.Put4(x[32:])
		return
	}
	x[1] = 6 << 4
	m.local.Put16(x[4:])
	m.peer.Put16(x[20:])
}

// IP protocol numbers that RDMA-CM's service IDs stand in for (IBTA Annex A11).
const (
	spaceTCP = 6
	spaceUDP = 17
)

func (m *cmMessage) serviceID(space uint64) uint64 { return 1<<24 | space<<16 | uint64(m.service) }

func putQP(b []byte, qp uint32) { b[0], b[1], b[2] = byte(qp>>16), byte(qp>>8), byte(qp) }

func attrOf(b *[MADLen]byte) uint16 { return binary.BigEndian.Uint16(b[16:]) }
