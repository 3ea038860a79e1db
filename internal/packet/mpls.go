package packet

import "encoding/binary"

// Entry of an MPLS label stack (RFC 3032 2.1, RFC 5462); S marks the bottom:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                 Label                 | TC  |S|      TTL      |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
const (
	labelLen       = 4
	entryLabel     = 12
	labelBottom    = 1 << 8
	labelELI       = 7  // Entropy Label Indicator: the next label is an entropy label, which differs between flows (RFC 6790)
	maxLabels      = 16 // a longer stack isn't read
	controlWordLen = 4  // octets of a pseudowire's control word (RFC 4385)
)

// belowLabels finds the RoCEv2 packet below a label stack. The stack doesn't tell what follows it (RFC 3032 2.2). Like routers that look for
// flows (RFC 4928 3), this goes by the first four bits: 4 and 6 are an IP packet's, 0 those of a pseudowire's control word (RFC 4385 3) before
// an Ethernet frame. But an Ethernet frame in a pseudowire without control word may begin with any of them (RFC 8469 3), so it is read as
// such, too, and the first reading that leads to RoCEv2 counts. A wrong one would need EtherType, IP header, lengths, UDP port and BTH to fit
// in the wrong place. That happens in one case: without a control word, the first four octets of a tagged frame can be taken for one, and the
// same packet is found after an untagged frame's header. So the frame is tried before the control word.
func (l *payload) belowLabels(b []byte, left levels, p *Parsed) bool {
	label, at, ok := bottomLabel(b[:min(len(b), l.end)], l.at)
	if !ok {
		return false
	}
	first := b[at] >> 4
	in := payload{what: ipPacket, at: at, end: l.end, tunnel: Tunnel{Kind: MPLS, ID: label, opaque: true}}
	if (first == 4 || first == 6) && in.holds(b, left, p) {
		return true
	}
	in.what = ethernetFrame
	if in.holds(b, left, p) {
		return true
	}
	in.at += controlWordLen
	return first == 0 && in.holds(b, left, p)
}

// afterLabels is what is below a label stack, if it isn't known where RoCEv2 is in there: by its first four bits, as belowLabels has it.
func (l *payload) afterLabels(b []byte) {
	_, at, ok := bottomLabel(b[:min(len(b), l.end)], l.at)
	if l.what, l.at = ethernetFrame, at; !ok {
		l.what = unreadable
		return
	}
	begins := func(at int) bool { // the EtherType of a frame there
		if at += EthernetLen - 2; at+2 > len(b) {
			return false
		}
		t := binary.BigEndian.Uint16(b[at:])
		return isTag(t) || byEtherType(t) != unreadable
	}
	switch {
	case isIP(b[at]):
		l.what = ipPacket
	case b[at]>>4 == 0 && !begins(at) && begins(at+controlWordLen):
		l.at += controlWordLen
	}
}

// bottomLabel reads a label stack at at. It returns the last label that isn't an entropy label or its indicator, and the offset of what
// follows the stack, which is in b; false if there is no such offset, or the stack is too long.
func bottomLabel(b []byte, at int) (label uint32, next int, ok bool) {
	entropy := false
	for range maxLabels {
		if len(b) < at+labelLen {
			return 0, 0, false
		}
		entry := binary.BigEndian.Uint32(b[at:])
		at += labelLen
		this := entry >> entryLabel
		if !entropy && this != labelELI {
			label = this
		}
		entropy = !entropy && this == labelELI
		if entry&labelBottom != 0 {
			return label, at, at < len(b)
		}
	}
	return 0, 0, false
}
