package cnpgen

import "github.com/cnpgate/cnpgate/internal/packet"

// LongHaulCNP builds a Long-haul CNP in RoCEv2 format (draft-tian 6.2, figure 5) over the flow's IP version and returns the frame's
// length, or 0 when it can't be built: t is not valid, the gateway has no address of that version, l has more objects than fit, or
// out is too short. After the IP header:
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
// The ICRC covers neither B nor E.
func LongHaulCNP(out []byte, t *Target, g *Gateway, l *LongHaul) int {
	src := g.source(t.Family)
	c := beginCNP(out, t, g, src, 0, l.len(), l.SourceQP)
	if c.ip == nil {
		return 0
	}
	l.put(c.fields(), g.Code.ExtensionClass)
	return c.seal(t, g, packet.BECN|packet.ExtensionBit)
}
