package ospf

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// Protocol is OSPF's IP protocol number.
const Protocol = 89

// Types of OSPF packets (RFC 2328 A.3.1, RFC 5340 A.3.1).
const (
	Hello = iota + 1
	DatabaseDescription
	LinkStateRequest
	LinkStateUpdate
	LinkStateAcknowledgment
)

// TypeName is the name of a type of packet, or "type" and its number.
func TypeName(t uint8) string {
	names := [...]string{Hello: "hello", DatabaseDescription: "database-description", LinkStateRequest: "link-state-request",
		LinkStateUpdate: "link-state-update", LinkStateAcknowledgment: "link-state-acknowledgment"}
	if int(t) < len(names) && names[t] != "" {
		return names[t]
	}
	return fmt.Sprintf("type %d", t)
}

// Packet is an OSPF packet.
type Packet struct {
	Version      Version
	Type         uint8
	Router, Area netip.Addr // in the form of IPv4 addresses
	Instance     uint8      // of OSPFv3
	Body         []byte
}

// DecodePacket decodes the header of an OSPF packet, the payload of an IP packet. Body shares b, and ends where the header says: OSPFv2's
// authentication data may follow. It checks no checksum.
func DecodePacket(b []byte) (p Packet, err error) {
	const lengthAt, v2Len, v3Len = 2, 24, 16
	if len(b) < v3Len {
		return Packet{}, fmt.Errorf("an OSPF packet has %d octets; expected at least %d", len(b), v3Len)
	}
	p = Packet{Version: Version(b[0]), Type: b[1], Router: netip.AddrFrom4([4]byte(b[4:])), Area: netip.AddrFrom4([4]byte(b[8:]))}
	header := v2Len
	switch p.Version {
	case V2:
	case V3:
		header, p.Instance = v3Len, b[14]
	default:
		return Packet{}, fmt.Errorf("an OSPF packet has version %d; expected 2 or 3", b[0])
	}
	length := int(binary.BigEndian.Uint16(b[lengthAt:]))
	if length < header || length > len(b) {
		return Packet{}, fmt.Errorf("an OSPFv%d packet of %d octets gives its length as %d; expected %d to %d", p.Version, len(b), length, header, len(b))
	}
	p.Body = b[header:length]
	return p, nil
}

// Update decodes the LSAs of a Link State Update: the number of LSAs, then these. yield gets each LSA, and whether its checksum is right; Update ends
// when yield returns false.
func (p *Packet) Update(yield func(l *LSA, checksum bool) bool) error {
	if len(p.Body) < 4 {
		return fmt.Errorf("a Link State Update has %d octets; expected at least 4", len(p.Body))
	}
	count, b := binary.BigEndian.Uint32(p.Body), p.Body[4:]
	if int64(count)*LSAHeaderLen > int64(len(b)) {
		return fmt.Errorf("a Link State Update announces %d LSAs in %d octets; each has at least %d", count, len(b), LSAHeaderLen)
	}
	for i := range count { // bounded by len(b)
		l, checksum, rest, err := NextLSA(b)
		if err != nil {
			return fmt.Errorf("LSA %d of %d: %w", i+1, count, err)
		}
		if b = rest; !yield(&l, checksum) {
			return nil
		}
	}
	return nil
}
