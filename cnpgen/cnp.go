package cnpgen

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// cnp is a CNP of any format that is being built. Until seal, the fields that the ICRC doesn't cover are ones: so the ICRC is computed over the
// octets as they are. Its methods don't check bounds: beginCNP has checked that the whole frame fits.
type cnp struct {
	ip   unsafe.Pointer // the IP packet in the caller's buffer; nil: it can't be built
	udp  int            // offset of the UDP header in the IP packet
	len  int            // of the IP packet, up to the end of its ICRC
	size int            // of the frame
}

// cnpLen is the length of a CNP's UDP datagram with n octets between BTH and ICRC.
func cnpLen(n int) int { return packet.CNPLen + n + packet.ICRCLen }

// beginCNP writes the headers of a CNP to t's sender over the flow's IP version, from the address src. The caller then writes, before seal, the
// octets of a Destination Options header before the UDP header, and those of the format's fields, between BTH and ICRC. The result can't be
// built if t is not valid, src is nil, the sender is in a tunnel, the IP packet would exceed the maximum, or out is too short.
func beginCNP(out []byte, t *Target, g *Gateway, src *packet.Addr, options, fields int, destQP uint32) (c cnp) {
	l3, udp, most := t.linkLen(), packet.IPv4Len, maxIPv4
	v6 := t.Family == 6
	if v6 {
		udp, most = packet.IPv6Len+options, maxIPv6
	}
	n := udp + cnpLen(fields)
	if !t.valid() || src == nil || t.Encapsulated || n > most || len(out) < l3+n {
		return cnp{}
	}
	frame := unsafe.Pointer(unsafe.SliceData(out))
	c = cnp{unsafe.Add(frame, l3), udp, n, l3 + n}
	if v6 {
		next := uint8(packet.ProtoUDP)
		if options > 0 {
			next = packet.ProtoDestOpts
		}
		t.putLink(frame, packet.EtherTypeIPv6)
		packet.MaskIPv6((*[packet.IPv6Len]byte)(c.ip), uint16(n-packet.IPv6Len), next, src, &t.Src)
	} else {
		t.putLink(frame, packet.EtherTypeIPv4)
		packet.MaskIPv4((*[packet.IPv4Len]byte)(c.ip), uint16(n), packet.ProtoUDP, uint32(src.Lo), uint32(t.Src.Lo))
	}
	packet.MaskCNP((*[packet.CNPLen]byte)(unsafe.Add(c.ip, udp)), t.SrcPort, n-udp, g.pKey(t), destQP)
	return c
}

// options are the octets between the IPv6 and the UDP header.
func (c *cnp) options() []byte {
	return unsafe.Slice((*byte)(unsafe.Add(c.ip, packet.IPv6Len)), c.udp-packet.IPv6Len)
}

// fields are the octets between BTH and ICRC.
func (c *cnp) fields() []byte {
	return unsafe.Slice((*byte)(unsafe.Add(c.ip, c.udp+packet.CNPLen)), c.len-c.udp-cnpLen(0))
}

// clearFields writes the reserved octets that a CNP without fields of its own has there.
func (c *cnp) clearFields() {
	*(*[packet.CNPReservedLen]byte)(unsafe.Add(c.ip, c.udp+packet.CNPLen)) = [packet.CNPReservedLen]byte{}
}

// seal writes the ICRC, and the fields that it doesn't cover: flags is octet 4 of the BTH, class the traffic class (TOS), hops the hop limit
// (TTL). It returns the frame's length.
func (c *cnp) seal(t *Target, g *Gateway, flags, class, hops uint8) int {
	ip := unsafe.Slice((*byte)(c.ip), c.len)
	packet.PutMaskedICRC(ip)
	if t.Family == 4 {
		packet.UnmaskIPv4((*[packet.IPv4Len]byte)(c.ip), class, hops)
	} else {
		packet.UnmaskIPv6((*[packet.IPv6Len]byte)(c.ip), class, hops)
	}
	packet.UnmaskCNP((*[packet.CNPLen]byte)(unsafe.Add(c.ip, c.udp)), flags)
	if c.udp > packet.IPv6Len && !g.ICRCExtensionHeaders {
		packet.PutICRC(ip, 0, c.udp+packet.UDPLen, c.len-packet.ICRCLen, false)
	}
	return c.size
}
