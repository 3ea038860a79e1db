package packet

import "encoding/binary"

// cmLen is the length of a communication management message behind the MAD header, in octets. Offsets count from there, as IBTA's tables do.
const cmLen = MADLen - MADHeaderLen

// Offsets that several functions need.
const (
	cmRemoteComm  = 4
	reqPrivate    = 140
	reqFlowLabel  = 88
	sidrPrivate   = 16
	addressMargin = 12 // octets before an IPv4 address in RDMA-CM's header
)

// What RDMA-CM of Linux writes where a reader has nothing to learn of a connection.
const (
	anyLID        = 0xffff
	retries7      = 7 // retry count and RNR retry count
	reqHopLimit   = 64
	ackTimeout    = 19 // 4.096 us * 2^19
	ackDelay      = 15
	timeoutShift  = 3
	messageShift  = 6
	labelShift    = 12
	mtuShift      = 4
	retriesShift  = 4
	serviceShift  = 1
	rnrShift      = 5
	versionShift  = 4
	transportMask = 3
	extendedMask  = 7
)

// decode reads what comes after the MAD header. Attribute is set.
func (m *CM) decode(x *[cmLen]byte) {
	m.LocalComm = binary.BigEndian.Uint32(x[:])
	switch m.Attribute {
	case CMREQ:
		m.decodeREQ(x)
		return
	case CMSIDRREQ:
		m.ServiceID = binary.BigEndian.Uint64(x[8:])
		m.SourcePort = m.decodePort(x[sidrPrivate:])
		m.decodeAddresses(x[sidrPrivate:])
		return
	case CMSIDRREP:
		m.QPN, m.ServiceID, m.QKey = decode24(x[8:]), binary.BigEndian.Uint64(x[12:]), binary.BigEndian.Uint32(x[20:])
		return
	}
	m.RemoteComm = binary.BigEndian.Uint32(x[cmRemoteComm:])
	switch m.Attribute {
	case CMREP:
		m.QPN, m.PSN = decode24(x[12:]), decode24(x[20:])
		m.ResponderResources, m.InitiatorDepth, m.GUID = x[24], x[25], binary.BigEndian.Uint64(x[28:])
	case CMDREQ:
		m.QPN = decode24(x[8:])
	case CMLAP:
		m.QPN, m.LocalGID, m.RemoteGID = decode24(x[12:]), AddrFrom16(x[24:]), AddrFrom16(x[40:])
	case CMMRA:
		m.Answers, m.Timeout = x[8]>>messageShift, x[9]>>timeoutShift
	case CMREJ:
		m.Answers, m.Reason = x[8]>>messageShift, binary.BigEndian.Uint16(x[10:])
	}
}

// decodeREQ reads IBTA table 106.
func (m *CM) decodeREQ(x *[cmLen]byte) {
	m.ServiceID, m.GUID = binary.BigEndian.Uint64(x[8:]), binary.BigEndian.Uint64(x[16:])
	m.QPN, m.ResponderResources = decode24(x[32:]), x[35]
	m.InitiatorDepth = x[39]
	m.Transport = x[43] >> serviceShift & transportMask
	m.PSN, m.Timeout = decode24(x[44:]), x[47]>>timeoutShift
	m.MTU = x[50] >> mtuShift
	m.Retries, m.Extended = x[51]>>retriesShift, x[51]&extendedMask
	m.LocalGID, m.RemoteGID = AddrFrom16(x[56:]), AddrFrom16(x[72:])
	m.FlowLabel = binary.BigEndian.Uint32(x[reqFlowLabel:]) >> labelShift
	m.SourcePort = m.decodePort(x[reqPrivate:])
}

func (m *CM) decodePort(x []byte) uint16 {
	if !m.ofRDMACM() {
		return 0
	}
	return binary.BigEndian.Uint16(x[2:])
}

// decodeAddresses reads the addresses of RDMA-CM's header. In REQ they are those of the path once more.
func (m *CM) decodeAddresses(x []byte) {
	if !m.ofRDMACM() {
		return
	}
	switch x[1] >> versionShift {
	case 4:
		m.LocalGID, m.RemoteGID = AddrFrom4(x[4+addressMargin:]), AddrFrom4(x[20+addressMargin:])
	case 6:
		m.LocalGID, m.RemoteGID = AddrFrom16(x[4:]), AddrFrom16(x[20:])
	}
}

// put writes what comes after the MAD header into x, which is all zeros.
func (m *CM) put(x *[cmLen]byte) {
	binary.BigEndian.PutUint32(x[:], m.LocalComm)
	switch m.Attribute {
	case CMREQ:
		m.putREQ(x)
		return
	case CMSIDRREQ:
		binary.BigEndian.PutUint16(x[4:], DefaultPKey)
		binary.BigEndian.PutUint64(x[8:], m.ServiceID)
		m.putPrivate(x[sidrPrivate:])
		return
	case CMSIDRREP:
		put24(x[8:], m.QPN)
		binary.BigEndian.PutUint64(x[12:], m.ServiceID)
		binary.BigEndian.PutUint32(x[20:], m.QKey)
		return
	}
	binary.BigEndian.PutUint32(x[cmRemoteComm:], m.RemoteComm)
	switch m.Attribute {
	case CMREP:
		m.putREP(x)
	case CMDREQ:
		put24(x[8:], m.QPN)
	case CMLAP: // IBTA table 118
		put24(x[12:], m.QPN)
		m.LocalGID.Put16(x[24:])
		m.RemoteGID.Put16(x[40:])
	case CMMRA:
		x[8], x[9] = m.Answers<<messageShift, m.Timeout<<timeoutShift
	case CMREJ:
		x[8] = m.Answers << messageShift
		binary.BigEndian.PutUint16(x[10:], m.Reason)
	}
}

// putREQ writes IBTA table 106.
func (m *CM) putREQ(x *[cmLen]byte) {
	binary.BigEndian.PutUint64(x[8:], m.ServiceID)
	binary.BigEndian.PutUint64(x[16:], m.GUID)
	put24(x[32:], m.QPN)
	x[35], x[39] = m.ResponderResources, m.InitiatorDepth
	x[43] = m.Timeout<<timeoutShift | m.Transport&transportMask<<serviceShift // of the receiver's answers
	put24(x[44:], m.PSN)
	x[47] = m.Timeout<<timeoutShift | retries7 // of the sender's answers
	binary.BigEndian.PutUint16(x[48:], DefaultPKey)
	x[50] = m.MTU<<mtuShift | retries7
	x[51] = m.Retries<<retriesShift | m.Extended&extendedMask
	binary.BigEndian.PutUint16(x[52:], anyLID) // LIDs, which RoCE doesn't have
	binary.BigEndian.PutUint16(x[54:], anyLID)
	m.LocalGID.Put16(x[56:])
	m.RemoteGID.Put16(x[72:])
	binary.BigEndian.PutUint32(x[reqFlowLabel:], m.FlowLabel<<labelShift)
	x[93], x[95] = reqHopLimit, ackTimeout<<timeoutShift
	m.putPrivate(x[reqPrivate:])
}

// putREP writes IBTA table 110.
func (m *CM) putREP(x *[cmLen]byte) {
	put24(x[12:], m.QPN)
	put24(x[20:], m.PSN)
	x[24], x[25] = m.ResponderResources, m.InitiatorDepth
	x[26], x[27] = ackDelay<<timeoutShift, retries7<<rnrShift
	binary.BigEndian.PutUint64(x[28:], m.GUID)
}

// putPrivate writes the header that RDMA-CM puts before its consumer's private data (IBTA Annex A11): IP version, source port, addresses.
func (m *CM) putPrivate(x []byte) {
	if !m.ofRDMACM() {
		return
	}
	binary.BigEndian.PutUint16(x[2:], m.SourcePort)
	if m.LocalGID.Is4() {
		x[1] = 4 << versionShift
		m.LocalGID.put4(x[4+addressMargin:])
		m.RemoteGID.put4(x[20+addressMargin:])
		return
	}
	x[1] = 6 << versionShift
	m.LocalGID.Put16(x[4:])
	m.RemoteGID.Put16(x[20:])
}

func decode24(b []byte) uint32 { return binary.BigEndian.Uint32(b) >> 8 }

func put24(b []byte, v uint32) { b[0], b[1], b[2] = byte(v>>16), byte(v>>8), byte(v) }
