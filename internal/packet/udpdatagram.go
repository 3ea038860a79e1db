package packet

import "encoding/binary"

// PutUDPDatagram completes a frame with a UDP datagram: it writes the EtherType before l3, and from l3 on an IP header without options and
// the UDP header with its checksum. The caller has already written the Ethernet header, which ends at l3, and the payload, which is the
// rest of frame after the UDP header (see IPHeaderLen). Both addresses must have the same family.
func PutUDPDatagram(frame []byte, l3 int, src, dst Addr, dscp, ttl uint8, srcPort, dstPort uint16) {
	l4 := l3 + IPHeaderLen(src)
	datagram := frame[l4:]
	if src.Is4() {
		binary.BigEndian.PutUint16(frame[l3-2:], EtherTypeIPv4)
		PutIPv4(frame[l3:], uint16(len(frame)-l3), dscp<<2, ttl, ProtoUDP, uint32(src.Lo), uint32(dst.Lo))
	} else {
		binary.BigEndian.PutUint16(frame[l3-2:], EtherTypeIPv6)
		PutIPv6(frame[l3:], uint16(len(datagram)), dscp<<2, ProtoUDP, ttl, &src, &dst)
	}
	h := UDPHeader{SrcPort: srcPort, DstPort: dstPort, Length: uint16(len(datagram))}
	h.Put(datagram)
	binary.BigEndian.PutUint16(datagram[6:], UDPChecksum(src, dst, datagram))
}

// IPHeaderLen is the length in octets of an IP header without options for an address.
func IPHeaderLen(a Addr) int {
	if a.Is4() {
		return IPv4Len
	}
	return IPv6Len
}
