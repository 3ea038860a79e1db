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
