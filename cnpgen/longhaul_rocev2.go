package cnpgen

import "github.com/cnpgate/cnpgate/internal/packet"

const longHaulUDPLen = packet.UDPLen + packet.BTHLen + longHaulLen + packet.ICRCLen

// LongHaulCNP builds a Long-haul CNP in RoCEv2 format (draft-tian 6.2, figure 5) over the data packet's IP version and returns
// the frame's length, or 0 when it can't be built: the gateway has no address of that version, or out is too short. Behind the
// IP header:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  UDP header (8)                                               ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	| OpCode = 0x81 |0|0| 0 |   0   |     Partition Key = 0xFFFF    |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|0|B|E|    0    |           DestQP = Source QP Number           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|0|      0      |                    PSN = 0                    |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Long-haul CNP fields (12), ICRC (4)                          ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// The ICRC covers neither B nor E. p is what packet.Parse found in frame, the data packet; out must not overlap frame.
func LongHaulCNP(out, frame []byte, p *packet.Parsed, g *Gateway, l *LongHaul) int {
	if !answerable(frame, p) {
		return 0
	}
	l3 := ethernetLen(p)
	udp := l3 + packet.IPv4Len
	has := g.HasIPv4
	if p.Family == 6 {
		udp = l3 + packet.IPv6Len
		has = g.HasIPv6
	}
	end := udp + longHaulUDPLen
	if !has || len(out) < end {
		return 0
	}
	out = out[:end]
	packet.ReplyEthernet(out, frame, p)
	if p.Family == 6 {
		putIPv6(out[l3:], p, g, packet.ProtoUDP, longHaulUDPLen)
	} else {
		putIPv4(out[l3:], p, g, packet.ProtoUDP, longHaulUDPLen)
	}
	putCNP(out[udp:], p, longHaulUDPLen, packet.BECN|packet.ExtensionBit, l.SourceQP)
	bth := udp + packet.UDPLen
	icrc := end - packet.ICRCLen
	l.put(out[bth+packet.BTHLen:])
	packet.PutICRC(out, l3, bth, icrc, g.ICRCExtensionHeaders)
	return end
}
