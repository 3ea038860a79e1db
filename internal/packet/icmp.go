package packet

import "encoding/binary"

// ICMPv6Len is the length of the fixed part of an ICMPv6 message in octets (RFC 4443 2.1):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|     Type      |     Code      |          Checksum             |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
const ICMPv6Len = 4

// ICMPv6Checksum computes the checksum of an ICMPv6 message over the pseudo-header and the message (RFC 4443 2.3, RFC 8200 8.1). The
// message's own checksum field, octets 2 and 3, counts as zero, so a received message is right if the field equals the result. msg has at
// least 4 octets.
func ICMPv6Checksum(src, dst Addr, msg []byte) uint16 {
	sum := addrSum(src) + addrSum(dst) + uint64(len(msg)) + ProtoICMPv6
	sum = onesSum(sum, msg[0:2])
	return fold(onesSum(sum, msg[4:]))
}

// ICMPLen is the length of the header of an ICMP or ICMPv6 echo message in octets (RFC 792, RFC 4443 4.1).
const ICMPLen = 8

const (
	icmpEchoReply     = 0
	icmpEcho          = 8
	icmpv6EchoRequest = 128
	icmpv6EchoReply   = 129
)

// EchoRequest returns the message of a parsed packet that is an ICMP Echo or an ICMPv6 Echo Request, from its type on; nil if it is none, is a fragment,
// isn't whole, or its checksum is wrong.
func EchoRequest(b []byte, p *Parsed) []byte {
	at, end := int(p.L4), int(p.IPEnd)
	if at == 0 || end > len(b) || end-at < ICMPLen {
		return nil
	}
	message := b[at:end]
	sum := binary.BigEndian.Uint16(message[2:])
	switch {
	case p.Family == 4 && p.Proto == ProtoICMP && message[0] == icmpEcho && message[1] == 0 && sum == icmpChecksum(message) && IPv4ChecksumOK(b, p):
		return message
	case p.Family == 6 && p.Proto == ProtoICMPv6 && message[0] == icmpv6EchoRequest && message[1] == 0 && sum == ICMPv6Checksum(p.Src, p.Dst, message):
		return message
	}
	return nil
}

// PutEchoReply completes a frame with the reply to an echo request: it writes an IP header without options at l3, and the message, which has the length
// of request. The caller has already written the Ethernet header, which ends at l3. p is the request's packet. The reply has its DSCP, as RFC 1812
// 5.3.3 allows.
func PutEchoReply(frame []byte, l3 int, request []byte, p *Parsed, ttl uint8) {
	l4 := l3 + IPHeaderLen(p.Dst)
	reply := frame[l4 : l4+len(request)]
	copy(reply, request)
	if p.Family == 4 {
		PutIPv4(frame[l3:], uint16(IPv4Len+len(request)), p.DSCP<<2, ttl, ProtoICMP, uint32(p.Dst.Lo), uint32(p.Src.Lo))
		reply[0] = icmpEchoReply
		binary.BigEndian.PutUint16(reply[2:], icmpChecksum(reply))
		return
	}
	PutIPv6(frame[l3:], uint16(len(request)), p.DSCP<<2, ProtoICMPv6, ttl, &p.Dst, &p.Src)
	reply[0] = icmpv6EchoReply
	binary.BigEndian.PutUint16(reply[2:], ICMPv6Checksum(p.Dst, p.Src, reply))
}

// icmpChecksum computes the checksum of an ICMP message (RFC 792). The message's own checksum field, octets 2 and 3, counts as zero.
func icmpChecksum(message []byte) uint16 {
	return fold(onesSum(onesSum(0, message[0:2]), message[4:]))
}
