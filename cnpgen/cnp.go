package cnpgen

import "github.com/cnpgate/cnpgate/internal/packet"

// cnp is a CNP of any format that is being built. Until seal, the fields that the ICRC doesn't cover are ones: so the ICRC is computed over the
// octets as they are.
type cnp struct {
	ip   []byte // the IP packet, up to the end of its ICRC; nil: it can't be built
	udp  int    // offset of the UDP header in it
	size int    // of the frame
}

// cnpLen is the length of a CNP's UDP datagram with n octets between BTH and ICRC.
func cnpLen(n int) int { return packet.CNPLen + n + packet.ICRCLen }

// beginCNP writes the headers of a CNP to t's sender over the flow's IP version, from the address src. The caller then writes, before seal, the
// octets of a Destination Options header before the UDP header, and those of the format's fields, between BTH and ICRC. The result can't be
// built for the reasons of valid, if src is nil, if the sender is in a tunnel, if the IP packet would exceed the maximum, or if out is too
// short.
func beginCNP(out []byte, t *Target, g *Gateway, src *packet.Addr, options, fields int, destQP uint32) (c cnp) {
	l3, v6 := t.linkLen(), t.Family == 6
	udp := packet.IPv4Len
	most, proto := maxIPv4, uint8(packet.ProtoUDP)
	if v6 {
		udp, most = packet.IPv6Len+options, maxIPv6
		if options > 0 {
			proto = packet.ProtoDestOpts
		}
	}
	n := udp + cnpLen(fields)
	if !t.valid() || src == nil || t.Encapsulated || n > most || len(out) < l3+n {
		return cnp{}
	}
	ip := out[l3 : l3+n]
	if v6 {
		t.putLink(out, packet.EtherTypeIPv6)
		packet.MaskIPv6((*[packet.IPv6Len]byte)(ip), uint16(n-packet.IPv6Len), proto, src, &t.Src)
	} else {
		t.putLink(out, packet.EtherTypeIPv4)
		packet.MaskIPv4((*[packet.IPv4Len]byte)(ip), uint16(n), proto, uint32(src.Lo), uint32(t.Src.Lo))
	}
	packet.MaskCNP((*[packet.CNPLen]byte)(ip[udp:]), t.SrcPort, n-udp, g.pKey(t), destQP)
	return cnp{ip, udp, l3 + n}
}

// fields are the octets between BTH and ICRC.
func (c *cnp) fields() []byte { return c.ip[c.udp+packet.CNPLen : len(c.ip)-packet.ICRCLen] }

// clearFields writes the reserved octets that a CNP without fields of its own has there.
func (c *cnp) clearFields() {
	*(*[packet.CNPReservedLen]byte)(c.ip[c.udp+packet.CNPLen:]) = [packet.CNPReservedLen]byte{}
}

// seal writes the ICRC, and the fields that it doesn't cover. flags is octet 4 of the BTH. It returns the frame's length.
func (c *cnp) seal(t *Target, g *Gateway, src *packet.Addr, flags uint8) int {
	packet.PutMaskedICRC(c.ip)
	if t.Family == 4 {
		packet.PutIPv4(c.ip, uint16(len(c.ip)), g.DSCP<<2, hopLimit, packet.ProtoUDP, uint32(src.Lo), uint32(t.Src.Lo))
	} else {
		packet.UnmaskIPv6((*[packet.IPv6Len]byte)(c.ip), g.DSCP<<2, hopLimit)
	}
	packet.UnmaskCNP((*[packet.CNPLen]byte)(c.ip[c.udp:]), flags)
	if c.udp > packet.IPv6Len && !g.ICRCExtensionHeaders {
		packet.PutICRC(c.ip, 0, c.udp+packet.UDPLen, len(c.ip)-packet.ICRCLen, false)
	}
	return c.size
}
