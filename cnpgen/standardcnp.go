package cnpgen

import (
	"encoding/binary"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// StandardCNP builds a CNP as the data packet's receiver would send it (IBTA Annex A17, draft-xiao-fast-cnp figure 2), for a sender
// that knows nothing else, and returns the frame's length, or 0 when it can't be built. Its source is the receiver's address, as
// RNICs take a CNP only from their QP's peer; DestQP is the sender's own QP, sourceQP. Behind the IP header:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  UDP header (8)                                               ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	| OpCode = 0x81 |0|0| 0 |   0   |     Partition Key = 0xFFFF    |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|0|B|     0     |                DestQP = sourceQP              |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|0|      0      |                    PSN = 0                    |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Reserved (16), ICRC (4)                                      ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// p is what packet.Parse found in frame, the data packet; out must not overlap frame.
func StandardCNP(out, frame []byte, p *packet.Parsed, g *Gateway, sourceQP uint32) int {
	if !answerable(frame, p) || len(out) < ethernetLen(p) {
		return 0
	}
	l3 := ethernetLen(p)
	n := putStandardCNP(out[l3:], p.Family, g, &p.Dst, &p.Src, p.SrcPort, sourceQP)
	if n == 0 {
		return 0
	}
	packet.ReplyEthernet(out, frame, p)
	return sealStandardCNP(out, l3, n, p.Family)
}

// Flow is what a standard CNP has to know of the data it is about, where there is no frame of the data at hand.
type Flow struct {
	Family   uint8       // 4 or 6
	Src, Dst packet.Addr // of the data: sender and receiver
	SrcPort  uint16      // UDP source port of the data
	SourceQP uint32      // the sender's QP, 24 bits
}

// StandardCNPAbout is StandardCNP for a flow. link are the MAC addresses and VLAN tags that the frame starts with, 12, 16 or 20
// octets; the EtherType is the builder's.
func StandardCNPAbout(out, link []byte, g *Gateway, f *Flow) int {
	const etherType = 2
	l3 := len(link) + etherType
	if f.Family != 4 && f.Family != 6 || l3 < packet.EthernetLen || len(out) < l3 {
		return 0
	}
	n := putStandardCNP(out[l3:], f.Family, g, &f.Dst, &f.Src, f.SrcPort, f.SourceQP)
	if n == 0 {
		return 0
	}
	putEtherType(out[copy(out, link):], f.Family)
	return sealStandardCNP(out, l3, n, f.Family)
}

// putStandardCNP writes the IP packet but its ICRC and returns its length, or 0 where b has no room for it.
func putStandardCNP(b []byte, family uint8, g *Gateway, src, dst *packet.Addr, srcPort uint16, destQP uint32) int {
	udp, size := ipLen(family), cnpUDPLen(packet.CNPReservedLen)
	if len(b) < udp+size {
		return 0
	}
	putIP(b, family, g, src, dst, packet.ProtoUDP, size)
	packet.PutCNP(b[udp:], srcPort, size, packet.BECN, destQP)
	clear(b[udp+packet.UDPLen+packet.BTHLen : udp+size-packet.ICRCLen])
	return udp + size
}

func sealStandardCNP(out []byte, l3, n int, family uint8) int {
	end := l3 + n
	packet.PutICRC(out[:end], l3, l3+ipLen(family)+packet.UDPLen, end-packet.ICRCLen, true)
	return end
}

func putEtherType(b []byte, family uint8) {
	etherType := uint16(packet.EtherTypeIPv4)
	if family == 6 {
		etherType = packet.EtherTypeIPv6
	}
	binary.BigEndian.PutUint16(b, etherType)
}
