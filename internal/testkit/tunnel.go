package testkit

import (
	"encoding/binary"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Ends of the tunnels that this file makes, and the Ethernet header towards the second one.
var (
	tunnelSrc, tunnelDst = packet.Addr{Lo: 0xffff_c0000211}, packet.Addr{Lo: 0xffff_c0000212} // 192.0.2.17 and 18
	tunnelLink           = []byte{2, 0, 0, 0, 0, 0x1d, 2, 0, 0, 0, 0, 0x15}
)

// VXLAN puts a frame into a VXLAN tunnel over IPv4 (RFC 7348). Both ends are swapped if back is set.
func VXLAN(frame []byte, vni uint32, ecn uint8, back bool) []byte {
	const headers = packet.IPv4Len + packet.UDPLen + 8
	src, dst := tunnelSrc, tunnelDst
	if back {
		src, dst = dst, src
	}
	l3 := packet.EthernetLen
	b := append(binary.BigEndian.AppendUint16(tunnelLink[:len(tunnelLink):len(tunnelLink)], packet.EtherTypeIPv4), make([]byte, headers)...)
	b = append(b, frame...)
	ip := packet.IPv4Header{TotalLen: uint16(len(b) - l3), TTL: 63, Proto: packet.ProtoUDP, Src: src, Dst: dst}
	ip.Put(b[l3:])
	SetECN(b, l3, ecn)
	l4 := l3 + packet.IPv4Len
	udp := packet.UDPHeader{SrcPort: 0xc0de, DstPort: 4789, Length: uint16(len(b) - l4)}
	udp.Put(b[l4:])
	binary.BigEndian.PutUint64(b[l4+packet.UDPLen:], 0x08<<56|uint64(vni)<<8)
	return b
}

// MPLS puts the IP packet of an untagged frame below one label (RFC 3032).
func MPLS(frame []byte, label uint32) []byte {
	b := binary.BigEndian.AppendUint16(tunnelLink[:len(tunnelLink):len(tunnelLink)], packet.EtherTypeMPLS)
	b = binary.BigEndian.AppendUint32(b, label<<12|1<<8|63)
	return append(b, frame[packet.EthernetLen:]...)
}

// Pseudowire puts a frame into an Ethernet pseudowire without control word, below one label (RFC 4448).
func Pseudowire(frame []byte, label uint32) []byte {
	b := MPLS(frame, label)
	const at = packet.EthernetLen + 4
	return append(b[:at:at], frame...)
}
