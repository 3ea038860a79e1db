// Package ospf has what the LSAs of OSPFv2 and OSPFv3 that carry TLVs have in common: the TLVs (RFC 3630 2.3.2, RFC 7684 2, RFC 8362 3), the
// attributes of a prefix that the proxy node capability needs (draft-xiao-proxy 5.2 and 5.3), and the checksum. The package is pure. All
// numbers on the wire are big endian.
package ospf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/cnpgate/cnpgate/internal/igp/fletcher"
)

// LSAHeaderLen is the length of an LSA's header, in both versions.
const LSAHeaderLen = 20

// MaxAge is the age in seconds at which an LSA is flushed (RFC 2328 B).
const MaxAge = 3600

// LSA is a link-state advertisement. In OSPFv2 Type has the options in its upper octet; in OSPFv3 it is U, S2, S1 and the function code.
type LSA struct {
	Age      uint16 // seconds; the highest bit is DoNotAge (RFC 1793)
	Type     uint16
	ID       uint32     // Link State ID
	Router   netip.Addr // advertising router: its Router ID in the form of an IPv4 address
	Sequence uint32
	Checksum uint16
	Body     []byte
}

const (
	checksumAt = 16 // in the header
	ageLen     = 2  // which the checksum doesn't cover
	doNotAge   = 0x8000
)

// NextLSA decodes the first LSA of b and returns what follows. The LSA shares b. checksum reports whether its checksum is right.
func NextLSA(b []byte) (l LSA, checksum bool, rest []byte, err error) {
	if len(b) < LSAHeaderLen {
		return LSA{}, false, nil, fmt.Errorf("%d octets are left where an LSA begins; expected at least %d", len(b), LSAHeaderLen)
	}
	length := int(binary.BigEndian.Uint16(b[18:]))
	if length < LSAHeaderLen || length > len(b) {
		return LSA{}, false, nil, fmt.Errorf("an LSA of type %#04x has a length of %d octets; expected %d to the %d that are left",
			binary.BigEndian.Uint16(b[2:]), length, LSAHeaderLen, len(b))
	}
	l = LSA{
		Age:      binary.BigEndian.Uint16(b),
		Type:     binary.BigEndian.Uint16(b[2:]),
		ID:       binary.BigEndian.Uint32(b[4:]),
		Router:   netip.AddrFrom4([4]byte(b[8:])),
		Sequence: binary.BigEndian.Uint32(b[12:]),
		Checksum: binary.BigEndian.Uint16(b[checksumAt:]),
		Body:     b[LSAHeaderLen:length],
	}
	return l, l.Checksum == fletcher.Sum(b[ageLen:length], checksumAt-ageLen), b[length:], nil
}

// Append appends the LSA. It calculates the checksum and ignores l.Checksum.
func (l *LSA) Append(b []byte) ([]byte, error) {
	if !l.Router.Is4() {
		return nil, fmt.Errorf("%v is no Router ID; expected four octets", l.Router)
	}
	if LSAHeaderLen+len(l.Body) > maxValue {
		return nil, errors.New("an LSA has more than 65,535 octets")
	}
	start := len(b)
	b = binary.BigEndian.AppendUint16(b, l.Age)
	b = binary.BigEndian.AppendUint16(b, l.Type)
	b = binary.BigEndian.AppendUint32(b, l.ID)
	b = append(b, l.Router.AsSlice()...)
	b = binary.BigEndian.AppendUint32(b, l.Sequence)
	b = append(b, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(LSAHeaderLen+len(l.Body)))
	b = append(b, l.Body...)
	binary.BigEndian.PutUint16(b[start+checksumAt:], fletcher.Sum(b[start+ageLen:], checksumAt-ageLen))
	return b, nil
}

// Flushed reports whether the LSA is being withdrawn: its age is MaxAge.
func (l *LSA) Flushed() bool { return l.Age&^doNotAge >= MaxAge }

// TLVHeaderLen is the length of a TLV's type and length.
const TLVHeaderLen = 4

// TLV is a TLV or sub-TLV. Its value has at most 65,535 octets.
type TLV struct {
	Type  uint16
	Value []byte // without padding
}

// NextTLV decodes the first TLV of b, and returns what follows it and its padding to four octets. Its value is part of b. Padding that is
// missing behind the last TLV is not an error.
func NextTLV(b []byte) (t TLV, rest []byte, err error) {
	if len(b) < TLVHeaderLen {
		return TLV{}, nil, fmt.Errorf("%d octets are left where a TLV begins; expected at least %d", len(b), TLVHeaderLen)
	}
	t.Type = binary.BigEndian.Uint16(b)
	length := int(binary.BigEndian.Uint16(b[2:]))
	b = b[TLVHeaderLen:]
	if length > len(b) {
		return TLV{}, nil, fmt.Errorf("TLV %d has a length of %d octets, but %d are left", t.Type, length, len(b))
	}
	t.Value = b[:length]
	return t, b[min(padded(length), len(b)):], nil
}

// AppendTLV appends a TLV, padded with zeros to four octets.
func AppendTLV(b []byte, t TLV) []byte {
	b = binary.BigEndian.AppendUint16(b, t.Type)
	b = binary.BigEndian.AppendUint16(b, uint16(len(t.Value)))
	b = append(b, t.Value...)
	return append(b, make([]byte, padded(len(t.Value))-len(t.Value))...)
}

// padded is a length rounded up to four octets.
func padded(length int) int { return (length + 3) &^ 3 }

// maxValue is the longest value of a TLV.
const maxValue = 1<<16 - 1

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
