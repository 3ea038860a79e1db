// Package packet reads and writes the headers of RoCEv2 traffic and its congestion notifications: Ethernet with VLAN tags, IPv4, IPv6 with
// extension headers, UDP, ICMPv6 and the InfiniBand transport headers. Fields on the wire are in network byte order, Go values in host byte
// order. The package never allocates, has no state, makes no decisions about frames and returns no errors: a frame that it doesn't
// understand is of Kind Other or IP.
//
// Parse finds all headers in one pass over a frame. A function of b and p is about a parsed frame: p is what Parse has found in b. Put writes a
// header at the front of a buffer and Decode reads one there; the buffer must be as long as the header, unless Decode also returns a bool.
package packet

import "encoding/binary"

// Parse finds the headers of an Ethernet frame in one pass and overwrites all of p. frameLen is the frame's length in octets
// without FCS; b is its beginning, shorter than the frame if the buffer has several segments or the capture truncated it.
//
// The lengths in the headers must fit frameLen, but only the headers themselves must be in b: an IP packet that exceeds the frame isn't
// valid, and a UDP datagram that exceeds its IP packet isn't RoCEv2. Padding after the IP packet is allowed. Parse doesn't verify checksums
// or the ICRC. Any fragment is of Kind IP without L4; an IPv6 "atomic" fragment (RFC 6946) is a complete packet. MayHide finds frames that
// Parse couldn't read completely and that may hold a notification.
//
// Parse follows tunnels to a RoCEv2 packet inside: see TunnelKind.
func Parse(b []byte, frameLen uint32, p *Parsed) {
	*p = Parsed{Len: frameLen}
	if uint64(len(b)) > uint64(frameLen) {
		b = b[:frameLen]
	}
	parseFrame(b, 0, int(frameLen), p)
	if mayCarry(p) {
		parseTunnel(b, int(frameLen), p)
	}
}

// parseFrame reads an Ethernet frame from its header at start to its end, without what a tunnel carries.
func parseFrame(b []byte, start, end int, p *Parsed) {
	l3 := start + EthernetLen
	if len(b) < l3 {
		return
	}
	etherType := binary.BigEndian.Uint16(b[l3-2:])
	if isTag(etherType) {
		l3, etherType = parseTags(b, l3, etherType, p)
	}
	if etherType >= minEtherType {
		p.EtherType = etherType
	}
	switch etherType {
	case EtherTypeIPv4:
		parseIPv4(b, l3, end, p)
	case EtherTypeIPv6:
		parseIPv6(b, l3, end, p)
	case EtherTypeMACControl:
		p.Kind = MACControl
	}
}

// parsePacket reads an IP packet, of the version in its header, from its header at l3 to its end at most.
func parsePacket(b []byte, l3, end int, p *Parsed) {
	if len(b) <= l3 {
		return
	}
	switch b[l3] >> 4 {
	case 4:
		parseIPv4(b, l3, end, p)
	case 6:
		parseIPv6(b, l3, end, p)
	}
}

// parseTags reads the VLAN tags; the first has the given TPID, and its other fields are at at. It returns the offset and the EtherType after
// them, which is still a TPID if a tag is truncated or there are more than MaxTags.
func parseTags(b []byte, at int, etherType uint16, p *Parsed) (int, uint16) {
	for p.Tags < MaxTags && isTag(etherType) && len(b) >= at+VLANTagLen {
		tag := MakeTag(etherType, binary.BigEndian.Uint16(b[at:]))
		if p.Tags == 0 {
			p.OuterTag = tag
		} else {
			p.InnerTag = tag
		}
		etherType = binary.BigEndian.Uint16(b[at+2:])
		at += VLANTagLen
		p.Tags++
	}
	return at, etherType
}

func isTag(etherType uint16) bool {
	return etherType == EtherTypeCTag || etherType == EtherTypeSTag || etherType == EtherTypeQinQ
}

func parseIPv4(b []byte, l3, limit int, p *Parsed) {
	if len(b) < l3+IPv4Len {
		return
	}
	h := b[l3 : l3+IPv4Len]
	headerLen := int(h[0]&0xf) * 4
	end := l3 + int(binary.BigEndian.Uint16(h[2:]))
	if h[0]>>4 != 4 || headerLen < IPv4Len || end < l3+headerLen || end > limit {
		return
	}
	p.Kind, p.Family = IP, 4
	p.DSCP, p.ECN = h[1]>>2, h[1]&3
	p.Src, p.Dst = AddrFrom4(h[12:]), AddrFrom4(h[16:])
	p.L3, p.Outer, p.IPEnd = uint16(l3), uint16(l3), uint32(end)
	if binary.BigEndian.Uint16(h[6:])&ipv4MFOffset != 0 {
		p.Proto = h[9]
		return
	}
	parseUpper(b, h[9], l3+headerLen, end, p)
}

func parseIPv6(b []byte, l3, limit int, p *Parsed) {
	if len(b) < l3+IPv6Len {
		return
	}
	h := b[l3 : l3+IPv6Len]
	payloadLen := int(binary.BigEndian.Uint16(h[4:]))
	end := l3 + IPv6Len + payloadLen
	if h[0]>>4 != 6 || payloadLen == 0 || end > limit { // 0: a jumbogram (RFC 2675), whose length is in an option
		return
	}
	p.Kind, p.Family = IP, 6
	p.DSCP, p.ECN = h[0]<<2&0x3c|h[1]>>6, h[1]>>4&3
	p.Src, p.Dst = AddrFrom16(h[8:]), AddrFrom16(h[24:])
	p.L3, p.Outer, p.IPEnd = uint16(l3), uint16(l3), uint32(end)
	if next := h[6]; next == ProtoUDP {
		parseUpper(b, next, l3+IPv6Len, end, p)
	} else {
		parseExtHeaders(b, next, l3+IPv6Len, end, p)
	}
}

// parseExtHeaders skips the IPv6 extension headers (RFC 8200 4) up to the upper layer; the first is of type next and at off. It gives up if
// a header is truncated, out of place or exceeds the packet, or after maxExtHeaders of them.
func parseExtHeaders(b []byte, next uint8, off, end int, p *Parsed) {
	for n := 0; isExtHeader(next); n++ {
		if n == maxExtHeaders || len(b) < off+8 || end < off+8 {
			return
		}
		h := b[off : off+8]
		switch next {
		case ProtoHopByHop:
			if n != 0 { // RFC 8200 4.1: directly after the IPv6 header only
				return
			}
			p.HopOpts = uint16(off)
		case ProtoDestOpts:
			p.DstOpts = uint16(off)
		case ProtoFragment:
			if binary.BigEndian.Uint16(h[2:])&ipv6OffsetMF != 0 {
				p.Proto = h[0]
				return
			}
		}
		off += extHeaderLen(next, h[1])
		if off > end {
			return
		}
		next = h[0]
	}
	parseUpper(b, next, off, end, p)
}

// parseUpper records the upper-layer header at l4, which need not be in b, and continues with UDP.
func parseUpper(b []byte, proto uint8, l4, end int, p *Parsed) {
	p.Proto, p.L4 = proto, uint16(l4)
	if proto != ProtoUDP || len(b) < l4+UDPLen || end < l4+UDPLen {
		return
	}
	h := b[l4 : l4+UDPLen]
	p.SrcPort, p.DstPort = binary.BigEndian.Uint16(h), binary.BigEndian.Uint16(h[2:])
	if p.DstPort == RoCEv2Port {
		udpEnd := l4 + int(binary.BigEndian.Uint16(h[4:]))
		if udpEnd <= end {
			parseRoCEv2(b, l4+UDPLen, udpEnd-ICRCLen, p)
		}
	}
}

// parseRoCEv2 reads the Base Transport Header at bth and the headers of its opcode, up to the ICRC at icrc.
func parseRoCEv2(b []byte, bth, icrc int, p *Parsed) {
	if len(b) < bth+BTHLen {
		return
	}
	h := b[bth : bth+BTHLen]
	opcode := Opcode(h[0])
	info := opcodes[opcode]
	ext := bth + BTHLen
	payload := ext + int(info.len)
	if info.flags&opcodeKnown == 0 || h[1]&0xf != 0 || payload > icrc || payload > len(b) {
		return
	}
	qp := binary.BigEndian.Uint32(h[4:])
	p.Kind = RoCEv2
	p.BTH, p.Payload, p.ICRC = uint16(bth), uint16(payload), uint32(icrc)
	p.Opcode, p.BTHFlags = opcode, uint8(qp>>24)
	p.DestQP, p.PSN = qp&0xffffff, binary.BigEndian.Uint32(h[8:])&0xffffff
	if info.ext&HasDETH != 0 {
		p.SourceQP = DecodeDETH(b[ext+opcode.Offset(HasDETH):]).SourceQP
	}
}

// ParseIP is Parse for an IP packet without a link-layer header, such as the invoking packet in a notification to a proxy: offsets
// count from the IP header. The packet may be truncated: only the headers must be in b, and their lengths aren't checked against it. ParseIP
// doesn't follow tunnels.
func ParseIP(b []byte, p *Parsed) {
	*p = Parsed{}
	const unbounded = 1 << 17 // more than any IP packet that isn't a jumbogram
	parsePacket(b, 0, unbounded, p)
}
