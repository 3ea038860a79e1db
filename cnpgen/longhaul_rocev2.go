package cnpgen

import "github.com/cnpgate/cnpgate/internal/packet"

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
//	|  Long-haul CNP fields (12), extension structure, ICRC (4)     ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// The ICRC covers neither B nor E. p is what packet.Parse found in frame, the data packet; out must not overlap frame.
//
// Without extension objects it is what a worker builds most often, and takes the straight way.
func LongHaulCNP(out, frame []byte, p *packet.Parsed, g *Gateway, l *LongHaul) int {
	if l.Extension != nil {
		return extendedLongHaulCNP(out, frame, p, g, l)
	}
	if p.Family != 6 {
		d := DraftLongHaulCNP(g, l)
		return d.LongHaulCNP(out, frame, p, l.SourceQP)
	}
	l3 := ethernetLen(p)
	udp := l3 + packet.IPv6Len
	end := udp + longHaulUDPLen
	if !g.HasIPv6 || !answerable(frame, p) || len(out) < end {
		return 0
	}
	packet.ReplyEthernet(out, frame, p)
	packet.PutIPv6(out[l3:], longHaulUDPLen, g.DSCP, packet.ProtoUDP, hopLimit, &g.IPv6, &p.Src)
	cnp := out[udp:end]
	packet.PutCNP(cnp, p.SrcPort, longHaulUDPLen, packet.BECN|packet.ExtensionBit, l.SourceQP)
	flags, parameter, sourceQP, metric := l.ranged()
	packet.PutLongHaul(cnp[packet.UDPLen+packet.BTHLen:], l.Level, flags, parameter, sourceQP, l.MetricType, metric)
	packet.PutICRC(out, l3, udp+packet.UDPLen, end-packet.ICRCLen, g.ICRCExtensionHeaders)
	return end
}

const longHaulUDPLen = packet.UDPLen + packet.BTHLen + packet.LongHaulLen + packet.ICRCLen

func extendedLongHaulCNP(out, frame []byte, p *packet.Parsed, g *Gateway, l *LongHaul) int {
	n := l.len()
	if cnpUDPLen(n) > maxIP(p.Family)-ipLen(p.Family) {
		return 0
	}
	body, end := reply(out, frame, p, g, n, packet.BECN|packet.ExtensionBit, l.SourceQP)
	if end == 0 {
		return 0
	}
	l.put(body, g.Code.ExtensionClass)
	return seal(out, p, g, end)
}

func maxIP(family uint8) int {
	if family == 6 {
		return maxIPv6
	}
	return maxIPv4
}
