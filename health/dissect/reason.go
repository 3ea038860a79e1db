package dissect

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Reason is why a frame isn't examined.
type Reason uint8

// Reasons, those that say the most last.
const (
	None       Reason = iota
	NotRDMA           // another protocol
	Fragment          // of an IP packet
	Tunnel            // an encapsulation that isn't read
	OtherRDMA         // iWARP, Ultra Ethernet
	Vendor            // an opcode of the manufacturer, or a reserved one
	Malformed         // lengths or headers that don't fit
	Merged            // several packets in one
	RoCEv1            // RoCE without UDP
	HeadersCut        // the capture has cut the headers off
	Reasons    = iota
)

const etherTypeRoCEv1 = 0x8915

// maxIPHeader is the end of an IP header in a frame with the most tags, octets: a shorter part of a frame may have lost it.
const maxIPHeader = packet.EthernetLen + packet.MaxTags*packet.VLANTagLen + packet.IPv6Len

var reasons = [Reasons]struct {
	name, advice string
	rdma         bool
}{
	None:       {"examined", "", true},
	NotRDMA:    {"not-rdma", "", false},
	Fragment:   {"ip-fragment", "RoCE must not be fragmented: check the MTU of the path", true},
	Tunnel:     {"encapsulation-not-read", "capture behind the device that takes the encapsulation away", true},
	OtherRDMA:  {"other-rdma", "only RoCEv2 is examined", true},
	Vendor:     {"opcode-not-followed", "opcodes from 0xc0 on are the manufacturer's (IBTA 9.2.1), such as Mellanox's DC; UCX uses RC with UCX_TLS=rc", true},
	Malformed:  {"malformed", "check how the capture was made", true},
	Merged:     {"packets-merged", "the host has merged packets before it captured them: ethtool -K $IF gro off rx-udp-gro-forwarding off, or capture at a mirror port", true},
	RoCEv1:     {"rocev1", "RoCE v1 isn't routed: choose a RoCE v2 GID (NCCL_IB_GID_INDEX, UCX_IB_GID_INDEX, show_gids)", true},
	HeadersCut: {"headers-cut-off", "capture more of each frame (tcpdump -s 192, the mirror's truncation size)", true},
}

func (r Reason) String() string { return reasons[r%Reasons].name }

// Advice is what to do.
func (r Reason) Advice() string { return reasons[r%Reasons].advice }

// RDMA reports whether such frames carry RDMA, or may.
func (r Reason) RDMA() bool { return reasons[r%Reasons].rdma }

// reasonOf says why a frame that was parsed isn't RoCEv2.
func reasonOf(b []byte, length uint32, p *packet.Parsed) Reason {
	cut := uint32(len(b)) < length
	switch {
	case p.EtherType == etherTypeRoCEv1:
		return RoCEv1
	case p.Kind == packet.MACControl:
		return NotRDMA
	case cut && p.Kind == packet.Other && (p.EtherType == packet.EtherTypeIPv4 || p.EtherType == packet.EtherTypeIPv6) && len(b) < maxIPHeader:
		return HeadersCut
	case p.Kind == packet.Other:
		if p.EtherType == packet.EtherTypeMPLS || p.EtherType == packet.EtherTypeMPLSUp || isTag(p.EtherType) || opaque[p.EtherType] != "" {
			return Tunnel
		}
		return NotRDMA
	case p.Proto == packet.ProtoUDP && p.L4 == 0:
		return Fragment
	case cut && p.Proto == packet.ProtoUDP && int(p.L4)+packet.UDPLen > len(b): // to any port
		return HeadersCut
	case p.Proto == packet.ProtoUDP && p.DstPort == packet.RoCEv2Port:
		bth := int(p.L4) + packet.UDPLen
		switch {
		case bth+packet.BTHLen > len(b) && cut:
			return HeadersCut
		case bth < len(b) && !packet.Opcode(b[bth]).Known():
			return Vendor
		}
		return Malformed
	case p.Proto == packet.ProtoUDP && otherRDMA[p.DstPort] != "", ofIWARP(b, p):
		return OtherRDMA
	case packet.InTunnel(b, p) || p.Proto == packet.ProtoUDP && opaqueUDP[p.DstPort] != "" || opaqueIP[p.Proto] != "":
		return Tunnel
	}
	return NotRDMA
}

// ofIWARP reports whether a TCP segment has the request or the reply that begins an iWARP connection, or one FPDU: its length, DDP and RDMAP of version 1 with
// nothing in what is reserved, padding and a CRC (RFC 5044 4.1, 7.1; RFC 5041 4.1; RFC 5040 4.1).
func ofIWARP(b []byte, p *packet.Parsed) bool {
	const offset, key = 12, "MPA ID Re"
	if p.Proto != packet.ProtoTCP || p.L4 == 0 || int(p.L4)+offset >= len(b) {
		return false
	}
	data := int(p.L4) + int(b[p.L4+offset]>>4)*4
	if data+4 > len(b) {
		return false
	}
	const least, fixed, version = 14, 0x3ff0, 0x0140 // octets of an ULPDU; the bits of both control octets that are always the same, and their value
	ulpdu, control := int(binary.BigEndian.Uint16(b[data:])), binary.BigEndian.Uint16(b[data+2:])
	return ulpdu >= least && control&fixed == version && data+(2+ulpdu+3)&^3+4 == int(p.IPEnd) || strings.HasPrefix(string(b[data:min(data+len(key), len(b))]), key)
}

// Detail names what a frame is that wasn't examined.
func Detail(o *Packet) string {
	p, b := o.Parsed, o.Real
	switch o.Reason {
	case Vendor:
		return fmt.Sprintf("opcode %#x", b[int(p.L4)+packet.UDPLen])
	case RoCEv1:
		return "EtherType 0x8915"
	case HeadersCut:
		return fmt.Sprintf("%d of %d bytes are in the capture", len(b), p.Len)
	case Malformed:
		if p.IPv4Mapped() {
			return "IPv4-mapped addresses in IPv6"
		}
	case Merged:
		return "more payload than a packet has"
	case OtherRDMA:
		if p.Proto == packet.ProtoTCP {
			return "iWARP"
		}
		return fmt.Sprintf("%s, UDP to port %d", otherRDMA[p.DstPort], p.DstPort)
	case Tunnel:
		switch {
		case p.Proto == packet.ProtoGRE && int(p.L4)+4 <= len(b):
			return fmt.Sprintf("GRE of type %#04x", binary.BigEndian.Uint16(b[p.L4+2:]))
		case p.Proto == packet.ProtoUDP:
			return strings.TrimPrefix(fmt.Sprintf("%s, UDP to port %d", opaqueUDP[p.DstPort], p.DstPort), ", ")
		case p.Kind == packet.Other && opaque[p.EtherType] != "":
			return fmt.Sprintf("%s (EtherType %#04x)", opaque[p.EtherType], p.EtherType)
		case p.Kind == packet.IP && opaqueIP[p.Proto] != "":
			return opaqueIP[p.Proto]
		}
	}
	switch {
	case p.Kind == packet.MACControl:
		return "pause frames"
	case p.Kind == packet.Other:
		return fmt.Sprintf("EtherType %#04x", p.EtherType)
	case p.Proto == packet.ProtoTCP:
		return "TCP"
	case p.Proto == packet.ProtoICMP, p.Proto == packet.ProtoICMPv6:
		return "ICMP"
	case p.Proto == packet.ProtoUDP:
		return "UDP"
	}
	return fmt.Sprintf("IP protocol %d", p.Proto)
}
