package decode

import (
	"encoding/binary"
	"fmt"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// ethernet is the Ethernet header with its tags (IEEE 802.1Q). frame has at least 14 octets.
func ethernet(frame []byte, p *packet.Parsed) []Layer {
	l := Layer{Key: "ethernet", Name: "Ethernet"}
	l.as("destination", "destination", mac(frame))
	l.as("source", "source", mac(frame[6:]))
	all := []Layer{l}
	for i := range int(p.Tags) {
		at := packet.EthernetLen - 2 + packet.VLANTagLen*i
		if len(frame) < at+packet.VLANTagLen {
			break
		}
		tci := binary.BigEndian.Uint16(frame[at+2:])
		t := Layer{Key: "vlan", Name: "VLAN", List: true}
		tpid := binary.BigEndian.Uint16(frame[at:])
		t.say("tpid", "TPID", tpid, "0x%04x", tpid)
		t.as("vid", "VLAN ID", tci&0xfff)
		t.say("pcp", "priority", tci>>13, "%d%s", tci>>13, map[uint16]string{1: ", DEI"}[tci>>12&1])
		t.as("dei", "", tci>>12&1 == 1)
		all = append(all, t)
	}
	return all
}

var ecnNames = [4]string{"Not-ECT", "ECT(1)", "ECT(0)", "CE"}

// internet is the IP header.
func internet(frame []byte, p *packet.Parsed) Layer {
	l := Layer{Key: "ip", Name: fmt.Sprintf("IPv%d", p.Family)}
	l.as("version", "", p.Family)
	l.as("source", "source", address(p.Family, p.Src))
	l.as("destination", "destination", address(p.Family, p.Dst))
	l.as("dscp", "DSCP", p.DSCP)
	l.say("ecn", "ECN", p.ECN, "%d, %s", p.ECN, ecnNames[p.ECN&3])
	if p.Family == 4 {
		l.as("ttl", "TTL", frame[p.L3+8])
		l.verdict(binary.BigEndian.Uint16(frame[p.L3+10:]), packet.IPv4ChecksumOK(frame, p))
	} else {
		l.as("hop_limit", "hop limit", frame[p.L3+7])
	}
	return l
}

// verdict adds a checksum.
func (l *Layer) verdict(sum uint16, right bool) {
	l.say("checksum", "checksum", sum, "0x%04x, %s", sum, rightOrWrong(right))
	l.as("checksum_right", "", right)
}

func rightOrWrong(right bool) string {
	if right {
		return "right"
	}
	return "wrong"
}

// udp is the UDP header before a complete datagram.
func udp(src, dst packet.Addr, datagram []byte) Layer {
	h := packet.DecodeUDP(datagram)
	l := Layer{Key: "udp", Name: "UDP"}
	l.as("source_port", "source port", h.SrcPort)
	l.as("destination_port", "destination port", h.DstPort)
	l.say("length", "length", h.Length, "%d octets", h.Length)
	if h.Checksum == 0 {
		l.say("checksum", "checksum", 0, "none")
	} else {
		l.verdict(h.Checksum, h.Checksum == packet.UDPChecksum(src, dst, datagram))
	}
	return l
}

// icmpv6 is the ICMPv6 header before a complete message.
func icmpv6(src, dst packet.Addr, message []byte) Layer {
	l := Layer{Key: "icmpv6", Name: "ICMPv6"}
	l.as("type", "type", message[0])
	l.as("code", "code", message[1])
	sum := binary.BigEndian.Uint16(message[2:])
	l.verdict(sum, sum == packet.ICMPv6Checksum(src, dst, message))
	return l
}

// icrc is the ICRC of a complete RoCEv2 packet. Its coverage matters if there are IPv6 extension headers.
func icrc(frame []byte, p *packet.Parsed, right bool, coverage cnpdec.ICRCCoverage) Layer {
	l3, bth, at := int(p.L3), int(p.BTH), int(p.ICRC)
	l := Layer{Key: "icrc", Name: "ICRC"}
	value := binary.LittleEndian.Uint32(frame[at:])
	expected := packet.ICRC(frame, l3, bth, at, true)
	extended := p.Family == 6 && int(p.L4) > l3+packet.IPv6Len
	switch {
	case !right:
		l.say("value", "value", value, "0x%08x, wrong: expected 0x%08x", value, expected)
		l.as("expected", "", expected)
		if extended {
			without := packet.ICRC(frame, l3, bth, at, false)
			l.say("expected_without_extension_headers", "or", without, "0x%08x without the IPv6 extension headers", without)
		}
	case extended && coverage == cnpdec.ICRCWithoutExtensionHeaders:
		l.say("value", "value", value, "0x%08x, right without the IPv6 extension headers", value)
		l.as("extension_headers", "", false)
	case extended:
		l.say("value", "value", value, "0x%08x, right with the IPv6 extension headers", value)
		l.as("extension_headers", "", true)
	default:
		l.say("value", "value", value, "0x%08x, right", value)
	}
	l.as("right", "", right)
	return l
}

// refused has what is certain about a refused packet: its outer headers, and which checksum is wrong.
func refused(frame []byte, p *packet.Parsed) []Layer {
	all := ethernet(frame, p)
	if p.Family == 0 {
		return all
	}
	all = append(all, internet(frame, p))
	if len(frame) < int(p.IPEnd) || p.L4 == 0 || p.L4 > uint16(min(p.IPEnd, 0xffff)) {
		return all
	}
	upper := frame[p.L4:p.IPEnd]
	switch {
	case p.Proto == packet.ProtoUDP && len(upper) >= packet.UDPLen:
		all = append(all, udp(p.Src, p.Dst, upper))
	case p.Proto == packet.ProtoICMPv6 && len(upper) >= packet.ICMPv6Len:
		all = append(all, icmpv6(p.Src, p.Dst, upper))
	}
	if p.Kind != packet.RoCEv2 {
		return all
	}
	got, at := binary.LittleEndian.Uint32(frame[p.ICRC:]), int(p.ICRC)
	coverage := cnpdec.ICRCAsSent
	right := got == packet.ICRC(frame, int(p.L3), int(p.BTH), at, true)
	if !right && got == packet.ICRC(frame, int(p.L3), int(p.BTH), at, false) {
		right, coverage = true, cnpdec.ICRCWithoutExtensionHeaders
	}
	return append(all, icrc(frame, p, right, coverage))
}
