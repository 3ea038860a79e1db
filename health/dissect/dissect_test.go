package dissect

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

const (
	greSequence                         = 0x1000 // GRE: a sequence number follows
	vxlanPort, vxlanGPEPort, genevePort = 4789, 4790, 6081
	oldVXLANPort                        = 8472
)

// ethernet is a header with an EtherType.
func ethernet(etherType uint16) []byte {
	return binary.BigEndian.AppendUint16([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1}, etherType)
}

// ipv4 is an IPv4 packet of a protocol with its payload; fragment is its field of flags and offset.
func ipv4(proto uint8, fragment uint16, payload ...byte) []byte {
	b := make([]byte, packet.IPv4Len, packet.IPv4Len+len(payload))
	packet.PutIPv4(b, uint16(packet.IPv4Len+len(payload)), 0, 64, proto, 0x0a010001, 0x0a020001)
	binary.BigEndian.PutUint16(b[6:], fragment)
	return append(b, payload...)
}

func udp(port uint16, payload ...byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, 50000)
	b = binary.BigEndian.AppendUint16(b, port)
	b = binary.BigEndian.AppendUint16(b, uint16(packet.UDPLen+len(payload)))
	return append(append(b, 0, 0), payload...)
}

// transport is a BTH to QP 0x000222 with PSN 0x000777, what follows it, and a wrong ICRC.
func transport(opcode packet.Opcode, more ...byte) []byte {
	b := []byte{byte(opcode), 0, 0xff, 0xff, 0, 0, 2, 0x22, 0, 0, 7, 0x77}
	return append(append(b, more...), 1, 2, 3, 4)
}

// roce is a frame of a RoCEv2 packet to a port.
func roce(port uint16, opcode packet.Opcode, more ...byte) []byte {
	return join(ethernet(packet.EtherTypeIPv4), ipv4(packet.ProtoUDP, 0, udp(port, transport(opcode, more...)...)...))
}

func join(parts ...[]byte) (all []byte) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// mirrored is a frame behind a GRE header with flags and type, and what follows it.
func mirrored(flags, etherType uint16, header int, frame []byte) []byte {
	gre := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, flags), etherType)
	return join(ethernet(packet.EtherTypeIPv4), ipv4(packet.ProtoGRE, 0, join(gre, make([]byte, header), frame)...))
}

// fpdu is a TCP segment with an FPDU of iWARP, by its control octets, and more octets behind it.
func fpdu(ddp, rdmap byte, more int) []byte {
	const ulpdu, padding, crc = 17, 1, 4
	tcp := make([]byte, 20, 100)
	tcp[12] = 0x50
	tcp = append(append(tcp, 0, ulpdu, ddp, rdmap), make([]byte, ulpdu-2+padding+crc+more)...)
	return join(ethernet(packet.EtherTypeIPv4), ipv4(packet.ProtoTCP, 0, tcp...))
}

// overlay is a frame in UDP to a port behind a header.
func overlay(port uint16, header, frame []byte) []byte {
	return join(ethernet(packet.EtherTypeIPv4), ipv4(packet.ProtoUDP, 0, udp(port, join(header, frame)...)...))
}

// firstFragment is the first half of a packet in a frame with IPv4 without options.
func firstFragment(frame []byte) []byte {
	const most = 48
	b := append([]byte(nil), frame[:packet.EthernetLen+packet.IPv4Len+most]...)
	binary.BigEndian.PutUint16(b[packet.EthernetLen+2:], packet.IPv4Len+most)
	binary.BigEndian.PutUint16(b[packet.EthernetLen+6:], 0x2000) // MF
	return b
}

func firstFragment6() []byte {
	const most = 48
	payload := udp(packet.RoCEv2Port, transport(packet.RCSendOnly, make([]byte, 1024)...)...)[:most]
	b := make([]byte, packet.IPv6Len)
	packet.PutIPv6(b, 8+most, 0, packet.ProtoFragment, 64, &packet.Addr{Hi: 0xfd00 << 48, Lo: 1}, &packet.Addr{Hi: 0xfd00 << 48, Lo: 2})
	return join(ethernet(packet.EtherTypeIPv6), b, []byte{packet.ProtoUDP, 0, 0, 1, 0, 0, 0, 9}, payload)
}

// lengthless is an IPv4 frame whose total length is 0.
func lengthless(frame []byte) []byte {
	b := append([]byte(nil), frame...)
	at := packet.EthernetLen
	if b[12] == 0x81 {
		at += packet.VLANTagLen
	}
	b[at+2], b[at+3] = 0, 0
	return b
}

// lengthless6 is a frame of an IPv6 packet with a datagram, whose payload length is 0.
func lengthless6(datagram []byte) []byte {
	b := make([]byte, packet.IPv6Len)
	packet.PutIPv6(b, 0, 0, packet.ProtoUDP, 64, &packet.Addr{Hi: 0xfd00 << 48, Lo: 1}, &packet.Addr{Hi: 0xfd00 << 48, Lo: 2})
	return join(ethernet(packet.EtherTypeIPv6), b, datagram)
}

// TestRead: a packet is found behind what mirrors and overlays put in front, with the network that an overlay names; and what isn't read has its reason.
func TestRead(t *testing.T) {
	send := roce(packet.RoCEv2Port, packet.RCSendOnly, make([]byte, 64)...)
	tags := func(n int) []byte {
		b := append([]byte(nil), send[:12]...)
		for i := range n {
			b = append(b, 0x81, 0x00, 0, byte(100+i))
		}
		return append(b, send[12:]...)
	}
	erspan3sub := mirrored(greSequence, erspan3, 4+erspan3Len+subHeaderLen, send)
	erspan3sub[packet.EthernetLen+packet.IPv4Len+4+4+erspan3Len-1] = 1 // O
	erspan3ip := mirrored(greSequence, erspan3, 4+erspan3Len, send[packet.EthernetLen:])
	erspan3ip[packet.EthernetLen+packet.IPv4Len+4+4+erspan3Len-2] = 2 << 2 // FT
	shim := func(etherType uint16, n int) []byte {                         // behind a VLAN tag, in front of another one
		b := binary.BigEndian.AppendUint16(tags(1)[:16], etherType)
		b = append(b, make([]byte, n)...)
		if n == 10 {
			b[21] = 0x20
		}
		return append(b, tags(1)[12:]...)
	}
	aristaJ2, macsecSC := shim(0xd28b, 10), shim(0x88e5, 14)
	aristaJ2[21], macsecSC[18] = 0x21, 0x20
	geneve := func(options int, what uint16) []byte {
		b := []byte{byte(options), 0, byte(what >> 8), byte(what), 0, 0, 77, 0}
		return append(b, make([]byte, 4*options)...)
	}
	vni := []byte{8, 0, 0, 0, 0, 0, 77, 0}
	for _, c := range []struct {
		name   string
		frame  []byte
		port   uint16
		reason Reason
		tunnel packet.TunnelKind
		id     uint32
		whole  bool
	}{
		{name: "plain", frame: send, whole: true},
		{name: "one tag", frame: tags(1), whole: true},
		{name: "three tags", frame: tags(3), whole: true},
		{name: "six tags", frame: tags(6), whole: true},
		{name: "ERSPAN I", frame: mirrored(0, erspan12, 0, send), whole: true},
		{name: "ERSPAN II", frame: mirrored(greSequence, erspan12, 4+erspan2Len, send), whole: true},
		{name: "ERSPAN III", frame: mirrored(greSequence, erspan3, 4+erspan3Len, send), whole: true},
		{name: "ERSPAN III with a sub-header", frame: erspan3sub, whole: true},
		{name: "Everflow without a header, numbered", frame: mirrored(greSequence, erspan12, 4, send), whole: true},
		{name: "TZSP", frame: overlay(37008, []byte{1, 1, 0, 1, 0, 10, 1, 99, 1}, send), whole: true},
		{name: "Everflow 0x8949", frame: mirrored(0, everflow, everflowLen, send), whole: true},
		{name: "Everflow 0x8949 without a header", frame: mirrored(0, everflow, 0, send), whole: true},
		{name: "ERSPAN III of a packet", frame: erspan3ip, whole: true},
		{name: "GRE with unused bits", frame: mirrored(0x0128, erspan12, 0, send), whole: true},
		{name: "Juniper's mirror", frame: overlay(30030, make([]byte, 8), send[packet.EthernetLen:]), whole: true},
		{name: "VXLAN on another port", frame: overlay(65330, vni, tags(1)), whole: true},
		{name: "Cisco ACI", frame: overlay(48879, []byte{0xc8, 0x80, 0x40, 2, 0, 0, 77, 0}, send), whole: true},
		{name: "an IP packet in a file that says Ethernet", frame: send[packet.EthernetLen:], whole: true},
		{name: "ERSPAN II of a frame with three tags", frame: mirrored(greSequence, erspan12, 4+erspan2Len, tags(3)), whole: true},
		{name: "ERSPAN II of VXLAN", frame: mirrored(greSequence, erspan12, 4+erspan2Len, overlay(vxlanPort, vni, send)), tunnel: packet.VXLAN, id: 77, whole: true},
		{name: "VXLAN", frame: overlay(vxlanPort, vni, send), tunnel: packet.VXLAN, id: 77, whole: true},
		{name: "VXLAN on 8472", frame: overlay(oldVXLANPort, vni, send), tunnel: packet.VXLAN, id: 77, whole: true},
		{name: "VXLAN-GPE", frame: overlay(vxlanGPEPort, []byte{0x0c, 0, 0, 3, 0, 0, 77, 0}, send), tunnel: packet.VXLAN, id: 77, whole: true},
		{name: "VXLAN-GPE of NSH", frame: overlay(vxlanGPEPort, []byte{0x0c, 0, 0, 4, 0, 0, 77, 0}, send), reason: Tunnel},
		{name: "Geneve", frame: overlay(genevePort, geneve(0, 0x6558), send), tunnel: packet.VXLAN, id: 77, whole: true},
		{name: "Geneve with options", frame: overlay(genevePort, geneve(3, 0x6558), send), tunnel: packet.VXLAN, id: 77, whole: true},
		{name: "Geneve of another protocol", frame: overlay(genevePort, geneve(0, 0x1234), send), reason: Tunnel},
		{name: "VN-Tag", frame: shim(0x8926, 4), whole: true},
		{name: "Cisco Meta Data", frame: shim(0x8909, 6), whole: true},
		{name: "Arista's time of 64 bits", frame: shim(0xd28b, 12), whole: true},
		{name: "Arista's time of 48 bits", frame: shim(0xd28b, 10), whole: true},
		{name: "Arista's time of 48 bits of J2", frame: aristaJ2, whole: true},
		{name: "an old tag", frame: shim(0x9200, 2), whole: true},
		{name: "MACsec in clear text", frame: shim(0x88e5, 6), whole: true},
		{name: "MACsec in clear text with SC", frame: macsecSC, whole: true},
		{name: "VN-Tag, cut", frame: shim(0x8926, 4)[:20], reason: Tunnel},
		{name: "MAC-in-MAC", frame: join(send[:12], []byte{0x88, 0xa8, 0, 100, 0x88, 0xe7, 0, 0, 0, 77}, send), whole: true},
		{name: "E-TAG", frame: shim(0x893f, 6), whole: true},
		{name: "DSA tag", frame: shim(0xdada, 6), whole: true},
		{name: "FabricPath", frame: join(send[:12], []byte{0x89, 0x03, 0, 0x60}, tags(1)), whole: true},
		{name: "TRILL", frame: join(send[:12], []byte{0x22, 0xf3, 0, 0x10, 0, 1, 0, 2}, tags(1)), whole: true},
		{name: "TRILL with options", frame: join(send[:12], []byte{0x22, 0xf3, 0, 0x90, 0, 1, 0, 2}, make([]byte, 8), send), whole: true},
		{name: "cut by a mirror that tells the length that is left", frame: send[:60]},
		{name: "the same behind a tag", frame: tags(1)[:64]},
		{name: "the same in ERSPAN II", frame: mirrored(greSequence, erspan12, 4+erspan2Len, send[:60])},
		{name: "the same in VXLAN", frame: overlay(vxlanPort, vni, send[:60]), tunnel: packet.VXLAN, id: 77},
		{name: "the same in VXLAN on 8472", frame: overlay(oldVXLANPort, vni, send[:60]), tunnel: packet.VXLAN, id: 77},
		{name: "the same behind a tag in Geneve", frame: overlay(genevePort, geneve(3, 0x6558), tags(1)[:64]), tunnel: packet.VXLAN, id: 77},
		{name: "the same in GRE", frame: mirrored(0, 0x6558, 0, send[:60]), tunnel: packet.GRE},
		{name: "the same, an IP packet in GRE", frame: mirrored(0, packet.EtherTypeIPv4, 0, send[packet.EthernetLen:60]), tunnel: packet.GRE},
		{name: "the same, an IP packet in IP", frame: join(ethernet(packet.EtherTypeIPv4), ipv4(packet.ProtoIPv4, 0, send[packet.EthernetLen:60]...)), tunnel: packet.IPInIP},
		{name: "the same below a label", frame: join(ethernet(packet.EtherTypeMPLS), []byte{0, 1, 0x41, 60}, send[packet.EthernetLen:60])},
		{name: "the same in VXLAN in ERSPAN II", frame: mirrored(greSequence, erspan12, 4+erspan2Len, overlay(vxlanPort, vni, send[:60])), tunnel: packet.VXLAN, id: 77},
		{name: "IPv4 without a length", frame: lengthless(send)},
		{name: "the same behind a tag", frame: lengthless(tags(1))},
		{name: "the same in VXLAN", frame: overlay(vxlanPort, vni, lengthless(send)), tunnel: packet.VXLAN, id: 77},
		{name: "VXLAN in IPv4 without a length", frame: lengthless(overlay(vxlanPort, vni, send)), tunnel: packet.VXLAN, id: 77},
		{name: "IPv6 without a length", frame: lengthless6(send[packet.EthernetLen+packet.IPv4Len:])},
		{name: "TCP without a length", frame: lengthless(join(ethernet(packet.EtherTypeIPv4), ipv4(packet.ProtoTCP, 0, make([]byte, 40)...))), reason: NotRDMA},
		{name: "VXLAN in VXLAN", frame: overlay(vxlanPort, vni, overlay(vxlanPort, vni, send)), tunnel: packet.VXLAN, id: 77, whole: true},
		{name: "VXLAN in VXLAN, cut", frame: overlay(vxlanPort, vni, overlay(vxlanPort, vni, send)[:110]), tunnel: packet.VXLAN, id: 77},
		{name: "ERSPAN II in VXLAN", frame: overlay(vxlanPort, vni, mirrored(greSequence, erspan12, 4+erspan2Len, send)), whole: true},
		{name: "TCP in VXLAN", frame: overlay(vxlanPort, vni, join(ethernet(packet.EtherTypeIPv4), ipv4(packet.ProtoTCP, 0, make([]byte, 20)...))), reason: NotRDMA},
		{name: "TCP in ERSPAN II", frame: mirrored(greSequence, erspan12, 4+erspan2Len, join(ethernet(packet.EtherTypeIPv4), ipv4(packet.ProtoTCP, 0, make([]byte, 20)...))), reason: NotRDMA},
		{name: "the same, within the BTH", frame: send[:50], reason: HeadersCut},
		{name: "merged by a host", frame: roce(packet.RoCEv2Port, packet.RCWriteMiddle, make([]byte, 1024+4+12+1024)...), reason: Merged},
		{name: "merged without a path MTU", frame: roce(packet.RoCEv2Port, packet.RCSendOnly, make([]byte, 4097)...), reason: Merged},
		{name: "the largest packet", frame: roce(packet.RoCEv2Port, packet.RCWriteMiddle, make([]byte, 4096)...), whole: true},
		{name: "iWARP", frame: join(ethernet(packet.EtherTypeIPv4), ipv4(packet.ProtoTCP, 0, join(make([]byte, 12), []byte{0x50}, make([]byte, 7), []byte("MPA ID Req Frame"))...)), reason: OtherRDMA},
		{name: "iWARP, an FPDU", frame: fpdu(0x41, 0x43, 0), reason: OtherRDMA},
		{name: "another version than iWARP's", frame: fpdu(0x42, 0x43, 0), reason: NotRDMA},
		{name: "what iWARP reserves", frame: fpdu(0x41, 0x53, 0), reason: NotRDMA},
		{name: "another length than an FPDU's", frame: fpdu(0x41, 0x43, 4), reason: NotRDMA},
		{name: "Ultra Ethernet", frame: overlay(4793, make([]byte, 16), nil), reason: OtherRDMA},
		{name: "ESP", frame: join(ethernet(packet.EtherTypeIPv4), ipv4(50, 0, make([]byte, 100)...)), reason: Tunnel},
		{name: "MACsec", frame: join(ethernet(0x88e5), []byte{0x2c}, make([]byte, 100)), reason: Tunnel},
		{name: "another port", frame: roce(14791, packet.RCSendOnly, make([]byte, 64)...), port: 14791, whole: true},
		{name: "another port in VXLAN", frame: overlay(vxlanPort, vni, roce(14791, packet.RCSendOnly, make([]byte, 1000)...)), port: 14791, tunnel: packet.VXLAN, id: 77, whole: true},
		{name: "another port in Geneve", frame: overlay(genevePort, geneve(1, 0x6558), roce(14791, packet.RCSendOnly, make([]byte, 64)...)), port: 14791, tunnel: packet.VXLAN, id: 77, whole: true},
		{name: "GRE in UDP", frame: overlay(4754, []byte{0, 0, 0x65, 0x58}, send), tunnel: packet.GRE, whole: true},
		{name: "GTP-U", frame: overlay(2152, []byte{0x30, 0xff, 0, 100, 0, 0, 0, 1}, send[packet.EthernetLen:]), whole: true},
		{name: "PPPoE", frame: join(ethernet(pppoe), []byte{0x11, 0, 0, 7, 0, 122, 0, 0x21}, send[packet.EthernetLen:]), whole: true},
		{name: "PPPoE, cut within the IP header", frame: join(ethernet(pppoe), []byte{0x11, 0, 0, 7, 0, 122, 0, 0x21}, send[packet.EthernetLen:30]), reason: Tunnel},
		{name: "PPPoE of something else", frame: join(ethernet(pppoe), []byte{0x11, 0, 0, 7, 0, 122, 0xc0, 0x21}, send[packet.EthernetLen:]), reason: Tunnel},
		{name: "VXLAN in IP", frame: join(ethernet(packet.EtherTypeIPv4), ipv4(packet.ProtoIPv4, 0, overlay(vxlanPort, vni, send)[packet.EthernetLen:]...)), tunnel: packet.VXLAN, id: 77, whole: true},
		{name: "ERSPAN II below a label", frame: join(ethernet(packet.EtherTypeMPLS), []byte{0, 1, 0x41, 60}, mirrored(greSequence, erspan12, 4+erspan2Len, send)[packet.EthernetLen:]), whole: true},
		{name: "the same in a pseudowire", frame: join(ethernet(packet.EtherTypeMPLS), []byte{0, 1, 0x41, 60}, mirrored(greSequence, erspan12, 4+erspan2Len, send)), whole: true},
		{name: "the same with a control word", frame: join(ethernet(packet.EtherTypeMPLS), []byte{0, 1, 0x41, 60, 0, 0, 0, 9}, mirrored(greSequence, erspan12, 4+erspan2Len, send)), whole: true},
		{name: "another port that isn't configured", frame: roce(14791, packet.RCSendOnly, make([]byte, 64)...), reason: NotRDMA},
		{name: "GRE of an unknown type", frame: mirrored(0, 0x1234, 0, send), reason: Tunnel},
		{name: "RoCE v1", frame: join(ethernet(etherTypeRoCEv1), make([]byte, 60)), reason: RoCEv1},
		{name: "mirrored RoCE v1", frame: mirrored(0, erspan12, 0, join(ethernet(etherTypeRoCEv1), make([]byte, 60))), reason: RoCEv1},
		{name: "the manufacturer's opcode", frame: roce(packet.RoCEv2Port, 0xc4, make([]byte, 64)...), reason: Vendor},
		{name: "a later fragment", frame: join(ethernet(packet.EtherTypeIPv4), ipv4(packet.ProtoUDP, 100, make([]byte, 64)...)), reason: Fragment},
		{name: "the first fragment", frame: firstFragment(send)},
		{name: "the first fragment over IPv6", frame: firstFragment6()},
		{name: "a later fragment in ERSPAN", frame: mirrored(0, erspan12, 0, join(ethernet(packet.EtherTypeIPv4), ipv4(packet.ProtoUDP, 100, make([]byte, 64)...))), reason: Fragment},
		{name: "TCP", frame: join(ethernet(packet.EtherTypeIPv4), ipv4(packet.ProtoTCP, 0, make([]byte, 20)...)), reason: NotRDMA},
		{name: "ARP", frame: join(ethernet(0x0806), make([]byte, 46)), reason: NotRDMA},
		{name: "nothing", frame: nil, reason: NotRDMA},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Reader{Port: c.port}
			o := r.Read(c.frame, uint32(len(c.frame)))
			if o.Reason != c.reason {
				t.Fatalf("reason %v (%s), want %v", o.Reason, Detail(&o), c.reason)
			}
			if c.reason != None {
				return
			}
			p := o.Parsed
			if p.Kind != packet.RoCEv2 || p.DestQP != 0x222 || p.PSN != 0x777 || o.Cut {
				t.Errorf("got QP %#x, PSN %#x, cut %v", p.DestQP, p.PSN, o.Cut)
			}
			if macs := o.Frame[:packet.EthernetLen-2]; !bytes.Equal(macs, send[:len(macs)]) && !bytes.Equal(macs, make([]byte, len(macs))) { // none: of an IP packet
				t.Errorf("its MAC addresses are %x", macs)
			}
			if k := p.Tunnel(); k.Kind != c.tunnel || k.ID != c.id {
				t.Errorf("in tunnel %v %d, want %v %d", k.Kind, k.ID, c.tunnel, c.id)
			}
			if len(o.Wire) != len(o.Real) {
				t.Errorf("%d octets of %d", len(o.Wire), len(o.Real))
			}
			if o.Whole != c.whole {
				t.Errorf("whole: %v, want %v", o.Whole, c.whole)
			}
		})
	}
}

// TestCut: what a capture cuts off is never zero: an ACK whose AETH is behind the end is marked as cut, and without its BTH there is no packet.
func TestCut(t *testing.T) {
	ack := roce(packet.RoCEv2Port, packet.RCAcknowledge, 0x60, 0, 0, 1) // a NAK
	bth := packet.EthernetLen + packet.IPv4Len + packet.UDPLen
	var r Reader
	for n := range len(ack) + 1 {
		o := r.Read(ack[:n], uint32(len(ack)))
		switch {
		case n >= bth+packet.BTHLen+4:
			if o.Reason != None || o.Cut || o.Whole != (n == len(ack)) {
				t.Errorf("%d octets: %v, cut %v, whole %v", n, o.Reason, o.Cut, o.Whole)
			}
		case n >= bth+packet.BTHLen:
			if o.Reason != None || !o.Cut || o.Whole || len(o.Real) != n {
				t.Errorf("%d octets: %v, cut %v, whole %v, %d at hand", n, o.Reason, o.Cut, o.Whole, len(o.Real))
			}
		case n >= packet.EthernetLen:
			if o.Reason != HeadersCut {
				t.Errorf("%d octets: %v, want %v", n, o.Reason, HeadersCut)
			}
		case o.Reason == None:
			t.Errorf("%d octets are a packet", n)
		}
	}
}

// FuzzRead: any frame has a reason or is RoCEv2 with its BTH at hand, and can be named.
func FuzzRead(f *testing.F) {
	f.Add(roce(packet.RoCEv2Port, packet.RCSendOnly), uint32(1500), uint16(0))
	f.Add(overlay(genevePort, []byte{0x3f, 0, 0x65, 0x58, 0, 0, 0, 0}, roce(4791, packet.CNP)), uint32(200), uint16(4791))
	f.Add(mirrored(0xb000, erspan3, 30, roce(4791, 0xc4)), uint32(200), uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, length uint32, port uint16) {
		r := Reader{Port: port}
		o := r.Read(b, length&0xffff)
		if Detail(&o) == "" && o.Reason != None {
			t.Errorf("%v isn't named", o.Reason)
		}
		if o.Reason == None && (o.Parsed.Kind != packet.RoCEv2 || int(o.Parsed.BTH)+packet.BTHLen > len(o.Real)) {
			t.Errorf("a packet without its BTH: %+v", o.Parsed)
		}
	})
}

// TestNoAllocation: to read a frame allocates nothing, whatever is in front.
func TestNoAllocation(t *testing.T) {
	send := roce(packet.RoCEv2Port, packet.RCSendOnly, make([]byte, 1024)...)
	vni := []byte{8, 0, 0, 0, 0, 0, 77, 0}
	var r Reader
	for _, frame := range [][]byte{
		send, mirrored(greSequence, erspan12, 4+erspan2Len, send), overlay(oldVXLANPort, vni, send), firstFragment(send), roce(packet.RoCEv2Port, 0xc4),
		overlay(genevePort, []byte{0, 0, 0x65, 0x58, 0, 0, 77, 0}, send),
	} {
		if n := testing.AllocsPerRun(100, func() { r.Read(frame, uint32(len(frame))) }); n != 0 {
			t.Errorf("%v allocations for a frame of %d octets", n, len(frame))
		}
	}
}

func BenchmarkRead(b *testing.B) {
	send := roce(packet.RoCEv2Port, packet.RCSendOnly, make([]byte, 1024)...)
	var r Reader
	for b.Loop() {
		r.Read(send, uint32(len(send)))
	}
}

// TestFragmentedMirror: of what a mirror or tunnel sends in fragments, the first one is examined, and the rest isn't said to be missing; of RoCE itself it is.
func TestFragmentedMirror(t *testing.T) {
	const more, second = 0x2000, 8
	inner := roce(packet.RoCEv2Port, packet.RCAcknowledge, 0, 0, 0, 1)
	for _, c := range []struct {
		name  string
		proto uint8
		of    []byte
		rest  Reason
	}{
		{"GRE", packet.ProtoGRE, join([]byte{0x10, 0, 0x88, 0xbe, 0, 0, 0, 1}, make([]byte, erspan2Len), inner), Rest},
		{"VXLAN", packet.ProtoUDP, udp(vxlanPort, join([]byte{8, 0, 0, 0, 0, 0, 7, 0}, inner)...), Rest},
		{"RoCE", packet.ProtoUDP, udp(packet.RoCEv2Port, transport(packet.RCAcknowledge, 0, 0, 0, 1)...), Fragment},
	} {
		var r Reader
		outer := func(fragment uint16, b []byte) []byte {
			f := join(ethernet(packet.EtherTypeIPv4), ipv4(c.proto, fragment, b...))
			copy(f[packet.EthernetLen+12:], []byte{192, 0, 2, 1}) // the source
			return f
		}
		cut := len(c.of) - 8
		for i, want := range []Reason{None, c.rest} {
			f := outer(more, c.of[:cut])
			if i == 1 {
				f = outer(uint16(cut/second), c.of[cut:])
			}
			if o := r.Read(f, uint32(len(f))); o.Reason != want {
				t.Errorf("%s, fragment %d: %v, want %v", c.name, i, o.Reason, want)
			}
		}
		if o := new(Reader).Read(outer(uint16(cut/second), c.of[cut:]), 42); o.Reason == Rest {
			t.Errorf("%s: the rest of what wasn't seen is %v", c.name, o.Reason)
		}
	}
}
