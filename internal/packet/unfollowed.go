package packet

import "encoding/binary"

// UDP destination ports of tunnels that Parse doesn't follow. The domain filter reads them, and ParseOverlay some.
const (
	l2tpPort     = 1701 // RFC 2661, RFC 3931
	gtpuPort     = 2152 // 3GPP TS 29.281
	teredoPort   = 3544 // RFC 4380
	lispPort     = 4341 // RFC 9300
	espPort      = 4500 // RFC 3948
	greUDPPort   = 4754 // RFC 8086
	vxlanGPEPort = 4790
	guePort      = 6080 // draft-ietf-intarea-gue
	genevePort   = 6081 // RFC 8926
	mplsPort     = 6635 // RFC 7510
	oldVXLANPort = 8472 // VXLAN before RFC 7348, still Linux's default
)

// TunnelPorts are the UDP destination ports of these tunnels and of those that Parse follows, with the tunnel's name.
var TunnelPorts = map[uint16]string{
	l2tpPort: "L2TP", gtpuPort: "GTP-U", teredoPort: "Teredo", lispPort: "LISP", espPort: "IPsec", greUDPPort: "GRE in UDP", vxlanPort: "VXLAN",
	vxlanGPEPort: "VXLAN-GPE", guePort: "GUE", genevePort: "Geneve", mplsPort: "MPLS in UDP", oldVXLANPort: "VXLAN",
}

// udpPayload is payloadOf for these tunnels. What their receivers discard or don't forward is nothing.
func udpPayload(b []byte, p *Parsed) payload {
	l := payload{at: int(p.L4), end: int(p.IPEnd)}
	b = b[:min(len(b), l.end)]
	if p.DstPort == oldVXLANPort {
		l.afterVXLAN(b)
		return l
	}
	l.at += UDPLen
	if p.DstPort == greUDPPort {
		l.afterGRE(b)
		return l
	}
	const least = 8 // octets of the headers read below
	if len(b) < l.at+least {
		if p.DstPort == mplsPort {
			l.what = labelStack
		}
		return l
	}
	h := b[l.at:]
	switch p.DstPort {
	case l2tpPort:
		if version := h[1] & 0xf; h[0]&0x80 == 0 && version >= 1 && version <= 3 { // otherwise a control message
			l.what = unreadable
		}
	case teredoPort:
		l.afterTeredo(h)
	case lispPort:
		const header = 8
		if len(h) > header && isIP(h[header]) {
			l.what, l.at = ipPacket, l.at+header
		}
	case guePort:
		l.afterGUE(h)
	case gtpuPort:
		l.afterGTPU(h)
	case espPort:
		if binary.BigEndian.Uint32(h) != 0 { // otherwise IKE
			l.what = unreadable
		}
	case vxlanGPEPort:
		l.afterGPE(h)
	case genevePort:
		l.afterGeneve(h)
	case mplsPort:
		l.what = labelStack
	}
	return l
}

// isIP reports whether an octet can be the first one of an IP packet.
func isIP(first byte) bool { return first>>4 == 4 || first>>4 == 6 }

// afterTeredo reads what precedes an IPv6 packet: nothing, or indications that begin with 0.
func (l *payload) afterTeredo(h []byte) {
	switch {
	case h[0]>>4 == 6:
		l.what = ipPacket
	case h[0] == 0 && h[1] <= 1: // origin, authentication
		l.what = unreadable
	}
}

// afterGUE reads Generic UDP Encapsulation: an IP packet without a header, or a header that isn't read. Control messages carry none.
func (l *payload) afterGUE(h []byte) {
	const control = 0x20
	switch {
	case isIP(h[0]):
		l.what = ipPacket
	case h[0]>>6 == 0 && h[0]&control == 0:
		l.what = unreadable
	}
}

// afterGTPU reads a GTP-U header. Only a G-PDU carries a packet.
func (l *payload) afterGTPU(h []byte) {
	const (
		version, gpdu        = 0x30, 0xff // GTP version 1
		numbers, extension   = 0x03, 0x04 // flags: a sequence or N-PDU number, extension headers
		length, numberLength = 8, 4
	)
	if h[0]&0xf0 != version || h[1] != gpdu {
		return
	}
	l.what = ipPacket
	l.at += length
	switch {
	case h[0]&extension != 0:
		l.what = unreadable
	case h[0]&numbers != 0:
		l.at += numberLength
	}
}

// afterGPE reads the header of VXLAN's Generic Protocol Extension.
func (l *payload) afterGPE(h []byte) {
	const known, nextProtocol = 0x0c, 0x04 // flags; the others are reserved, or a version
	l.at += vxlanLen
	l.what, l.tunnel = unreadable, networkOf(h)
	switch {
	case h[0]&^known != 0:
	case h[0]&nextProtocol == 0: // as VXLAN
		l.what = ethernetFrame
	case h[3] == 1, h[3] == 2: // IPv4, IPv6
		l.what = ipPacket
	case h[3] == 3:
		l.what = ethernetFrame
	}
}

// afterGeneve reads a Geneve header.
func (l *payload) afterGeneve(h []byte) {
	const length, optionWord = 8, 4
	if h[0]>>6 != 0 { // another version: it is discarded (RFC 8926 3.4)
		return
	}
	l.at += length + int(h[0]&0x3f)*optionWord
	l.what, l.tunnel = byEtherType(binary.BigEndian.Uint16(h[2:])), networkOf(h)
}

// networkOf is the virtual network that a header of VXLAN-GPE or Geneve names in the same place as VXLAN's. It is of VXLAN's kind.
func networkOf(h []byte) Tunnel { return Tunnel{Kind: VXLAN, ID: binary.BigEndian.Uint32(h[4:]) >> 8} }
