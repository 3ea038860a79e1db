package packet

import "slices"

// TunnelKind is a kind of tunnel that Parse follows. It follows one IP tunnel (any kind but MPLS) and one MPLS label stack, in either order,
// so at most two levels.
type TunnelKind uint8

const (
	NoTunnel TunnelKind = iota
	// VXLAN is an Ethernet frame in UDP to port 4789 (RFC 7348), with a VXLAN Network Identifier.
	VXLAN
	// GRE has an IP packet, an Ethernet frame (RFC 1701; NVGRE, RFC 7637) or a label stack (RFC 4023) after a GRE header (RFC 2784, RFC 2890).
	GRE
	// IPInIP is an IP packet directly in another one, of any two versions (RFC 2003, RFC 2473, RFC 4213).
	IPInIP
	// MPLS is an IP packet or a pseudowire's Ethernet frame (RFC 4448) below a label stack (RFC 3032), which is directly in a frame, in GRE or
	// in IP (RFC 4023).
	MPLS
	// SRv6 is an IP packet or an Ethernet frame behind a Segment Routing Header (RFC 8754), or an Ethernet frame directly in IPv6, as with a
	// single segment (RFC 8986 5.3). An IP packet directly in IPv6 is IPInIP: nothing distinguishes them.
	SRv6
	tunnelKinds
)

var tunnelNames = [tunnelKinds]string{"", "vxlan", "gre", "ip-in-ip", "mpls", "srv6"}

// TunnelNames are the names of all kinds of tunnels.
func TunnelNames() []string { return tunnelNames[NoTunnel+1:] }

// TunnelKindOf is the kind with a name; NoTunnel of any other.
func TunnelKindOf(name string) TunnelKind {
	return TunnelKind(max(slices.Index(tunnelNames[:], name), 0))
}

// String returns the kind as in reports; "" for NoTunnel.
func (k TunnelKind) String() string {
	if int(k) >= len(tunnelNames) {
		return "unknown"
	}
	return tunnelNames[k]
}

// Tunnel identifies the tunnel that a packet is in.
type Tunnel struct {
	// ID is the VXLAN Network Identifier (24 bits), the whole GRE key (32 bits; of NVGRE the VSID and the FlowID), 0 without one, or the bottom
	// MPLS label (20 bits; not an entropy label, RFC 6790); 0 of the other kinds.
	ID   uint32
	VLAN Tag // the first VLAN tag of the Ethernet frame inside; 0 without
	Kind TunnelKind
	// opaque: the domain filter doesn't look into the tunnel.
	opaque bool
}

// carried is what a tunnel carries.
type carried uint8

const (
	nothing    carried = iota // there is no tunnel
	unreadable                // there is one, whose header can't be read or names anything else
	ipPacket
	ethernetFrame
	labelStack
)

// payload is what a tunnel carries.
type payload struct {
	what    carried
	at, end int // offsets in the frame; end may be beyond the capture
	tunnel  Tunnel
	void    bool // the tunnel's end discards it
}

// payloadOf finds the payload of an IP tunnel behind a parsed IP packet's upper-layer header, p.L4, which must not be 0.
func payloadOf(b []byte, p *Parsed) payload {
	l := payload{at: int(p.L4), end: int(p.IPEnd)}
	b = b[:min(len(b), l.end)]
	switch p.Proto {
	case ProtoIPv4, ProtoIPv6:
		l.what, l.tunnel.Kind = ipPacket, IPInIP
		if segments(b, p) {
			l.tunnel.Kind = SRv6
		}
	case ProtoEthernet:
		if p.Family == 6 {
			l.what, l.tunnel = ethernetFrame, Tunnel{Kind: SRv6, opaque: true}
		}
	case protoMPLS:
		l.what = labelStack
	case ProtoGRE:
		l.afterGRE(b)
	case ProtoUDP:
		if p.DstPort == vxlanPort {
			l.afterVXLAN(b)
		}
	}
	return l
}

const etherTypeBridging = 0x6558 // an Ethernet frame in GRE (RFC 1701)

// byEtherType is what follows a tunnel header that names it by an EtherType.
func byEtherType(etherType uint16) carried {
	switch etherType {
	case EtherTypeIPv4, EtherTypeIPv6:
		return ipPacket
	case etherTypeBridging:
		return ethernetFrame
	case EtherTypeMPLS, EtherTypeMPLSUp:
		return labelStack
	}
	return unreadable
}

// segments reports whether a parsed IP packet has a Segment Routing Header (RFC 8754 2).
func segments(b []byte, p *Parsed) bool {
	const srh = 4 // Routing Type
	if p.Family == 6 {
		for next, header := range extHeaders(b, p) {
			if next == ProtoRouting && header[2] == srh {
				return true
			}
		}
	}
	return false
}

// levels are the levels of tunnels that may still follow.
type levels uint8

const (
	ipTunnel levels = 1 << iota
	labels
)

// mayCarry reports whether parseTunnel can find anything: it keeps Parse short for other frames.
func mayCarry(p *Parsed) bool {
	switch p.Kind {
	case Other:
		return p.EtherType == EtherTypeMPLS || p.EtherType == EtherTypeMPLSUp
	case IP:
		switch p.Proto {
		case ProtoUDP:
			return p.DstPort == vxlanPort
		case ProtoIPv4, ProtoIPv6, ProtoGRE, ProtoEthernet, protoMPLS:
			return p.L4 != 0
		}
	}
	return false
}

// parseTunnel replaces p, the outermost headers of a frame of the given length, by the RoCEv2 packet in its tunnel, if there is one.
func parseTunnel(b []byte, frameLen int, p *Parsed) {
	var in Parsed
	if !inTunnel(b, 0, frameLen, p, ipTunnel|labels, &in) {
		return
	}
	in.Tags, in.OuterTag, in.InnerTag, in.EtherType, in.Len = p.Tags, p.OuterTag, p.InnerTag, p.EtherType, p.Len
	*p = in
}

// inTunnel finds the RoCEv2 packet in a tunnel and describes it in p. around describes the tunnel's own headers: those of the frame, or of
// the packet, from start to end. If there is none, p is undefined.
func inTunnel(b []byte, start, end int, around *Parsed, left levels, p *Parsed) bool {
	var l payload
	switch {
	case !mayCarry(around):
		return false
	case around.Kind == Other:
		l = payload{what: labelStack, at: start + EthernetLen + VLANTagLen*int(around.Tags), end: end}
	case left&ipTunnel == 0:
		return false
	default:
		l = payloadOf(b, around)
		left &^= ipTunnel
	}
	found := false
	switch {
	case l.void:
	case l.what == labelStack:
		found = left&labels != 0 && l.belowLabels(b, left&^labels, p)
	case l.what > unreadable:
		found = l.holds(b, left, p)
	}
	if found && around.Kind == IP { // the outermost IP header is set last
		p.Outer, p.DSCP, p.ECN = around.L3, around.DSCP, around.ECN
	}
	return found
}

// holds finds the RoCEv2 packet in a payload that is an IP packet or an Ethernet frame, and in a further tunnel there.
func (l *payload) holds(b []byte, left levels, p *Parsed) bool {
	l.parse(b, p)
	if p.Kind == RoCEv2 {
		p.tunnel = l.tunnel
		p.tunnel.VLAN = p.OuterTag
		return true
	}
	around := *p
	if left == 0 || !inTunnel(b, l.at, l.end, &around, left, p) {
		return false
	}
	p.tunnel.opaque = true
	return true
}

// parse reads a payload's own headers.
func (l *payload) parse(b []byte, p *Parsed) {
	*p = Parsed{}
	b = b[:min(len(b), l.end)]
	if l.what == ethernetFrame {
		parseFrame(b, l.at, l.end, p)
	} else {
		parsePacket(b, l.at, l.end, p)
	}
}
