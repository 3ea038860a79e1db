package packet

// Who reads a capture looks into more tunnels than a gateway, which forwards at line rate: those that the domain filter knows, too (unfollowed.go).

// ParseOverlay replaces p, in which Parse has read a UDP datagram of b, by the RoCEv2 packet that it carries in VXLAN on the old port, VXLAN-GPE, Geneve, or
// GRE or MPLS in UDP. Otherwise it leaves p as it is.
func ParseOverlay(b []byte, p *Parsed) {
	if p.Kind != IP || p.Proto != ProtoUDP || p.L4 == 0 {
		return
	}
	l, found := udpPayload(b, p), false
	var in Parsed
	switch {
	case l.void:
	case l.what == labelStack:
		found = l.belowLabels(b, ipTunnel, &in)
	case l.what > unreadable && l.tunnel.Kind != NoTunnel:
		found = l.holds(b, labels, &in)
	}
	if found {
		in.Outer, in.DSCP, in.ECN = p.L3, p.DSCP, p.ECN
		in.Tags, in.OuterTag, in.InnerTag, in.EtherType, in.Len = p.Tags, p.OuterTag, p.InnerTag, p.EtherType, p.Len
		*p = in
	}
}

// InTunnel reports whether a packet that Parse has read, and that isn't RoCEv2, is a tunnel's.
func InTunnel(b []byte, p *Parsed) bool { return anyPayload(b, p).what != nothing }

// InsideTunnel is the offset of what is in the outermost tunnel of a frame that Parse has read, and that isn't RoCEv2: an Ethernet frame or an IP packet. ok: one
// of them is.
func InsideTunnel(b []byte, p *Parsed) (at int, frame, ok bool) {
	l := anyPayload(b, p)
	if p.Kind == Other && mayCarry(p) {
		l = payload{what: labelStack, at: EthernetLen + VLANTagLen*int(p.Tags), end: len(b)}
	}
	if l.what == labelStack {
		l.afterLabels(b)
	}
	return l.at, l.what == ethernetFrame, !l.void && l.at < len(b) && (l.what == ethernetFrame || l.what == ipPacket)
}

// anyPayload is the payload of any tunnel.
func anyPayload(b []byte, p *Parsed) (l payload) {
	if p.Kind != IP || p.L4 == 0 {
		return l
	}
	if l = payloadOf(b, p); p.Proto == ProtoUDP && l.what == nothing {
		l = udpPayload(b, p)
	}
	return l
}

// UDPTo is the offset of the header of a UDP datagram to a port, in a packet that Parse has read or in its tunnel; 0: there is none.
func UDPTo(b []byte, p *Parsed, port uint16) int {
	to := func(p *Parsed) bool { return p.Kind == IP && p.Proto == ProtoUDP && p.L4 != 0 && p.DstPort == port }
	if to(p) {
		return int(p.L4)
	}
	if l := anyPayload(b, p); l.what > unreadable && l.what != labelStack && !l.void {
		var in Parsed
		if l.parse(b, &in); to(&in) {
			return int(in.L4)
		}
	}
	return 0
}
