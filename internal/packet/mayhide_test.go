package packet

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// linkFrame is a frame of an EtherType.
func linkFrame(etherType uint16, body string) []byte {
	return append(be.AppendUint16([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2}, etherType), body...)
}

func mayHideFrame(frame []byte) (hides bool, note Notification) {
	var p Parsed
	Parse(frame, uint32(len(frame)), &p)
	return MayHide(frame, &p, &DefaultCodePoints), Classify(frame, &p, &DefaultCodePoints)
}

func built(s stack) []byte {
	frame, _ := s.build()
	return frame
}

// packetOf is a stack's IP packet, without the link layer.
func packetOf(s stack) []byte {
	frame, p := s.build()
	return frame[p.L3:p.IPEnd]
}

// What tunnels carry in these tests: a notification to a proxy and ordinary UDP of each version, and a piece of UDP.
var (
	proxied4 = packetOf(stack{family: 4, dstPort: 1022})
	proxied6 = packetOf(stack{family: 6, dstPort: 1022})
	dns4     = packetOf(stack{family: 4, dstPort: 53})
	dns6     = packetOf(stack{family: 6, dstPort: 53})
	piece4   = packetOf(stack{family: 4, frag: 1, dstPort: 53})
)

func fragment6(next uint8, offset uint16) stack {
	body := be.AppendUint16([]byte{0, 0}, 7)
	return stack{family: 6, proto: next, body: make([]byte, 16), ext: []extHeader{{44, append(be.AppendUint16(nil, offset<<3|1), body...)}}}
}

func overUDP(port uint16, header string, inner []byte) []byte {
	udp := be.AppendUint16(be.AppendUint16(nil, 0xc000), port)
	return built(stack{family: 4, proto: 17, body: slices.Concat(udp, []byte("\x00\x00\x00\x00"+header), inner)})
}

func vxlan(inner []byte) []byte { return vxlanWith("\x08\x00\x00\x00", inner) }

// vxlanWith is VXLAN with the given first word of its header.
func vxlanWith(flags string, inner []byte) []byte {
	return overUDP(4789, flags+"\x00\x00\x05\x00", inner)
}

// TestMayHide: the frames that nothing rules a notification out of, and the ordinary ones next to them.
func TestMayHide(t *testing.T) {
	ipv4, ipv6 := "\x08\x00"+string(proxied4), "\x86\xdd"+string(proxied6)
	over := func(family, proto uint8, body string) []byte {
		return built(stack{family: family, proto: proto, body: []byte(body)})
	}
	changed := func(s stack, at int, octets string) []byte { f := built(s); copy(f[at:], octets); return f }
	udp := func(s stack) stack { s.family, s.opcode = 4, CNP; return s }
	for _, c := range []struct {
		name  string
		frame []byte
		want  bool
	}{
		{"RoCEv2 data", built(stack{family: 4, opcode: RCWriteMiddle}), false},
		{"RoCEv2 data behind options", built(stack{family: 6, opcode: RCWriteMiddle, ext: []extHeader{{60, []byte("\x9e\x05\x00\x00\x00\x00")}}}), false},
		{"CNP", built(stack{family: 4, opcode: CNP, payload: 16}), false},
		{"CNP behind options", built(stack{family: 6, opcode: CNP, payload: 16, ext: []extHeader{{60, []byte("\x1e\x04\x00\x00\x00\x00")}}}), false},
		{"CNP behind broken options", built(stack{family: 6, opcode: CNP, payload: 16, ext: []extHeader{{60, []byte("\x1e\x05\x00\x00\x00\x00")}}}), true},
		{"UDP longer than its packet, CNP", built(udp(stack{udpLonger: 1})), true},
		{"UDP longer than its packet, data", built(stack{family: 4, opcode: RCWriteMiddle, udpLonger: 1}), false},
		{"another BTH version, CNP", built(udp(stack{tver: 1})), true},
		{"no BTH", over(4, 17, "\xc0\x00\x12\xb7\x00\x08\x00\x00"), true},
		{"UDP header cut", over(4, 17, "\xc0\x00\x00\x35\x00\x08\x00"), true},
		{"UDP header only", over(4, 17, "\xc0\x00\x00\x35\x00\x08\x00\x00"), false},
		{"DNS over IPv6", built(stack{family: 6, dstPort: 53}), false},
		{"TCP", over(4, 6, "\x00"), false},
		{"ICMPv6 echo", over(6, 58, "\x80"), false},
		{"ICMPv6 without a type", built(stack{family: 6, proto: 58, ext: []extHeader{{60, make([]byte, 6)}}}), true},
		{"protocol 58 over IPv4", over(4, 58, ""), false},

		{"more tags than are looked behind", built(stack{family: 4, dstPort: 53, tags: []tag{{0x8100, 1}, {0x8100, 1}, {0x8100, 1}}}), true},
		{"tag cut", linkFrame(0x8100, "\x00"), true},
		{"ARP", linkFrame(0x0806, "\x00\x01\x08\x00\x06\x04\x00\x01\x02\x00\x00\x00\x00\x01\x0a\x00\x00\x01"), false},
		{"LLDP", linkFrame(0x88cc, "\x02\x07\x04\x02\x00\x00\x00\x00\x01"), false},
		{"unknown TPID, IPv4", linkFrame(0x1234, "\x00\x05"+ipv4), true},
		{"unknown TPID, IPv6", linkFrame(0x1234, "\x00\x05"+ipv6), true},
		{"four unknown TPIDs", linkFrame(0x1234, "\x00\x05\x12\x34\x00\x05\x12\x34\x00\x05\x12\x34\x00\x05"+ipv4), true},
		{"five unknown TPIDs", linkFrame(0x1234, "\x00\x05\x12\x34\x00\x05\x12\x34\x00\x05\x12\x34\x00\x05\x12\x34\x00\x05"+ipv4), true},
		{"unknown tag of six octets", linkFrame(0x1234, "\x00\x00\x00\x01"+ipv4), true},
		{"unknown TPID, MPLS", linkFrame(0x1234, "\x00\x05\x88\x47\x00\x01\x01\x40"), true},
		{"unknown TPID, PPPoE", linkFrame(0x1234, "\x00\x05\x88\x64\x11\x00\x00\x01\x00\x00\x00\x21"), true},
		{"unknown TPID, MACsec", linkFrame(0x1234, "\x00\x05\x88\xe5\x2c\x00\x00\x00\x00\x01"), true},
		{"unknown TPID, R-TAG", linkFrame(0x1234, "\x00\x05\xf1\xc1\x00\x00\x00\x01"), true},
		{"two unknown TPIDs, MPLS", linkFrame(0x1234, "\x00\x05\x43\x21\x00\x05\x88\x47\x00\x01\x01\x40"), true},
		{"two tags, unknown TPID, MPLS", linkFrame(0x8100, "\x00\x05\x88\xa8\x00\x05\x12\x34\x00\x05\x88\x47\x00\x01\x01\x40"), true},
		{"two tags, unknown TPID, ARP", linkFrame(0x8100, "\x00\x05\x88\xa8\x00\x05\x12\x34\x00\x05\x08\x06\x00\x01\x08\x00\x06\x04"), false},
		{"unknown TPID, SNAP", linkFrame(0x1234, "\x00\x05\x00\x64\xaa\xaa\x03\x00\x00\x00"+ipv4), true},
		{"unknown TPID, spanning tree", linkFrame(0x1234, "\x00\x05\x00\x26\x42\x42\x03\x00\x00\x02\x02\x3c"), false},
		{"unknown EtherType, MPLS where no tag's type is", linkFrame(0x1234, "\x00\x05\x12\x34\x88\x47\x01\x01\x40\x01"), false},
		{"unknown EtherType, zeros", linkFrame(0x1234, string(make([]byte, 100))), false},
		{"ARP of a MAC address like an IPv4 header", linkFrame(0x0806, "\x00\x01\x08\x00\x06\x04\x00\x01\x08\x00\x45\x00\x00\x01\x0a\x00\x00\x01"), false},
		{"unknown TPID, IPv4 with ten words of options", linkFrame(0x1234, "\x00\x05\x08\x00\x4f"), true},
		{"unknown TPID, ARP", linkFrame(0x1234, "\x00\x05\x08\x06\x00\x01\x08\x00\x06\x04"), false},
		{"unknown EtherType, 0x0800 and no IPv4 header", linkFrame(0x1234, "\x00\x05\x08\x00\x44\x00"), false},
		{"unknown EtherType, 0x86dd and no IPv6 header", linkFrame(0x1234, "\x00\x05\x86\xdd\x50\x00"), false},
		{"short", linkFrame(0x1234, "\x00\x05\x08\x00"), false},
		{"shorter than a header", make([]byte, 13), false},
		{"MAC control", linkFrame(0x8808, "\x00\x01"), false},

		{"spanning tree", linkFrame(38, "\x42\x42\x03\x00\x00\x02\x02\x3c"), false},
		{"IS-IS", linkFrame(100, "\xfe\xfe\x03\x83\x1b\x01\x00\x0f\x01"), false},
		{"CDP", linkFrame(100, "\xaa\xaa\x03\x00\x00\x0c\x20\x00\x02\xb4"), false},
		{"SNAP, OUI 0, AppleTalk", linkFrame(100, "\xaa\xaa\x03\x00\x00\x00\x80\x9b\x00\x00"), false},
		{"SNAP, IPv6", linkFrame(100, "\xaa\xaa\x03\x00\x00\x00"+ipv6), true},
		{"SNAP of a bridge tunnel, IPv4", linkFrame(100, "\xaa\xaa\x03\x00\x00\xf8"+ipv4), true},
		{"jumbo SNAP, a length, SNAP", linkFrame(0x8870, "\xaa\xaa\x03\x00\x00\x00\x00\x64\xaa\xab\x03\x00\x80\xc2\x00\x07"+ipv4), true},
		{"SNAP, unknown TPID", linkFrame(100, "\xaa\xaa\x03\x00\x00\x00\x12\x34\x00\x05"+ipv4), true},
		{"SNAP with the poll bit", linkFrame(100, "\xaa\xaa\x13\x00\x00\x00"+ipv4), true},
		{"SNAP to the group", linkFrame(100, "\xab\xaa\x03\x00\x00\x00"+ipv4), true},
		{"SNAP as a response", linkFrame(100, "\xaa\xab\x03\x00\x00\x00"+ipv4), true},
		{"SNAP from another address", linkFrame(100, "\xaa\x42\x03\x00\x00\x00"+ipv4), true},
		{"SNAP in a numbered frame", linkFrame(100, "\xaa\xaa\x00\x00\x00\x00\x00"+ipv4), true},
		{"SNAP with one octet of control as if in a numbered frame", linkFrame(100, "\xaa\xaa\x00\x00\x00\x00"+ipv4), true},
		{"SNAP, bridged Ethernet", linkFrame(100, "\xaa\xaa\x03\x00\x80\xc2\x00\x07"+string(dns4)), true},
		{"SNAP, bridged Ethernet with FCS", linkFrame(100, "\xaa\xaa\x03\x00\x80\xc2\x00\x01"+string(dns4)), true},
		{"SNAP, bridged spanning tree", linkFrame(100, "\xaa\xaa\x03\x00\x80\xc2\x00\x0e\x00\x00"), false},
		{"SNAP, MPLS", linkFrame(100, "\xaa\xaa\x03\x00\x00\x00\x88\x47\x00\x01\x01\x40"), true},
		{"SNAP, ARP", linkFrame(100, "\xaa\xaa\x03\x00\x00\x00\x08\x06\x00\x01\x08\x00"), false},
		{"SNAP in SNAP in SNAP", linkFrame(100, strings.Repeat("\xaa\xaa\x03\x00\x00\x00\x12\x34\x00\x05\x00\x40", 3)), false},
		{"SNAP four times", linkFrame(100, strings.Repeat("\xaa\xaa\x03\x00\x00\x00\x12\x34\x00\x05\x00\x40", 4)), true},
		{"SNAP cut", linkFrame(7, "\xaa\xaa\x03\x00\x00\x00\x08"), false},
		{"OSI, IPv4", linkFrame(100, "\xfe\xfe\x03\xcc"+string(proxied4)), true},
		{"OSI, IPv6", linkFrame(100, "\xfe\xfe\x03\x8e"+string(proxied6)), true},
		{"OSI in a numbered frame, SNAP", linkFrame(100, "\xfe\xfe\x00\x00\x80\x00\x00\x00"+ipv4), true},
		{"OUI Extended EtherType, IPv4", linkFrame(0x88b7, "\x00\x00\x00"+ipv4), true},
		{"OUI Extended EtherType of another", linkFrame(0x88b7, "\x00\x1b\x19\x00\x01\x00\x00"), false},
		{"Inter-Switch Link", append([]byte("\x01\x00\x0c\x00\x00\x00\x02\x00\x00\x00\x00\x02\x00\x64\xaa\xaa\x03\x02\x00\x00"), make([]byte, 40)...), true},
		{"CDP to Cisco's address", append([]byte("\x01\x00\x0c\xcc\xcc\xcc\x02\x00\x00\x00\x00\x02\x00\x64\xaa\xaa\x03\x00\x00\x0c\x20\x00"), make([]byte, 40)...), false},
		{"LLC of IP as a response", linkFrame(100, "\x42\x07\x13\x45\x00\x00\x14\x00"), true},
		{"LLC of IP", linkFrame(100, "\x06\x06\x03\x45\x00\x00\x14\x00"), true},
		{"short LLC", linkFrame(3, "\x06\x06\x03"), false},

		{"version 6 in an IPv4 frame", changed(stack{family: 4, dstPort: 53}, 14, "\x65"), true},
		{"IPv4 longer than the frame", changed(stack{family: 4, dstPort: 53}, 16, "\xff\xff"), true},
		{"jumbogram", changed(stack{family: 6, dstPort: 53}, 18, "\x00\x00"), true},

		{"first fragment of UDP", built(stack{family: 4, frag: 0x2000, dstPort: 53}), true},
		{"later fragment of UDP", built(stack{family: 4, frag: 1, dstPort: 53}), true},
		{"fragment of TCP", built(stack{family: 4, frag: 0x2000, proto: 6, body: make([]byte, 8)}), false},
		{"fragment of ICMP", built(stack{family: 4, frag: 1, proto: 1, body: make([]byte, 8)}), false},
		{"fragment of protocol 58 over IPv4", built(stack{family: 4, frag: 1, proto: 58, body: make([]byte, 8)}), false},
		{"fragment of protocol 60 over IPv4", built(stack{family: 4, frag: 1, proto: 60, body: make([]byte, 8)}), false},
		{"first fragment of UDP over IPv6", built(fragment6(17, 0)), true},
		{"later fragment of ICMPv6", built(fragment6(58, 2)), true},
		{"fragment of TCP over IPv6", built(fragment6(6, 2)), false},
		{"fragment of SCTP over IPv6", built(fragment6(132, 0)), false},
		{"fragment that goes on with options", built(fragment6(60, 0)), true},
		{"fragment that goes on with a Hop-by-Hop header", built(fragment6(0, 0)), true},
		{"fragment of ESP", built(fragment6(50, 2)), true},
		{"fragment of GRE", built(stack{family: 4, frag: 1, proto: 47, body: make([]byte, 8)}), true},
		{"fragment of IPv4 in IP", built(stack{family: 4, frag: 1, proto: 4, body: make([]byte, 8)}), true},
		{"fragment of IPv6 in IP", built(stack{family: 4, frag: 1, proto: 41, body: make([]byte, 8)}), true},
		{"fragment of Mobility", built(fragment6(135, 1)), true},
		{"fragment of HIP", built(fragment6(139, 1)), true},
		{"fragment of Shim6", built(fragment6(140, 1)), true},

		{"Mobility, nothing behind", over(6, 135, "\x3b\x00"), false},
		{"Mobility, UDP behind", over(6, 135, "\x11\x00"), true},
		{"HIP, nothing behind", over(6, 139, "\x3b\x04"), false},
		{"HIP, UDP behind", over(6, 139, "\x11\x04"), true},
		{"Shim6, UDP behind", over(6, 140, "\x11\x00"), true},
		{"Shim6 cut", over(6, 140, ""), true},
		{"OSPF", over(4, 89, "\x02\x01"), false},
		{"no next header", over(6, 59, "\x00"), false},
		{"nothing behind the IPv6 header", over(6, 59, ""), true},

		{"IPv4 in IP", over(4, 4, string(dns4)), false},
		{"IPv6 in IPv4", over(4, 41, string(dns6)), false},
		{"IPv4 in IPv6", over(6, 4, string(dns4)), false},
		{"IPv4 in IP, notification", over(4, 4, string(proxied4)), true},
		{"IPv6 in IPv4, notification", over(4, 41, string(proxied6)), true},
		{"IPv4 in IP, piece", over(4, 4, string(piece4)), true},
		{"IPv4 in IP, empty", over(4, 4, ""), true},
		{"IPv4 in IP, header cut", over(4, 4, string(dns4[:19])), true},
		{"standard CNP in IP", over(4, 4, string(packetOf(stack{family: 4, opcode: CNP, payload: 16}))), false},
		{"GRE", over(4, 47, "\x00\x00\x08\x00"+string(dns4)), false},
		{"GRE with checksum, key, number", over(4, 47, "\xb0\x00\x08\x00"+string(make([]byte, 12))+string(dns4)), false},
		{"GRE with key, notification", over(4, 47, "\x20\x00\x86\xdd\x00\x00\x00\x01"+string(proxied6)), true},
		{"GRE with key, cut", over(4, 47, "\x20\x00\x86\xdd\x00\x00\x00"), true},
		{"GRE cut", over(4, 47, "\x00\x00\x08"), true},
		{"GRE with routing", over(4, 47, "\x40\x00\x08\x00"+string(dns4)), true},
		{"GRE of version 1", over(4, 47, "\x00\x01\x08\x00"+string(dns4)), true},
		{"GRE of another EtherType", over(4, 47, "\x00\x00\x88\x47"+string(dns4)), true},
		{"GRE of Ethernet", over(6, 47, "\x00\x00\x65\x58"+string(built(stack{family: 4, dstPort: 53}))), false},
		{"GRE of Ethernet, notification", over(6, 47, "\x00\x00\x65\x58"+string(built(stack{family: 6, dstPort: 1022}))), true},
		{"VXLAN", vxlan(built(stack{family: 6, dstPort: 53})), false},
		{"VXLAN, ARP", vxlan(linkFrame(0x0806, "\x00\x01\x08\x00\x06\x04\x00\x01")), false},
		{"VXLAN, notification", vxlan(built(stack{family: 6, dstPort: 1022})), true},
		{"VXLAN, three tags", vxlan(built(stack{family: 4, dstPort: 53, tags: []tag{{0x8100, 1}, {0x8100, 1}, {0x8100, 1}}})), true},
		{"VXLAN cut", over(4, 17, "\xc0\x00\x12\xb5\x00\x0f\x00\x00\x08\x00\x00\x00\x00\x00\x05"), true},
		{"VXLAN in VXLAN", vxlan(vxlan(built(stack{family: 4, dstPort: 53}))), true},
		{"VXLAN of a group", vxlanWith("\x88\x08\x12\x34", built(stack{family: 6, dstPort: 53})), false},
		{"VXLAN-GPE on VXLAN's port, IPv4", vxlanWith("\x0c\x00\x00\x01", proxied4), true},
		{"VXLAN-GPE on VXLAN's port without a VNI", vxlanWith("\x04\x00\x00\x01", dns4), true},
		{"VXLAN-GPE on VXLAN's port, Ethernet", vxlanWith("\x0c\x00\x00\x03", built(stack{family: 6, dstPort: 53})), false},
		{"VXLAN-GPE on VXLAN's port, Ethernet, notification", vxlanWith("\x0c\x00\x00\x03", built(stack{family: 6, dstPort: 1022})), true},
		{"VXLAN-GPE on VXLAN's port, MPLS", vxlanWith("\x0c\x00\x00\x07", dns4), true},
		{"VXLAN, reserved bits", vxlanWith("\x08\x00\x00\x02", built(stack{family: 6, dstPort: 53})), true},
		{"VXLAN on its old port", overUDP(8472, "\x08\x00\x00\x00\x00\x00\x05\x00", built(stack{family: 6, dstPort: 53})), false},
		{"VXLAN on its old port, notification", overUDP(8472, "\x08\x00\x00\x00\x00\x00\x05\x00", built(stack{family: 6, dstPort: 1022})), true},
		{"VXLAN-GPE", overUDP(4790, "\x0c\x00\x00\x01\x00\x00\x05\x00", dns4), false},
		{"VXLAN-GPE, notification", overUDP(4790, "\x0c\x00\x00\x02\x00\x00\x05\x00", proxied6), true},
		{"VXLAN-GPE of Ethernet, notification", overUDP(4790, "\x0c\x00\x00\x03\x00\x00\x05\x00", built(stack{family: 6, dstPort: 1022})), true},
		{"VXLAN-GPE without a next protocol, notification", overUDP(4790, "\x08\x00\x00\x00\x00\x00\x05\x00", built(stack{family: 6, dstPort: 1022})), true},
		{"VXLAN-GPE of NSH", overUDP(4790, "\x0c\x00\x00\x04\x00\x00\x05\x00", dns4), true},
		{"VXLAN-GPE of another version", overUDP(4790, "\x1c\x00\x00\x01\x00\x00\x05\x00", dns4), true},
		{"Geneve of Ethernet", overUDP(6081, "\x00\x00\x65\x58\x00\x00\x05\x00", built(stack{family: 6, dstPort: 53})), false},
		{"Geneve of Ethernet with options, notification", overUDP(6081, "\x01\x40\x65\x58\x00\x00\x05\x00\x01\x02\x03\x00", built(stack{family: 4, dstPort: 1022})), true},
		{"Geneve of IPv4, notification", overUDP(6081, "\x00\x00\x08\x00\x00\x00\x05\x00", proxied4), true},
		{"Geneve of MPLS", overUDP(6081, "\x00\x00\x88\x47\x00\x00\x05\x00", dns4), true},
		{"Geneve of another version", overUDP(6081, "\x40\x00\x08\x00\x00\x00\x05\x00", proxied4), false},
		{"GTP-U", overUDP(2152, "\x30\xff\x00\x2c\x00\x00\x00\x01", dns4), false},
		{"GTP-U, notification", overUDP(2152, "\x30\xff\x00\x2c\x00\x00\x00\x01", proxied4), true},
		{"GTP-U with a number, notification", overUDP(2152, "\x32\xff\x00\x30\x00\x00\x00\x01\x00\x01\x00\x00", proxied6), true},
		{"GTP-U with a number", overUDP(2152, "\x32\xff\x00\x30\x00\x00\x00\x01\x00\x01\x00\x00", dns6), false},
		{"GTP-U with an extension header", overUDP(2152, "\x34\xff\x00\x30\x00\x00\x00\x01\x00\x00\x00\x85", dns4), true},
		{"GTP-U echo request", overUDP(2152, "\x32\x01\x00\x04\x00\x00\x00\x00\x00\x01\x00\x00", nil), false},
		{"MPLS in UDP", overUDP(6635, "\x00\x01\x01\x40", dns4), true},
		{"ESP in UDP", overUDP(4500, "\x00\x00\x00\x01\x00\x00\x00\x01", dns4), true},
		{"IKE in UDP", overUDP(4500, "\x00\x00\x00\x00\x00\x00\x00\x01", dns4), false},
		{"keepalive of ESP in UDP", overUDP(4500, "\xff", nil), false},
		{"L2TP data", overUDP(1701, "\x00\x02\x00\x01\x00\x02\x00\x21", dns4), true},
		{"L2TP control", overUDP(1701, "\xc8\x02\x00\x14\x00\x01\x00\x00", dns4), false},
		{"Teredo, notification", overUDP(3544, "", proxied6), true},
		{"Teredo", overUDP(3544, "", dns6), false},
		{"Teredo with an origin", overUDP(3544, "\x00\x00\xef\xee\x3f\xff\xff\xfe", dns6), true},
		{"LISP, notification", overUDP(4341, "\x80\x00\x00\x01\x00\x00\x00\x00", proxied4), true},
		{"LISP", overUDP(4341, "\x80\x00\x00\x01\x00\x00\x00\x00", dns4), false},
		{"GRE in UDP, notification", overUDP(4754, "\x00\x00\x08\x00", proxied4), true},
		{"GRE in UDP", overUDP(4754, "\x00\x00\x08\x00", dns4), false},
		{"GUE, direct, notification", overUDP(6080, "", proxied4), true},
		{"GUE, direct", overUDP(6080, "", dns4), false},
		{"GUE with a header", overUDP(6080, "\x00\x04\x00\x00", dns4), true},
		{"GUE control", overUDP(6080, "\x20\x00\x00\x00", dns4), false},
		{"Geneve in IP", over(4, 4, string(packetOf(stack{family: 4, proto: 17, body: slices.Concat([]byte("\xc0\x00\x17\xc1\x00\x00\x00\x00\x00\x00\x08\x00\x00\x00\x05\x00"), dns4)}))), true},
		{"GRE in IP", over(4, 4, string(packetOf(stack{family: 4, proto: 47, body: append([]byte("\x00\x00\x08\x00"), dns4...)}))), true},
		{"IP in IP in IP", over(4, 4, string(packetOf(stack{family: 4, proto: 4, body: dns4}))), true},
	} {
		if hides, note := mayHideFrame(c.frame); hides != c.want || note != NotANotification && note != StandardCNP {
			t.Errorf("%s: may hide %v (%q), want %v and no notification in sight: % x", c.name, hides, note, c.want, c.frame)
		}
	}
}

// TestMayHideByNumber holds every EtherType and every protocol number to what the tables of docs/configuration.md say.
func TestMayHideByNumber(t *testing.T) {
	etherTypes := []int{0x0800, 0x22f3, 0x6558, 0x8100, 0x86dd, 0x880b, 0x8847, 0x8848, 0x8864, 0x88a8, 0x88e5, 0x88e7, 0x8903,
		0x8909, 0x8926, 0x892f, 0x893f, 0x894f, 0x9100, 0x9200, 0x9300, 0xa0ed, 0xab37, 0xf1c1}
	for etherType := minEtherType; etherType < 1<<16; etherType++ {
		want := slices.Contains(etherTypes, etherType)
		if got, _ := mayHideFrame(linkFrame(uint16(etherType), "\x00\x00")); got != want {
			t.Errorf("EtherType %#04x: may hide %v, want %v", etherType, got, want)
		}
	}
	// A packet whose payload is one octet of 0, and fragments of such a payload.
	upper := []uint8{4, 17, 41, 47, 50, 51, 53, 55, 94, 97, 98, 108, 115, 135, 137, 139, 140, 142, 143, 144, 145, 253, 254}
	chain := []uint8{0, 43, 44, 60} // of extension headers cut short; AH is among the others
	for proto := range 256 {
		number := uint8(proto)
		listed, inChain := slices.Contains(upper, number), slices.Contains(chain, number)
		whole4 := packetFrame4(number, 0)
		for _, c := range []struct {
			name  string
			frame []byte
			want  bool
		}{
			{"IPv4", whole4, listed},
			{"IPv4 fragment", packetFrame4(number, 1), listed || number == 0},
			{"IPv6", packetFrame6(number, []byte{0}), listed || inChain},
			{"IPv6 fragment", packetFrame6(44, []byte{number, 0, 0, 9, 0, 0, 0, 1, 0}), listed || inChain || number == 58},
		} {
			if got, _ := mayHideFrame(c.frame); got != c.want {
				t.Errorf("%s of protocol %d: may hide %v, want %v", c.name, proto, got, c.want)
			}
		}
	}
}

// TestFragmentHasNoType: the first octet of the frame isn't the type of an ICMPv6 fragment's message.
func TestFragmentHasNoType(t *testing.T) {
	frame := built(fragment6(58, 0))
	frame[0] = DefaultCodePoints.LongHaulICMPv6Type
	if hides, note := mayHideFrame(frame); !hides || note != NotANotification {
		t.Errorf("may hide %v, classified as %q; want true and none", hides, note)
	}
}

func packetFrame4(proto uint8, fragment uint16) []byte {
	f := built(stack{family: 4, frag: fragment, proto: 6, body: []byte{0}})
	f[23] = proto
	return f
}

func packetFrame6(next uint8, payload []byte) []byte {
	f := built(stack{family: 6, proto: 6, body: payload})
	f[20] = next
	return f
}

// TestMayHidePadding: what is behind the IP packet hides nothing, and makes nothing visible.
func TestMayHidePadding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawAny(t)
		s.padding = 0
		frame := built(s)
		before, _ := mayHideFrame(frame)
		var p Parsed
		Parse(frame, uint32(len(frame)), &p)
		if after, _ := mayHideFrame(append(frame, drawBytes(t, 40)...)); after != before {
			t.Fatalf("%+v: may hide %v, and %v with padding", p, before, after)
		}
	})
}

// TestMayHideNothingWhole: whatever Parse reads to an upper layer that carries nothing else hides nothing, however deep it is.
func TestMayHideNothingWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawRoCEv2(t)
		if s.opcode == CNP {
			s.opcode = RCWriteMiddle
		}
		if hides, _ := mayHideFrame(built(s)); hides {
			t.Fatalf("%+v", s)
		}
		s.proto, s.body = 6, drawBytes(t, 20)
		if hides, _ := mayHideFrame(built(s)); hides {
			t.Fatalf("%+v", s)
		}
		s.proto, s.body, s.dstPort = 0, nil, 53
		if hides, _ := mayHideFrame(built(s)); hides {
			t.Fatalf("%+v", s)
		}
	})
}

func TestSourceRouted(t *testing.T) {
	options := func(o string) stack { return stack{family: 4, srcPort: 0xc123, dstPort: 1022, options: []byte(o)} }
	ext := func(e ...extHeader) stack { return stack{family: 6, dstPort: 1022, ext: e} }
	for _, c := range []struct {
		name string
		stack
		want bool
	}{
		{"no options", options(""), false},
		{"loose", options("\x83\x07\x04\x0a\x00\x00\x01\x00"), true},
		{"strict, behind others", options("\x01\x94\x04\x00\x00\x89\x03\x04"), true},
		{"behind the end of the list", options("\x00\x02\x83\x03"), false},
		{"the number as data", options("\x94\x04\x83\x83"), false},
		{"option shorter than two octets", options("\x94\x01\x00\x00"), true},
		{"option without a length", options("\x01\x01\x01\x94"), true},
		{"routing header done with", ext(extHeader{43, []byte("\x02\x00\x00\x00\x00\x00")}), false},
		{"segments left", ext(extHeader{43, []byte("\x02\x01\x00\x00\x00\x00")}), true},
		{"segments left, behind others", ext(extHeader{0, make([]byte, 6)}, extHeader{60, make([]byte, 6)}, extHeader{43, []byte("\x04\x02\x00\x00\x00\x00")}), true},
		{"another header with that octet", ext(extHeader{60, []byte("\x01\x04\x00\x00\x00\x00")}), false},
	} {
		frame, p := c.build()
		if got := SourceRouted(frame, &p); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if SourceRouted(nil, &Parsed{}) {
		t.Error("no IP packet, but source-routed")
	}
}
