package cnpgen

import (
	"encoding/binary"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// ProxyNotification builds a notification to the proxy at address to, over that address's IP version (draft-xiao-proxy 4, figure 5), and
// returns the frame's length, or 0 when it can't be built: t is not valid, the gateway has no address of that version, frame ends before
// its IP header, or out is too short. level is the Congestion Level, 0 lowest to 7 highest; larger values count as 7. The frame has t's
// Ethernet header. After the IP header:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	| UDP Source Port = the flow's  |  UDP Destination Port = TBD1  |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|           UDP Length          |          UDP Checksum         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  five-tuple and Congestion Level (16 or 40)                   ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  the data packet from its IP header                           ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// The data packet is truncated so that the IP packet has at most 576 octets over IPv4 and 1280 over IPv6, or at the end of frame. The proxy
// finds the QP in it. p is the result of packet.Parse for frame, the data packet of t; out must not overlap frame. Of a data packet in a
// tunnel, the five-tuple and the packet are those inside (draft-xiao-proxy 4: "below" the VPN encapsulation).
func ProxyNotification(out []byte, t *Target, g *Gateway, frame []byte, p *packet.Parsed, to packet.Addr, level uint8) int {
	if len(frame) < int(p.L3) {
		return 0
	}
	family := uint8(6)
	if to.Is4() {
		family = 4
	}
	invoking := frame[p.L3:min(int(p.IPEnd), len(frame))]
	fields := packet.ProxiedLen(t.Family)
	n := min(packet.UDPLen+fields+len(invoking), maxIP(family)-ipLen(family))
	src := g.source(family)
	whole, udp := putOuter(out, t, g, ends{family, src, &to, packet.ProtoUDP}, n)
	if whole == nil {
		return 0
	}
	datagram := whole[udp:]
	h := packet.UDPHeader{SrcPort: t.SrcPort, DstPort: g.Code.ProxyPort, Length: uint16(n)}
	h.Put(datagram)
	x := packet.Proxied{
		Version: t.Family, Level: min(level, 7), Proto: packet.ProtoUDP, Src: t.Src, Dst: t.Dst,
		SrcPort: t.SrcPort, DstPort: packet.RoCEv2Port,
	}
	x.Put(datagram[packet.UDPLen:])
	copy(datagram[packet.UDPLen+fields:], invoking)
	binary.BigEndian.PutUint16(datagram[6:], packet.UDPChecksum(*src, to, datagram))
	return len(whole)
}
