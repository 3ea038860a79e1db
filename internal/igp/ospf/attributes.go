package ospf

import (
	"fmt"
	"net/netip"
)

// Version is the version of OSPF, which decides the numbers of sub-TLVs.
type Version uint8

// The versions.
const (
	V2 Version = 2
	V3 Version = 3
)

// Attributes are the sub-TLVs of a prefix that cnpgate knows, and the others unchanged.
type Attributes struct {
	// Flags is the value of the Prefix Attribute Flags sub-TLV (RFC 9792 2): a multiple of four octets, bit 0 is the highest of the first
	// octet. nil if there is no such sub-TLV; bits beyond its end are 0.
	Flags []byte
	// Routers are the Router IDs of the routers that originated the prefix: Prefix Source OSPF Router-ID sub-TLVs (RFC 9084 2.1).
	Routers []netip.Addr
	// Addresses are reachable addresses of these routers: Prefix Source Router Address sub-TLVs (RFC 9084 2.2), IPv4 or IPv6.
	Addresses []netip.Addr
	// Unknown are all other sub-TLVs, in their order: also a second Flags, and addresses with a wrong length. Receivers ignore them.
	Unknown []TLV
}

// pFlag is bit 2 of the flags in the first octet (draft-xiao-proxy 5.2, 5.3).
const pFlag = 0x20

// P reports whether the P-flag is set: the originating router is the proxy of the prefix.
func (a *Attributes) P() bool { return len(a.Flags) > 0 && a.Flags[0]&pFlag != 0 }

// SetP sets the P-flag.
func (a *Attributes) SetP() {
	if len(a.Flags) == 0 {
		a.Flags = make([]byte, flagsUnit)
	}
	a.Flags[0] |= pFlag
}

// flagsUnit is what the length of the flags is a multiple of (RFC 9792 2).
const flagsUnit = 4

// numbers are the types of the sub-TLVs.
type numbers struct{ flags, router, address uint16 }

// numbers returns those of the registries "OSPFv2 Extended Prefix TLV Sub-TLVs" and "OSPFv3 Extended-LSA Sub-TLVs".
func (v Version) numbers() numbers {
	if v == V3 {
		return numbers{flags: 37, router: 27, address: 28}
	}
	return numbers{flags: 11, router: 4, address: 5}
}

// DecodeAttributes decodes sub-TLVs to the end of b. The result shares b. An error means that the whole LSA is malformed and has to be
// ignored: RFC 9792 2 demands that for flags of a wrong length.
func DecodeAttributes(b []byte, v Version) (a Attributes, err error) {
	n := v.numbers()
	for len(b) > 0 { // each round consumes at least four octets
		var t TLV
		if t, b, err = NextTLV(b); err != nil {
			return Attributes{}, fmt.Errorf("sub-TLVs of a prefix: %w", err)
		}
		if t.Type == n.flags && len(t.Value)%flagsUnit != 0 {
			return Attributes{}, fmt.Errorf("prefix attribute flags (sub-TLV %d) have %d octets; RFC 9792 demands a multiple of 4, and to ignore the LSA otherwise",
				n.flags, len(t.Value))
		}
		if !a.known(t, n) {
			a.Unknown = append(a.Unknown, t)
		}
	}
	return a, nil
}

// known takes the value of a sub-TLV that is known and valid.
func (a *Attributes) known(t TLV, n numbers) bool {
	switch t.Type {
	case n.flags:
		if a.Flags != nil {
			return false // RFC 9792 2: the first one counts
		}
		a.Flags = t.Value
		return true
	case n.router:
		id, ok := netip.AddrFromSlice(t.Value)
		if !ok || !id.Is4() || id.IsUnspecified() { // RFC 9084 2.1: a Router ID of 0 is ignored
			return false
		}
		a.Routers = append(a.Routers, id)
		return true
	case n.address:
		address, ok := netip.AddrFromSlice(t.Value)
		if !ok {
			return false
		}
		a.Addresses = append(a.Addresses, address)
		return true
	}
	return false
}

// Append appends the sub-TLVs. It returns an error if a value can't be encoded.
func (a *Attributes) Append(b []byte, v Version) ([]byte, error) {
	n := v.numbers()
	if len(a.Flags)%flagsUnit != 0 || len(a.Flags) > maxValue {
		return nil, fmt.Errorf("prefix attribute flags have %d octets; expected a multiple of 4, at most %d", len(a.Flags), maxValue&^3)
	}
	if a.Flags != nil {
		b = AppendTLV(b, TLV{n.flags, a.Flags})
	}
	for _, id := range a.Routers {
		if !id.Is4() {
			return nil, fmt.Errorf("%v is no Router ID; expected four octets", id)
		}
		b = AppendTLV(b, TLV{n.router, id.AsSlice()})
	}
	for _, address := range a.Addresses {
		if !address.IsValid() {
			return nil, fmt.Errorf("a router's address is empty; expected an IPv4 or IPv6 address")
		}
		b = AppendTLV(b, TLV{n.address, address.AsSlice()})
	}
	for _, t := range a.Unknown {
		if len(t.Value) > maxValue {
			return nil, fmt.Errorf("sub-TLV %d has %d octets; expected at most %d", t.Type, len(t.Value), maxValue)
		}
		b = AppendTLV(b, t)
	}
	return b, nil
}

// Proxy returns the proxy of the prefix, if the P-flag is set and the LSA says how to reach the proxy (docs/decisions.md, "Discovery of proxies by IGPs"): the
// lowest source router address; without one, router as an address, if family4. router is the advertising router; the LSA of an area
// border router has the originator's ID in Routers.
func (a *Attributes) Proxy(router netip.Addr, family4 bool) (proxy netip.Addr, ok bool) {
	if !a.P() {
		return netip.Addr{}, false
	}
	if proxy, ok = lowest(a.Addresses); ok || !family4 {
		return proxy, ok
	}
	if id, ok := lowest(a.Routers); ok {
		return id, true
	}
	return router, router.IsValid() && !router.IsUnspecified()
}

// lowest is the lowest address: any router gets the same result from the same LSA, whatever the order of its sub-TLVs.
func lowest(all []netip.Addr) (lowest netip.Addr, ok bool) {
	for _, a := range all {
		if !a.IsUnspecified() && (!ok || a.Less(lowest)) {
			lowest, ok = a, true
		}
	}
	return lowest, ok
}
