package packet

import "fmt"

// Scope is where a packet was seen, in one word: its ingress port, and its VLAN tags or its tunnel. Tenants may use the same addresses, QPs and
// UDP ports behind different gateway ports, in different VLANs and in different tunnels. So a table that a packet can reach has the scope in
// its key. The word is the last one of a flow's key, in the memory of a little-endian processor.
//
//	63        48 47       32 31       16 15        0
//	+-----------+-----------+-----------+-----------+
//	|  tunnel   | inner Tag | outer Tag |   port    |  in a tunnel the tags are the upper and the lower half of its identifier
//	+-----------+-----------+-----------+-----------+
//
// The tunnel is 0 outside any:
//
//	15    13  12  11            0
//	+-------+----+---------------+
//	| kind  | in |      VID      |  in: the VID is that of the frame inside, otherwise that of the whole frame
//	+-------+----+---------------+
type Scope uint64

const (
	scopeOuter   = 16 // shifts
	scopeInner   = 32
	scopeTunnel  = 48
	tunnelKind   = scopeTunnel + 13
	tunnelInside = 1 << (scopeTunnel + 12)
	portMask     = 1<<scopeOuter - 1
)

// A scope has 3 bits for the kind of tunnel: with more kinds this doesn't compile.
const _ = uint(1<<(64-tunnelKind) - tunnelKinds)

// ScopeOf is the scope of a packet that came in by a port. In a tunnel one VLAN counts: the first one of the Ethernet frame inside; if that
// has no tag, the first one of the whole frame.
func ScopeOf(port uint16, p *Parsed) Scope {
	if p.Encapsulated() {
		return ScopeInTunnel(port, p.tunnel, p.OuterTag)
	}
	return ScopeInVLAN(port, p.OuterTag, p.InnerTag)
}

// ScopeInVLAN is the scope of packets outside any tunnel.
func ScopeInVLAN(port uint16, outer, inner Tag) Scope {
	return Scope(port) | Scope(outer)<<scopeOuter | Scope(inner)<<scopeInner
}

// ScopeInTunnel is the scope of packets in a tunnel; outer is the first VLAN tag of the whole frame.
func ScopeInTunnel(port uint16, t Tunnel, outer Tag) Scope {
	s := Scope(port) | Scope(t.ID)<<scopeOuter | Scope(t.Kind)<<tunnelKind
	if t.VLAN != 0 {
		return s | tunnelInside | Scope(t.VLAN.VID())<<scopeTunnel
	}
	return s | Scope(outer.VID())<<scopeTunnel
}

// Port is the ingress port.
func (s Scope) Port() uint16 { return uint16(s) }

// At is the same VLAN or tunnel at another port.
func (s Scope) At(port int) Scope { return s&^portMask | Scope(uint16(port)) }

// Tagged reports whether the scope is a VLAN or a tunnel. A packet in none may come from a network that routes between VLANs.
func (s Scope) Tagged() bool { return s&^portMask != 0 }

// Encapsulated reports whether the scope is a tunnel.
func (s Scope) Encapsulated() bool { return s>>scopeTunnel != 0 }

// Tunnel returns the kind and the identifier of the tunnel (Tunnel.ID), and the VID that distinguishes flows there, 0 without one; NoTunnel
// outside any tunnel.
func (s Scope) Tunnel() (kind TunnelKind, id uint32, vid uint16) {
	if !s.Encapsulated() {
		return NoTunnel, 0, 0
	}
	return TunnelKind(s >> tunnelKind), uint32(s >> scopeOuter), uint16(s>>scopeTunnel) & vidMask
}

// Named is the scope as an operator names it: without the port, and without the level at which the VID in a tunnel was found.
func (s Scope) Named() Scope {
	s &^= portMask
	if s.Encapsulated() {
		s &^= tunnelInside
	}
	return s
}

// Tenant is the part of a scope that separates tenants, which both directions of a connection have in common by default: the VLAN, the VXLAN
// Network Identifier, the kind of tunnel. A label belongs to one direction (RFC 3031 3.1), and so may a GRE key (RFC 2890 2.1), so neither
// separates tenants.
func (s Scope) Tenant() Scope {
	if kind := TunnelKind(s >> tunnelKind); kind == MPLS || kind == GRE {
		s &^= (1<<(scopeTunnel-scopeOuter) - 1) << scopeOuter
	}
	return s
}

// Host is a host in its scope, at whose port it is.
type Host struct {
	Addr
	Scope Scope
}

// Tag identifies a frame's VLAN by VID and TPID. Two tags with the same VID and different TPIDs are different VLANs (IEEE 802.1Q 9.5).
// Priority and DEI are not included. The zero Tag is no tag, unlike a priority tag, whose VID is 0.
//
//	15    12 11            0
//	+-------+---------------+
//	| which |      VID      |  which: 0 none, 1 TPID 0x8100, 2 0x88A8, 3 0x9100
//	+-------+---------------+
type Tag uint16

const (
	tagWhich = 12 // shift
	vidMask  = 1<<tagWhich - 1
)

// tpids are the tag protocol identifiers that a Tag distinguishes.
var tpids = [...]uint16{0, EtherTypeCTag, EtherTypeSTag, EtherTypeQinQ}

// MakeTag returns the Tag of a TPID and tag control information, of which it uses the VID in the low 12 bits. For any other TPID than the
// three it returns 0.
func MakeTag(tpid, tci uint16) Tag {
	switch tpid {
	case EtherTypeCTag:
		return 1<<tagWhich | Tag(tci&vidMask)
	case EtherTypeSTag:
		return 2<<tagWhich | Tag(tci&vidMask)
	case EtherTypeQinQ:
		return 3<<tagWhich | Tag(tci&vidMask)
	}
	return 0
}

// VID is the VLAN ID, 0 to 4095; 0 for a priority tag, and for no tag.
func (t Tag) VID() uint16 { return uint16(t & vidMask) }

// TPID is the tag protocol identifier: 0x8100, 0x88A8 or 0x9100, or 0 for no tag.
func (t Tag) TPID() uint16 { return tpids[t>>tagWhich%Tag(len(tpids))] }

// String gives "0x88a8:100", and "none" for no tag.
func (t Tag) String() string {
	if t == 0 {
		return "none"
	}
	return fmt.Sprintf("%#04x:%d", t.TPID(), t.VID())
}
