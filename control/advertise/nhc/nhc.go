// Package nhc encodes and decodes the BGP Next Hop Dependent Characteristics attribute (draft-ietf-idr-nhc 2), and in it the Proxy Node Capability
// (PNC) characteristic (draft-xiao-proxy 5.4). It is pure.
//
// The value of the attribute, in network byte order:
//
//	AFI (2 octets), SAFI (1), length of the next hop (1), next hop, then any number of characteristics: code (2), length (2), value
//
// The next hop is the one of the route that carries the attribute. A router that changes the next hop and doesn't know the attribute passes it on
// unchanged; by the difference a receiver recognizes that the characteristics are not those of the present next hop, and ignores the attribute.
package nhc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

const (
	// Type is the attribute's type code.
	Type = 39
	// Flags are those with which the attribute is originated: optional and transitive. A router that doesn't know the attribute adds Partial.
	Flags = 0xC0
	// The bits of an attribute's flags (RFC 4271 4.3).
	Optional, Transitive, Partial, Extended = 0x80, 0x40, 0x20, 0x10

	headerSize = 4 // AFI, SAFI and length of the next hop
	tlvSize    = 4 // code and length of a characteristic
	// MaxSize bounds the value of an attribute, in bytes: that of a BGP message without extended messages.
	MaxSize = 4096
)

// Family is an address family and a subsequent one, as in a BGP message.
type Family struct {
	AFI  uint16
	SAFI uint8
}

// The families that the proxy's prefixes are of.
var (
	IPv4Unicast = Family{1, 1}
	IPv6Unicast = Family{2, 1}
)

// FamilyOf is the unicast family of a prefix.
func FamilyOf(p netip.Prefix) Family {
	if p.Addr().Is4() {
		return IPv4Unicast
	}
	return IPv6Unicast
}

// Attribute is the value of an attribute.
type Attribute struct {
	Family  Family
	NextHop netip.Addr // of the route
	// Characteristics are in the order of the attribute. Decode lets Value refer to its argument.
	Characteristics []Characteristic
}

// Characteristic is one TLV.
type Characteristic struct {
	Code  uint16
	Value []byte // at most 65535 bytes
}

// PNC is the characteristic that names a proxy. The draft leaves its code open (TBD2).
func PNC(code uint16, proxy netip.Addr) Characteristic { return Characteristic{code, proxy.AsSlice()} }

// Append appends the attribute's value. Characteristics must be in ascending order of their codes, and no two may be equal; the next hop must be an
// address without zone. The error says which rule is broken.
func (a *Attribute) Append(to []byte) ([]byte, error) {
	if !a.NextHop.IsValid() || a.NextHop.Zone() != "" {
		return nil, fmt.Errorf("next hop %s; expected an IPv4 or IPv6 address without zone", a.NextHop)
	}
	start, hop := len(to), a.NextHop.AsSlice()
	to = binary.BigEndian.AppendUint16(to, a.Family.AFI)
	to = append(to, a.Family.SAFI, uint8(len(hop)))
	to = append(to, hop...)
	for i, c := range a.Characteristics {
		if i > 0 && !precedes(&a.Characteristics[i-1], &c) {
			return nil, fmt.Errorf("characteristic %d follows %d; expected ascending codes, and none twice", c.Code, a.Characteristics[i-1].Code)
		}
		to = binary.BigEndian.AppendUint16(to, c.Code)
		to = binary.BigEndian.AppendUint16(to, uint16(len(c.Value)))
		if to = append(to, c.Value...); len(to)-start > MaxSize {
			return nil, fmt.Errorf("the attribute is longer than %d bytes", MaxSize)
		}
	}
	return to, nil
}

// precedes reports whether b may follow a. Characteristics of one code follow each other only if their values differ.
func precedes(a, b *Characteristic) bool {
	return a.Code < b.Code || a.Code == b.Code && string(a.Value) != string(b.Value)
}

// The ways in which an attribute is malformed. It is then discarded, and the route and the session remain (RFC 7606 2, attribute discard).
var (
	ErrShort   = errors.New("the attribute is shorter than its header of 4 octets and the next hop")
	ErrNextHop = errors.New("the next hop is not 4, 16 or 32 octets long")
	ErrTLV     = errors.New("a characteristic is longer than what remains of the attribute")
	ErrFlags   = errors.New("the attribute is not flagged as optional and transitive")
)

// CheckFlags reports an error unless the flags are those of an optional transitive attribute. Partial and Extended Length may be set or not.
func CheckFlags(flags uint8) error {
	if flags&(Optional|Transitive) != Optional|Transitive {
		return ErrFlags
	}
	return nil
}

// Decode reads an attribute's value. It accepts characteristics in any order, unknown ones, and equal ones (draft-ietf-idr-nhc 2.1, 2.3). A next hop
// of 32 octets is a global and a link-local address (RFC 2545 3); the global one counts. The error is one of those above.
func Decode(value []byte) (Attribute, error) {
	var a Attribute
	if len(value) < headerSize || len(value) < headerSize+int(value[3]) {
		return a, ErrShort
	}
	a.Family = Family{binary.BigEndian.Uint16(value), value[2]}
	hop, rest := value[headerSize:headerSize+int(value[3])], value[headerSize+int(value[3]):]
	switch len(hop) {
	case 4, 16:
		a.NextHop, _ = netip.AddrFromSlice(hop)
	case 32:
		a.NextHop, _ = netip.AddrFromSlice(hop[:16])
	default:
		return a, ErrNextHop
	}
	for len(rest) > 0 {
		if len(rest) < tlvSize {
			return a, ErrTLV
		}
		code, size := binary.BigEndian.Uint16(rest), int(binary.BigEndian.Uint16(rest[2:]))
		if rest = rest[tlvSize:]; len(rest) < size {
			return a, ErrTLV
		}
		a.Characteristics = append(a.Characteristics, Characteristic{code, rest[:size:size]})
		rest = rest[size:]
	}
	return a, nil
}

// Proxy returns the address in the first PNC characteristic that has one; ok is false if there is none. A characteristic that isn't 4 or 16 octets
// long, or whose address no host can have, is malformed, and is passed over (draft-ietf-idr-nhc 2.4).
func (a *Attribute) Proxy(code uint16) (proxy netip.Addr, ok bool) {
	for i := range a.Characteristics {
		c := &a.Characteristics[i]
		if c.Code != code {
			continue
		}
		if proxy, ok := netip.AddrFromSlice(c.Value); ok && isHost(proxy) {
			return proxy, true
		}
	}
	return netip.Addr{}, false
}

// isHost reports whether packets can be sent to an address across a network.
func isHost(a netip.Addr) bool {
	switch {
	case a.Is4In6(), a.IsUnspecified(), a.IsMulticast(), a.IsLoopback(), a.IsLinkLocalUnicast():
		return false
	}
	return !a.Is4() || a.As4()[0] != 0 && a.As4()[0] < 240
}
