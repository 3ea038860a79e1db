// Package ospfv2 decodes and encodes the OSPFv2 Extended Prefix Opaque LSA (RFC 7684 2), which carries the P-flag: a router that is the proxy of
// a prefix of senders sets it (draft-xiao-proxy 5.2). The package is pure. All numbers on the wire are big endian.
//
// That an area border router preserves the flag is that router's matter; cnpgate is none.
package ospfv2

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/cnpgate/cnpgate/internal/igp/ospf"
)

// Types of opaque LSAs, by the scope of flooding (RFC 5250 3).
const (
	LinkScope = 9
	AreaScope = 10
	ASScope   = 11
)

// OpaqueType is the opaque type of the Extended Prefix Opaque LSA (RFC 7684 6.1).
const OpaqueType = 7

// Type is the type of an LSA; the upper octet of ospf.LSA's Type has the options.
func Type(l *ospf.LSA) uint8 { return uint8(l.Type) }

// IsExtendedPrefix reports whether an LSA is an Extended Prefix Opaque LSA.
func IsExtendedPrefix(l *ospf.LSA) bool {
	return Type(l) >= LinkScope && Type(l) <= ASScope && l.ID>>24 == OpaqueType
}

// OpaqueID is the opaque ID of an opaque LSA: 24 bits.
func OpaqueID(l *ospf.LSA) uint32 { return l.ID & 0xffffff }

// LinkStateID is the Link State ID of an Extended Prefix Opaque LSA with an opaque ID of 24 bits.
func LinkStateID(opaque uint32) uint32 { return OpaqueType<<24 | opaque&0xffffff }

// RouteType says which kind of route an Extended Prefix TLV is about (RFC 7684 2.1).
type RouteType uint8

// The types. With Unspecified the attributes apply whatever the route is.
const (
	Unspecified  RouteType = 0
	IntraArea    RouteType = 1
	InterArea    RouteType = 3
	ASExternal   RouteType = 5
	NSSAExternal RouteType = 7
)

var routeTypes = map[RouteType]string{Unspecified: "unspecified", IntraArea: "intra-area", InterArea: "inter-area", ASExternal: "as-external",
	NSSAExternal: "nssa-external"}

// String is the name of a type, or its number.
func (t RouteType) String() string {
	if name := routeTypes[t]; name != "" {
		return name
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Prefix is an Extended Prefix TLV for IPv4 unicast (RFC 7684 2.1).
type Prefix struct {
	RouteType RouteType
	Flags     uint8        // A 0x80, N 0x40
	Prefix    netip.Prefix // IPv4, without host bits
	ospf.Attributes
}

// LSA is the body of an Extended Prefix Opaque LSA.
type LSA struct {
	Prefixes []Prefix
	// Unknown are TLVs of other types, and prefixes of other address families than IPv4 unicast. Receivers ignore them.
	Unknown []ospf.TLV
}

const (
	prefixType  = 1 // the Extended Prefix TLV
	fixedLen    = 8 // route type, prefix length, address family, flags, address
	ipv4Unicast = 0
)

// Decode decodes the body of an Extended Prefix Opaque LSA, which the result shares. An error means that the LSA has to be ignored.
func Decode(body []byte) (l LSA, err error) {
	for len(body) > 0 { // each round consumes at least four octets
		var t ospf.TLV
		if t, body, err = ospf.NextTLV(body); err != nil {
			return LSA{}, fmt.Errorf("extended prefix LSA: %w", err)
		}
		if t.Type != prefixType || len(t.Value) > 2 && t.Value[2] != ipv4Unicast {
			l.Unknown = append(l.Unknown, t)
			continue
		}
		p, err := decodePrefix(t.Value)
		if err != nil {
			return LSA{}, fmt.Errorf("extended prefix TLV: %w", err)
		}
		l.Prefixes = append(l.Prefixes, p)
	}
	return l, nil
}

func decodePrefix(b []byte) (p Prefix, err error) {
	if len(b) < fixedLen {
		return Prefix{}, fmt.Errorf("it has %d octets; expected at least %d", len(b), fixedLen)
	}
	length := int(b[1])
	if length > 32 {
		return Prefix{}, fmt.Errorf("the prefix length is %d; expected at most 32", length)
	}
	p.RouteType, p.Flags = RouteType(b[0]), b[3]
	p.Prefix = netip.PrefixFrom(netip.AddrFrom4([4]byte(b[4:])), length).Masked()
	p.Attributes, err = ospf.DecodeAttributes(b[fixedLen:], ospf.V2)
	return p, err
}

// Append appends the body of the LSA: prefixes, then unknown TLVs.
func (l *LSA) Append(b []byte) ([]byte, error) {
	for i := range l.Prefixes {
		p := &l.Prefixes[i]
		if !p.Prefix.IsValid() || !p.Prefix.Addr().Is4() {
			return nil, fmt.Errorf("%v is no IPv4 prefix", p.Prefix)
		}
		value := []byte{byte(p.RouteType), byte(p.Prefix.Bits()), ipv4Unicast, p.Flags}
		value = append(value, p.Prefix.Masked().Addr().AsSlice()...)
		value, err := p.Append(value, ospf.V2)
		if err != nil {
			return nil, fmt.Errorf("prefix %v: %w", p.Prefix, err)
		}
		if b, err = appendTLV(b, ospf.TLV{Type: prefixType, Value: value}); err != nil {
			return nil, fmt.Errorf("prefix %v: %w", p.Prefix, err)
		}
	}
	for _, t := range l.Unknown {
		var err error
		if b, err = appendTLV(b, t); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func appendTLV(b []byte, t ospf.TLV) ([]byte, error) {
	if len(t.Value) > 1<<16-1 {
		return nil, fmt.Errorf("TLV %d has %d octets; expected at most 65535", t.Type, len(t.Value))
	}
	return ospf.AppendTLV(b, t), nil
}

// OpaqueLSA is an LSA of AS scope that announces prefixes. The router that floods it fills in age, advertising router and sequence number.
func OpaqueLSA(opaque uint32, l *LSA) (ospf.LSA, error) {
	body, err := l.Append(nil)
	return ospf.LSA{Type: ASScope, ID: LinkStateID(opaque), Router: netip.IPv4Unspecified(), Body: body}, err
}

// typeNames are the names of types of LSAs.
var typeNames = map[uint8]string{1: "router", 2: "network", 3: "summary", 4: "asbr-summary", 5: "as-external", 7: "nssa-external",
	LinkScope: "opaque-link", AreaScope: "opaque-area", ASScope: "opaque-as"}

// TypeName is the name of an LSA's type, or its number.
func TypeName(l *ospf.LSA) string {
	if name := typeNames[Type(l)]; name != "" {
		return name
	}
	return fmt.Sprintf("type %d", Type(l))
}

// IDString is a Link State ID in the form of an IPv4 address.
func IDString(id uint32) string {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, id))).String()
}
