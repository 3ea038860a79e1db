package cnpgen

import (
	"encoding/binary"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// codeFlowLevel is the only Code of a Long-haul CNP (draft-tian 10.2).
const codeFlowLevel = 0

// LongHaulCNPICMPv6 builds a Long-haul CNP in ICMPv6 format (draft-tian 6.1, figure 2) and returns the frame's length, or 0 when
// it can't be built: the data packet isn't an IPv6 one, the gateway has no IPv6 address, or out is too short. Behind the IPv6
// header:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|     Type      |   Code = 0    |           Checksum            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Long-haul CNP fields (12), extension structure               ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// p is what packet.Parse found in frame, the data packet; out must not overlap frame.
func LongHaulCNPICMPv6(out, frame []byte, p *packet.Parsed, g *Gateway, l *LongHaul) int {
	if !answerable(frame, p) || p.Family != 6 || !g.HasIPv6 {
		return 0
	}
	l3, size := ethernetLen(p), packet.ICMPv6Len+l.len()
	icmp := l3 + packet.IPv6Len
	end := icmp + size
	if len(out) < end || packet.IPv6Len+size > maxIPv6 {
		return 0
	}
	out = out[:end]
	packet.ReplyEthernet(out, frame, p)
	putIP(out[l3:], 6, g, &g.IPv6, &p.Src, packet.ProtoICMPv6, size)
	m := out[icmp:]
	m[0] = g.Code.LongHaulICMPv6Type
	m[1] = codeFlowLevel
	l.put(m[packet.ICMPv6Len:], g.Code.ExtensionClass)
	binary.BigEndian.PutUint16(m[2:], packet.ICMPv6Checksum(g.IPv6, p.Src, m))
	return end
}
