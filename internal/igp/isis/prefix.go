package isis

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// Types of TLVs of an LSP.
const (
	te4RouterID = 134 // RFC 5305 4.3
	te6RouterID = 140 // RFC 6119 4.1

	IPReach     = 135 // Extended IP Reachability, RFC 5305 4
	MTIPReach   = 235 // the same of a topology, RFC 5120 7.2
	IPv6Reach   = 236 // IPv6 Reachability, RFC 5308 2
	MTIPv6Reach = 237 // the same of a topology, RFC 5120 7.3
)

// Sub-TLVs of a prefix (RFC 7794 2).
const (
	flagsType   = 4
	source4Type = 11 // IPv4 Source Router ID
	source6Type = 12 // IPv6 Source Router ID
)

// Flags of a prefix in the first octet of the prefix attribute flags: bit 0 is the highest.
const (
	FlagX = 0x80 // external, RFC 7794
	FlagR = 0x40 // the prefix was leaked from another level, RFC 7794
	FlagN = 0x20 // the prefix identifies a node, RFC 7794
	FlagE = 0x10 // entropy label capability, RFC 9088
	FlagA = 0x08 // anycast, RFC 9352
	FlagP = 0x01 // proxy node capability, bit 7, draft-xiao-proxy 5.1
)

// RouterIDs are addresses of the LSP's router that are always reachable: its TE Router IDs. The zero Addr means none.
type RouterIDs struct{ IPv4, IPv6 netip.Addr }

// Prefix is a prefix of an LSP.
type Prefix struct {
	TLV      uint8  // IPReach, MTIPReach, IPv6Reach or MTIPv6Reach
	Topology uint16 // of the MT TLVs: 16 bits, the upper 4 reserved (RFC 5120)
	Metric   uint32
	Down     bool  // leaked from level 2 to level 1, or 1 to 1
	External bool  // IPv6: from another routing protocol
	Reserved uint8 // IPv6: the lower 5 bits of the control octet
	Prefix   netip.Prefix
	// Attributes is the value of the Prefix Attribute Flags sub-TLV, of any length; nil if there is none. Bits beyond its end are 0.
	Attributes []byte
	// Source4 and Source6 identify the router that originated the prefix, also when it was leaked. The zero Addr means none.
	Source4, Source6 netip.Addr
	// Unknown are all other sub-TLVs, in their order: also a second one of the above, or one of a wrong length. Receivers ignore them.
	Unknown []TLV
	// empty: the prefix says that it has sub-TLVs, and has none. It exists so that an encoder writes what a decoder read.
	empty bool
}

// P reports whether the P-flag is set: the originating router is the proxy of the prefix.
func (p *Prefix) P() bool { return p.flags()&FlagP != 0 }

func (p *Prefix) flags() byte {
	if len(p.Attributes) == 0 {
		return 0
	}
	return p.Attributes[0]
}

// Proxy returns the proxy of the prefix, if the P-flag is set and the LSP says how to reach the proxy (docs/decisions.md, "Discovery of proxies by IGPs"): the
// source router ID of the prefix's family, else of the other one; without either the TE Router ID of the LSP's router, unless the prefix was leaked,
// since then this router isn't the originator.
func (p *Prefix) Proxy(ids RouterIDs) (netip.Addr, bool) {
	if !p.P() {
		return netip.Addr{}, false
	}
	candidates := []netip.Addr{p.Source4, p.Source6, ids.IPv4, ids.IPv6}
	if p.Prefix.Addr().Is6() {
		candidates = []netip.Addr{p.Source6, p.Source4, ids.IPv6, ids.IPv4}
	}
	if p.Down || p.flags()&FlagR != 0 {
		candidates = candidates[:2]
	}
	for _, a := range candidates {
		if a.IsValid() && !a.IsUnspecified() {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// decodeTLVs decodes the TLVs of an LSP.
func (l *LSP) decodeTLVs(b []byte) error {
	for len(b) > 0 { // each round consumes at least two octets
		var t TLV
		var err error
		if t, b, err = next(b); err != nil {
			return fmt.Errorf("LSP %v: %w", l.ID, err)
		}
		switch t.Type {
		case IPReach, MTIPReach, IPv6Reach, MTIPv6Reach:
			if err := l.decodeReach(t); err != nil {
				return fmt.Errorf("LSP %v, TLV %d: %w", l.ID, t.Type, err)
			}
			continue
		case te4RouterID:
			if len(t.Value) == 4 && !l.RouterIDs.IPv4.IsValid() {
				l.RouterIDs.IPv4 = netip.AddrFrom4([4]byte(t.Value))
				continue
			}
		case te6RouterID:
			if len(t.Value) == 16 && !l.RouterIDs.IPv6.IsValid() {
				l.RouterIDs.IPv6 = netip.AddrFrom16([16]byte(t.Value))
				continue
			}
		}
		l.Unknown = append(l.Unknown, t)
	}
	return nil
}

// decodeReach decodes all prefixes of a TLV.
func (l *LSP) decodeReach(t TLV) error {
	b, topology := t.Value, uint16(0)
	if t.Type == MTIPReach || t.Type == MTIPv6Reach {
		if len(b) < 2 {
			return fmt.Errorf("it has %d octets; expected at least the 2 of the topology", len(b))
		}
		topology, b = binary.BigEndian.Uint16(b), b[2:]
		if len(b) == 0 {
			l.Unknown = append(l.Unknown, t)
			return nil
		}
	}
	for len(b) > 0 { // each round consumes at least five octets
		p := Prefix{TLV: t.Type, Topology: topology}
		rest, err := p.decode(b)
		if err != nil {
			return err
		}
		l.Prefixes, b = append(l.Prefixes, p), rest
	}
	return nil
}

// Bits of the control octet.
const (
	controlDown      = 0x80
	control4SubTLVs  = 0x40
	control4Length   = 0x3f
	control6External = 0x40
	control6SubTLVs  = 0x20
	control6Reserved = 0x1f
)

// isIPv6 reports whether the TLV has IPv6 prefixes.
func (p *Prefix) isIPv6() bool { return p.TLV == IPv6Reach || p.TLV == MTIPv6Reach }

// decode decodes a prefix and returns what follows it.
func (p *Prefix) decode(b []byte) (rest []byte, err error) {
	header, longest := 5, 32
	if p.isIPv6() {
		header, longest = 6, 128
	}
	if len(b) < header {
		return nil, fmt.Errorf("%d octets are left where a prefix begins; expected at least %d", len(b), header)
	}
	p.Metric = binary.BigEndian.Uint32(b)
	control := b[4]
	p.Down = control&controlDown != 0
	bits, sub := int(control&control4Length), control&control4SubTLVs != 0
	if p.isIPv6() {
		bits, sub, p.External, p.Reserved = int(b[5]), control&control6SubTLVs != 0, control&control6External != 0, control&control6Reserved
	}
	size := (bits + 7) / 8
	if b = b[header:]; bits > longest || size > len(b) {
		return nil, fmt.Errorf("a prefix has the length %d, and %d octets are left; expected a length of at most %d, and %d octets", bits, len(b), longest, size)
	}
	var address [16]byte
	copy(address[:], b[:size])
	p.Prefix = netip.PrefixFrom(netip.AddrFrom16(address), bits)
	if !p.isIPv6() {
		p.Prefix = netip.PrefixFrom(netip.AddrFrom4([4]byte(address[:])), bits)
	}
	p.Prefix = p.Prefix.Masked()
	if b = b[size:]; !sub {
		return b, nil
	}
	if len(b) == 0 || len(b)-1 < int(b[0]) {
		return nil, fmt.Errorf("the sub-TLVs of %v don't end within the TLV: %d octets are left", p.Prefix, len(b))
	}
	end := 1 + int(b[0])
	return b[end:], p.decodeSubTLVs(b[1:end])
}

func (p *Prefix) decodeSubTLVs(b []byte) error {
	p.empty = len(b) == 0
	for len(b) > 0 { // each round consumes at least two octets
		var t TLV
		var err error
		if t, b, err = next(b); err != nil {
			return fmt.Errorf("sub-TLVs of %v: %w", p.Prefix, err)
		}
		switch {
		case t.Type == flagsType && p.Attributes == nil:
			p.Attributes = t.Value
		case t.Type == source4Type && len(t.Value) == 4 && !p.Source4.IsValid():
			p.Source4 = netip.AddrFrom4([4]byte(t.Value))
		case t.Type == source6Type && len(t.Value) == 16 && !p.Source6.IsValid():
			p.Source6 = netip.AddrFrom16([16]byte(t.Value))
		default:
			p.Unknown = append(p.Unknown, t)
		}
	}
	return nil
}
