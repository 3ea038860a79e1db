package cnpgen

import (
	"encoding/binary"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// ProxyNotification builds a notification to the proxy at address to, over that address's IP version (draft-xiao-proxy 4, figure 5), and
// returns the frame's length, or 0 when it can't be built: the gateway has no address of that version, or out is too short. level
// is the Congestion Level, 0 lowest to 7 highest; more counts as 7. Behind the IP header:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	| UDP Source Port = the data's  |  UDP Destination Port = TBD1  |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|           UDP Length          |          UDP Checksum         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  five-tuple and Congestion Level (16 or 40)                   ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  the data packet from its IP header                           ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// The data packet is cut so that the IP packet has at most 576 octets over IPv4 and 1280 over IPv6, or where frame ends. It
// shows the proxy the QP. p is what packet.Parse found in frame, the data packet; out must not overlap frame.
func ProxyNotification(out, frame []byte, p *packet.Parsed, g *Gateway, to packet.Addr, level uint8) int {
	family := uint8(6)
	if to.Is4() {
		family = 4
	}
	if !g.has(family) || !answerable(frame, p) {
		return 0
	}
	l3 := ethernetLen(p)
	udp := l3 + ipLen(family)
	fields := udp + packet.UDPLen
	data := fields + packet.ProxiedLen(p.Family)
	invoking := frame[p.L3:min(int(p.IPEnd), len(frame))]
	end := min(data+len(invoking), l3+maxIP(family))
	if len(out) < end {
		return 0
	}
	out = out[:end]
	src := g.source(family)
	packet.ReplyEthernet(out, frame, p)
	putEtherType(out[l3-2:], family)
	putIP(out[l3:], family, g, src, &to, packet.ProtoUDP, end-udp)
	h := packet.UDPHeader{SrcPort: p.SrcPort, DstPort: g.Code.ProxyPort, Length: uint16(end - udp)}
	h.Put(out[udp:])
	x := packet.Proxied{
		Version: p.Family, Level: min(level, 7), Proto: p.Proto, SrcPort: p.SrcPort, DstPort: p.DstPort, Src: p.Src, Dst: p.Dst,
	}
	x.Put(out[fields:])
	copy(out[data:], invoking)
	binary.BigEndian.PutUint16(out[udp+6:], packet.UDPChecksum(*src, to, out[udp:]))
	return end
}
