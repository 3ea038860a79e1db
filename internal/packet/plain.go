package packet

import "encoding/binary"

// The plain frames that nearly all traffic is made of, untagged, without IP options, extension headers or DETH, have their
// headers at fixed offsets. parsePlain4 and parsePlain6 read them a word at a time and write p once, which takes about half the
// time of parseAny (BenchmarkParse). They return false, and leave p alone, whenever a frame is anything but plain; for a
// plain one they find what parseAny finds. Where the two differ, parseAny is right and a test fails.

// Where fields are in the first eight octets of a header, taken as one number: the shift that brings a field to the low end.
const (
	ipv4TotalLen   = 32
	ipv4TOS        = 48
	ipv6PayloadLen = 16
	ipv6Next       = 8
	ipv6Class      = 52
	udpDstPort     = 32
	udpLength      = 16

	bthTVerMask = 0xf << 48
)

func parsePlain4(b []byte, frameLen uint32, p *Parsed) bool {
	const (
		l3    = EthernetLen
		l4    = l3 + IPv4Len
		bthAt = l4 + UDPLen
		ext   = bthAt + BTHLen
	)
	if len(b) < ext {
		return false
	}
	ip, udp, bth := binary.BigEndian.Uint64(b[l3:]), binary.BigEndian.Uint64(b[l4:]), binary.BigEndian.Uint64(b[bthAt:])
	if ip>>56 != 0x45 || ip&ipv4MFOffset != 0 || b[l3+9] != ProtoUDP || uint16(udp>>udpDstPort) != RoCEv2Port {
		return false
	}
	end, udpEnd := l3+uint32(uint16(ip>>ipv4TotalLen)), l4+uint32(uint16(udp>>udpLength))
	info := &opcodes[uint8(bth>>56)]
	payload := ext + uint32(info.len)
	if info.flags&opcodePlain == 0 || bth&bthTVerMask != 0 || payload+ICRCLen > udpEnd || udpEnd > end || end > frameLen ||
		int(payload) > len(b) {
		return false
	}
	addrs, tos := binary.BigEndian.Uint64(b[l3+12:]), uint8(ip>>ipv4TOS)
	p.Src, p.Dst = Addr{0, mapped | addrs>>32}, Addr{0, mapped | addrs&0xffffffff}
	p.Kind, p.Family, p.DSCP, p.ECN, p.Proto, p.Tags = RoCEv2, 4, tos>>2, tos&3, ProtoUDP, 0
	p.OuterVID, p.InnerVID, p.EtherType, p.L3 = 0, 0, EtherTypeIPv4, l3
	p.L4, p.DstOpts, p.HopOpts, p.IPEnd = l4, 0, 0, end
	p.SrcPort, p.DstPort, p.BTH, p.Ext = uint16(udp>>48), RoCEv2Port, bthAt, ext
	p.Payload, p.ICRC = uint16(payload), udpEnd-ICRCLen
	p.Opcode, p.BTHFlags, p.DestQP = Opcode(bth>>56), uint8(bth>>24), uint32(bth)&0xffffff
	p.PSN, p.SourceQP = binary.BigEndian.Uint32(b[bthAt+8:])&0xffffff, 0
	return true
}

func parsePlain6(b []byte, frameLen uint32, p *Parsed) bool {
	const (
		l3    = EthernetLen
		l4    = l3 + IPv6Len
		bthAt = l4 + UDPLen
		ext   = bthAt + BTHLen
	)
	if len(b) < ext {
		return false
	}
	ip, udp, bth := binary.BigEndian.Uint64(b[l3:]), binary.BigEndian.Uint64(b[l4:]), binary.BigEndian.Uint64(b[bthAt:])
	if ip>>60 != 6 || uint8(ip>>ipv6Next) != ProtoUDP || uint16(udp>>udpDstPort) != RoCEv2Port {
		return false
	}
	end, udpEnd := l4+uint32(uint16(ip>>ipv6PayloadLen)), l4+uint32(uint16(udp>>udpLength))
	info := &opcodes[uint8(bth>>56)]
	payload := ext + uint32(info.len)
	if info.flags&opcodePlain == 0 || bth&bthTVerMask != 0 || payload+ICRCLen > udpEnd || udpEnd > end || end > frameLen ||
		int(payload) > len(b) {
		return false
	}
	class := uint8(ip >> ipv6Class)
	p.Src, p.Dst = AddrFrom16(b[l3+8:]), AddrFrom16(b[l3+24:])
	p.Kind, p.Family, p.DSCP, p.ECN, p.Proto, p.Tags = RoCEv2, 6, class>>2, class&3, ProtoUDP, 0
	p.OuterVID, p.InnerVID, p.EtherType, p.L3 = 0, 0, EtherTypeIPv6, l3
	p.L4, p.DstOpts, p.HopOpts, p.IPEnd = l4, 0, 0, end
	p.SrcPort, p.DstPort, p.BTH, p.Ext = uint16(udp>>48), RoCEv2Port, bthAt, ext
	p.Payload, p.ICRC = uint16(payload), udpEnd-ICRCLen
	p.Opcode, p.BTHFlags, p.DestQP = Opcode(bth>>56), uint8(bth>>24), uint32(bth)&0xffffff
	p.PSN, p.SourceQP = binary.BigEndian.Uint32(b[bthAt+8:])&0xffffff, 0
	return true
}
