package cnpgen

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// LongHaulCNP builds a Long-haul CNP in RoCEv2 format (draft-tian 6.2, figure 5) over the flow's IP version and returns the frame's
// length, or 0 when it can't be built: t is not valid, the gateway has no address of that version, x, nil for none, has more objects than fit, or
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
func LongHaulCNP(out []byte, t *Target, g *Gateway, l *LongHaul, x *Extension) int {
	if x == nil && t.Family == 4 {
		return shortLongHaulCNP4(out, t, g, l)
	}
	src := g.source(t.Family)
	c := beginCNP(out, t, g, src, 0, longHaulLen(x), l.SourceQP)
	if c.ip == nil {
		return 0
	}
	putExtended(c.fields(), l, x, g.Code.ExtensionClass)
	return c.seal(t, g, packet.BECN|packet.ExtensionBit, g.DSCP<<2, hopLimit)
}

// shortLongHaulCNP4 is LongHaulCNP over IPv4 without an extension. It has one layout, so the compiler knows all offsets: it takes half as many
// instructions.
func shortLongHaulCNP4(out []byte, t *Target, g *Gateway, l *LongHaul) int {
	const (
		udp    = packet.IPv4Len
		fields = udp + packet.CNPLen
		icrc   = fields + packet.LongHaulLen
		n      = icrc + packet.ICRCLen
	)
	l3 := t.linkLen()
	if t.Tags > packet.MaxTags || !g.HasIPv4 || t.Encapsulated || len(out) < l3+n {
		return 0
	}
	frame := unsafe.Pointer(unsafe.SliceData(out))
	t.putLink(frame, packet.EtherTypeIPv4)
	ip := (*[n]byte)(unsafe.Add(frame, l3))
	packet.MaskIPv4((*[packet.IPv4Len]byte)(ip[:]), n, packet.ProtoUDP, uint32(g.IPv4.Lo), uint32(t.Src.Lo))
	packet.MaskCNP((*[packet.CNPLen]byte)(ip[udp:]), t.SrcPort, n-udp, g.pKey(t), l.SourceQP)
	parameter, sourceQP, metric := l.InRange()
	l.PutWith(ip[fields:icrc], 0, parameter, sourceQP, metric)
	packet.PutMaskedICRC(ip[:])
	packet.UnmaskIPv4((*[packet.IPv4Len]byte)(ip[:]), g.DSCP<<2, hopLimit)
	packet.UnmaskCNP((*[packet.CNPLen]byte)(ip[udp:]), packet.BECN|packet.ExtensionBit)
	return l3 + n
}
