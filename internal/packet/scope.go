package packet

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

// Host is a host in its scope, at whose port it is.
type Host struct {
	Addr
	Scope Scope
}
