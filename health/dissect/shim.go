package dissect

import (
	"encoding/binary"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// EtherTypes of headers that switches and mirrors put between the MAC addresses and a frame's own EtherType.
const (
	vnTag      = 0x8926 // IEEE 802.1BR's predecessor: 4 octets
	metadata   = 0x8909 // Cisco Meta Data, with the security group tag: 6 octets
	eTag       = 0x893f // IEEE 802.1BR: 6 octets
	timestamps = 0xd28b // Arista: a subtype, a version with that of the hardware in the lowest 4 bits, and a time of 48 or 64 bits
	backbone   = 0x88e7 // IEEE 802.1ah: 4 octets, then a whole frame
	fabricPath = 0x8903 // Cisco: 2 octets, then a whole frame
	dsa        = 0xdada // of a switch that Linux runs on: 2 octets of zero, then the tag of 4 octets
	pppoe      = 0x8864 // RFC 2516 4: 6 octets, the protocol of PPP in 2, then its packet
	trill      = 0x22f3 // RFC 6325 3: 6 octets with the number of words of options that follow, then a whole frame
	macsec     = 0x88e5 // IEEE 802.1AE 9.3: 6 octets, of which the first one has flags, and 8 more if SC is set
	oldTag1    = 0x9200 // VLAN tags of switches from before IEEE 802.1ad
	oldTag2    = 0x9300
)

// behindShim is the frame without such a header.
func (r *Reader) behindShim(b []byte, length uint32, p *packet.Parsed) ([]byte, uint32, bool) {
	const etherTypeLen, timeVersion, time48 = 2, 2, 2
	shim := packet.EthernetLen - etherTypeLen + packet.VLANTagLen*int(p.Tags) // its EtherType, and what is behind that
	at := shim + etherTypeLen
	switch p.EtherType {
	case oldTag1, oldTag2:
		return r.without(b, length, shim, at+2)
	case vnTag:
		return r.without(b, length, shim, at+4)
	case metadata, eTag, dsa:
		return r.without(b, length, shim, at+6)
	case timestamps:
		if at+timeVersion+2 > len(b) {
			return nil, 0, false
		}
		if binary.BigEndian.Uint16(b[at+timeVersion:])>>4 == time48 {
			return r.without(b, length, shim, at+4+6)
		}
		return r.without(b, length, shim, at+4+8)
	case macsec:
		const sc, encrypted, tag, channel = 0x20, 0x0c, 6, 8
		if at < len(b) && b[at]&encrypted == 0 {
			return r.without(b, length, shim, at+tag+int(b[at]&sc)/sc*channel)
		}
	case backbone:
		return from(b, length, at+4)
	case fabricPath:
		return from(b, length, at+2)
	case pppoe:
		const ipv4, ipv6 = 0x21, 0x57 // RFC 1332 2.1, RFC 5072 3
		ip := at + 8
		if ip < min(len(b), int(length)) && (b[ip-1] == ipv4 || b[ip-1] == ipv6) && b[ip-2] == 0 {
			return r.asFrame(b[ip:], length-uint32(ip))
		}
	case trill:
		if at+2 <= len(b) {
			return from(b, length, at+6+int(binary.BigEndian.Uint16(b[at:])>>6&0x1f)*4)
		}
	}
	return nil, 0, false
}

// without is a frame without what is between two offsets, so that its MAC addresses, and tags before, remain.
func (r *Reader) without(b []byte, length uint32, at, end int) ([]byte, uint32, bool) {
	if end+2 > len(b) || end > int(length) {
		return nil, 0, false
	}
	r.rewrote = append(append(r.rewrote[:0], b[:at]...), b[end:]...)
	return r.rewrote, length - uint32(end-at), true
}

// opaque are encapsulations that aren't read, and may hide RDMA, by EtherType, by IP protocol, and by UDP destination port.
var (
	opaqueUDP = map[uint16]string{6343: "sFlow samples", 37008: "TZSP"}
	opaque    = map[uint16]string{0x8863: "PPPoE", pppoe: "PPPoE", macsec: "MACsec", backbone: "MAC-in-MAC", 0x894f: "NSH", vnTag: "VN-Tag", metadata: "Cisco Meta Data", timestamps: "Arista time stamps",
		eTag: "802.1BR E-TAG", dsa: "DSA tag", fabricPath: "FabricPath", trill: "TRILL"}

	// otherRDMA are transports of RDMA by UDP destination port.
	otherRDMA = map[uint16]string{4793: "Ultra Ethernet"}

	opaqueIP = map[uint8]string{50: "ESP", 97: "EtherIP", 115: "L2TP", 137: "MPLS in IP"}
)
