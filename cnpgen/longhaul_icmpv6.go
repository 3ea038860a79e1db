package cnpgen

import (
	"encoding/binary"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// codeFlowLevel is the only Code of a Long-haul CNP (draft-tian 10.2).
const codeFlowLevel = 0

// LongHaulCNPICMPv6 builds a Long-haul CNP in ICMPv6 format (draft-tian 6.1, figure 2) and returns the frame's length, or 0 when
// it can't be built: t is not valid or not of IPv6, the gateway has no IPv6 address, x, nil for none, has more objects than fit, or out is too
// short. After the IPv6 header:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|     Type      |   Code = 0    |           Checksum            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Long-haul CNP fields (12), extension structure               ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
func LongHaulCNPICMPv6(out []byte, t *Target, g *Gateway, l *LongHaul, x *Extension) int {
	if t.Family != 6 {
		return 0
	}
	frame, at := putOuter(out, t, g, ends{6, g.source(6), &t.Src, packet.ProtoICMPv6}, packet.ICMPv6Len+longHaulLen(x))
	if frame == nil {
		return 0
	}
	m := frame[at:]
	m[0] = g.Code.LongHaulICMPv6Type
	m[1] = codeFlowLevel
	putExtended(m[packet.ICMPv6Len:], l, x, g.Code.ExtensionClass)
	binary.BigEndian.PutUint16(m[2:], packet.ICMPv6Checksum(g.IPv6, t.Src, m))
	return len(frame)
}
