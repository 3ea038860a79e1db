package packet

import "encoding/binary"

const (
	// UDPLen is the length of the UDP header in octets.
	UDPLen = 8
	// RoCEv2Port is the UDP destination port of RoCEv2 (IBTA Annex A17, IANA "roce").
	RoCEv2Port = 4791
)

// UDPHeader is a UDP header (RFC 768):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|          Source Port          |       Destination Port        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|            Length             |           Checksum            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type UDPHeader struct {
	SrcPort, DstPort uint16
	Length           uint16 // octets, header included
	Checksum         uint16 // 0: none, as RoCEv2 has it (IBTA Annex A17; over IPv6 by RFC 6935)
}

// Put writes 8 octets.
func (h *UDPHeader) Put(b []byte) {
	_ = b[UDPLen-1]
	binary.BigEndian.PutUint64(b, uint64(h.SrcPort)<<48|uint64(h.DstPort)<<32|uint64(h.Length)<<16|uint64(h.Checksum))
}

// DecodeUDP reads 8 octets.
func DecodeUDP(b []byte) UDPHeader {
	_ = b[UDPLen-1]
	return UDPHeader{
		SrcPort: binary.BigEndian.Uint16(b), DstPort: binary.BigEndian.Uint16(b[2:]),
		Length: binary.BigEndian.Uint16(b[4:]), Checksum: binary.BigEndian.Uint16(b[6:]),
	}
}

// LowestSourcePort is the lowest UDP source port of RoCEv2 senders.
const LowestSourcePort = 0xc000

// SourcePort is the UDP source port that Linux gives to the packets of a connection without a flow label, in both directions
// (rdma_calc_flow_label in include/rdma/ib_verbs.h). It depends on the product of the two QP numbers.
func SourcePort(a, b uint32) uint16 {
	v := uint64(a) * uint64(b)
	v ^= v >> 20
	v ^= v >> 40
	return LabelPort(uint32(v) & 0xfffff)
}

// SoftRoCEPort is the UDP source port that Soft-RoCE gives to the datagrams of a QP.
func SoftRoCEPort(qp uint32) uint16 { return LowestSourcePort + uint16(qp*0x61c88647>>18) }

// LabelPort is Linux's UDP source port for a flow label of 20 bits (rdma_flow_label_to_udp_sport in include/rdma/ib_verbs.h).
func LabelPort(label uint32) uint16 { return uint16(label&0x3fff^label>>14) | LowestSourcePort }

// UDPChecksum computes the checksum of a UDP datagram, header and data, over its pseudo-header (RFC 768; RFC 8200 8.1), which gives the
// same sum for IPv4 and IPv6 addresses: the additional word of ones of an IPv4-mapped address counts as 0. The datagram's own checksum
// field, octets 6 and 7, counts as zero. The result is never 0, which would mean no checksum. datagram has at least 8 octets.
func UDPChecksum(src, dst Addr, datagram []byte) uint16 {
	sum := addrSum(src) + addrSum(dst) + uint64(len(datagram)) + ProtoUDP
	sum = onesSum(sum, datagram[0:6])
	return notZero(fold(onesSum(sum, datagram[8:])))
}

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
