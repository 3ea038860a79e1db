// Package ospfv3 decodes OSPFv3's extended LSAs that carry prefixes (RFC 8362 4). With them go the prefix attribute flags (RFC 9792),
// whose P-flag a router sets that is the proxy of a prefix of senders (draft-xiao-proxy 5.3). The package is pure. All numbers on the wire
// are big endian.
//
// That an area border router preserves the flag is that router's matter; cnpgate is none.
package ospfv3

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/cnpgate/cnpgate/internal/igp/ospf"
)

// Types of extended LSAs that carry prefixes: U-bit, scope and function code (RFC 8362 4).
const (
	EInterAreaPrefix = 0xa023
	EASExternal      = 0xc025
	EType7           = 0xa027
	EIntraAreaPrefix = 0xa029
)

// PrefixTLV is a TLV that has a prefix.
type PrefixTLV uint16

// The TLVs (RFC 8362 3.4, 3.6, 3.7).
const (
	InterArea PrefixTLV = 3
	External  PrefixTLV = 5
	IntraArea PrefixTLV = 6
)

// String is the name of the TLV.
func (t PrefixTLV) String() string {
	return map[PrefixTLV]string{InterArea: "inter-area", External: "external", IntraArea: "intra-area"}[t]
}

// Prefix is a TLV that has a prefix.
type Prefix struct {
	TLV     PrefixTLV
	Upper   uint8        // before the metric: of an External TLV the flags, E 0x04; else 0
	Metric  uint32       // 24 bits
	Options uint8        // prefix options (RFC 5340 A.4.1.1)
	Unused  uint16       // after the options: reserved
	Prefix  netip.Prefix // IPv6, without host bits
	ospf.Attributes
}

// Reference is what the prefixes of an E-Intra-Area-Prefix LSA belong to (RFC 5340 A.4.10).
type Reference struct {
	Reserved uint16
	Type     uint16
	ID       uint32
	Router   netip.Addr // in the form of an IPv4 address
}

// LSA is the body of an extended LSA that carries prefixes.
type LSA struct {
	Reference Reference // of an E-Intra-Area-Prefix LSA only
	Prefixes  []Prefix
	Unknown   []ospf.TLV // of other types: receivers ignore them (RFC 8362 6)
}

const (
	referenceLen = 12
	fixedLen     = 8 // metric, prefix length, options, reserved
)

// HasPrefixes reports whether an LSA of this type can be decoded here.
func HasPrefixes(lsaType uint16) bool {
	switch lsaType {
	case EInterAreaPrefix, EASExternal, EType7, EIntraAreaPrefix:
		return true
	}
	return false
}

// Decode decodes the body of an LSA of a type that HasPrefixes; the result shares it. An error means that the LSA has to be ignored.
func Decode(lsaType uint16, body []byte) (l LSA, err error) {
	name := TypeName(lsaType)
	if lsaType == EIntraAreaPrefix {
		if len(body) < referenceLen {
			return LSA{}, fmt.Errorf("%s LSA: its body has %d octets; expected at least %d", name, len(body), referenceLen)
		}
		l.Reference = Reference{Reserved: binary.BigEndian.Uint16(body), Type: binary.BigEndian.Uint16(body[2:]),
			ID: binary.BigEndian.Uint32(body[4:]), Router: netip.AddrFrom4([4]byte(body[8:]))}
		body = body[referenceLen:]
	}
	for len(body) > 0 { // each round consumes at least four octets
		var t ospf.TLV
		if t, body, err = ospf.NextTLV(body); err != nil {
			return LSA{}, fmt.Errorf("%s LSA: %w", name, err)
		}
		if PrefixTLV(t.Type).String() == "" {
			l.Unknown = append(l.Unknown, t)
			continue
		}
		p, err := decodePrefix(t)
		if err != nil {
			return LSA{}, fmt.Errorf("%s LSA, prefix TLV %d: %w", name, t.Type, err)
		}
		l.Prefixes = append(l.Prefixes, p)
	}
	return l, nil
}

func decodePrefix(t ospf.TLV) (p Prefix, err error) {
	b := t.Value
	if len(b) < fixedLen {
		return Prefix{}, fmt.Errorf("it has %d octets; expected at least %d", len(b), fixedLen)
	}
	p = Prefix{TLV: PrefixTLV(t.Type), Upper: b[0], Metric: binary.BigEndian.Uint32(b) & 0xffffff, Options: b[5], Unused: binary.BigEndian.Uint16(b[6:])}
	length := int(b[4])
	if length > 128 {
		return Prefix{}, fmt.Errorf("the prefix length is %d; expected at most 128", length)
	}
	b = b[fixedLen:]
	size := addressLen(length)
	if size > len(b) {
		return Prefix{}, fmt.Errorf("a prefix of length %d needs %d octets, but %d are left", length, size, len(b))
	}
	var address [16]byte
	copy(address[:], b[:size])
	p.Prefix = netip.PrefixFrom(netip.AddrFrom16(address), length).Masked()
	p.Attributes, err = ospf.DecodeAttributes(b[size:], ospf.V3)
	return p, err
}

// addressLen is the length of a prefix on the wire: whole words of 32 bits (RFC 5340 A.4.1).
func addressLen(bits int) int { return (bits + 31) / 32 * 4 }

// typeNames are the names of types of LSAs (RFC 5340 A.4.2.1, RFC 8362 4).
var typeNames = map[uint16]string{0x2001: "router", 0x2002: "network", 0x2003: "inter-area-prefix", 0x2004: "inter-area-router", 0x4005: "as-external",
	0x2007: "nssa", 0x0008: "link", 0x2009: "intra-area-prefix", 0xa021: "e-router", 0xa022: "e-network", EInterAreaPrefix: "e-inter-area-prefix",
	0xa024: "e-inter-area-router", EASExternal: "e-as-external", EType7: "e-nssa", 0x8028: "e-link", EIntraAreaPrefix: "e-intra-area-prefix"}

// TypeName is the name of an LSA's type, or its number.
func TypeName(lsaType uint16) string {
	if name := typeNames[lsaType]; name != "" {
		return name
	}
	return fmt.Sprintf("type %#04x", lsaType)
}
